// stoker demo --s3: epoch 0 from a store and epoch 1 from the disk cache, a staged copy of some classes, how many
// requests in flight the store needs, and what plan advises. The server is SeaweedFS on this machine.
#include "demo_s3.h"

#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/meter/counters.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"

#include "demo_data.h"
#include "interrupt.h"
#include "local_store.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBatch = 32;
constexpr std::string_view kTransform = "rrc:224,flip";
constexpr const char* kBucket = "stoker-demo";
constexpr const char* kAddress = "s3://stoker-demo/images";
constexpr std::size_t kUploads = 4;  // at a time
constexpr std::uint64_t kMostFile = 64 << 20;

double seconds_since(std::int64_t began_ns) {
  return static_cast<double>(meter::now_ns() - began_ns) * 1e-9;
}

// All files below `folder`, as keys below images/.
void upload_images(const LocalStore& store, const std::string& folder, const Face& face, std::uint64_t count) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  Bar bar(face, "uploading", count);
  std::atomic<std::size_t> next{0}, done{0};
  std::exception_ptr failure;
  std::mutex mutex;
  std::vector<std::thread> crew;
  for (std::size_t i = 0; i < kUploads; ++i) {
    crew.emplace_back([&] {
      try {
        for (std::size_t at = next++; at < files.size() && !interrupted(); at = next++) {
          const std::string key = "images/" + files[at].lexically_relative(folder).string();
          store.upload(key, os::read_text(files[at].string(), kMostFile));
          bar.update(++done, "objects");
        }
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!failure) failure = std::current_exception();
        next = files.size();
      }
    });
  }
  for (std::thread& thread : crew) thread.join();
  if (interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
  if (failure) std::rethrow_exception(failure);
}

class S3Story : private Telling {
 public:
  S3Story(const Face& face, const DemoFolder& folder, const LocalStore& store, bool quick)
      : Telling(face, folder.path(), store.environment()), folder_(folder), store_(store), quick_(quick) {}

  int run() {
    make_data();
    cache();
    stage();
    tune();
    plan();
    report();
    finish();
    return 0;
  }

 private:
  std::vector<std::string> load_words(const std::string& address, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"load",      address,       "--batch-size",         std::to_string(kBatch),
                                      "--shuffle", "--transform", std::string(kTransform)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  void make_data() {
    DemoData made;
    {
      Bar bar(face(), "making a data set", kDemoFiles);
      made = make_demo_data(Telling::folder(), [&](std::uint64_t files) {
        bar.update(files, "files");
        return !interrupted();
      });
    }
    for (const char* const name : {"cache", "staged", "runs"}) fs::remove_all(inside(name));  // of an earlier demo
    const std::int64_t began = meter::now_ns();
    upload_images(store_, made.images, face(), made.image_count);
    tell(wrapped(
        fmt::format("put {} JPEG images ({}) into {} in {:.1f} s; the server is SeaweedFS at {}, on this "
                    "machine{}",
                    made.image_count, format_bytes(made.image_bytes), kAddress, seconds_since(began), store_.endpoint(),
                    folder_.keeps() ? fmt::format("; `{}` keeps runs and report", Telling::folder()) : ""),
        "", ""));
    tell(wrapped("The story: a job read its images through a mount of a bucket. Epoch 0 ran at 0.43 it/s and later "
                 "ones at 1.6, while the accelerator waited.",
                 "", "") +
         "\n");
    json_ = {{"schema", "stoker.demo_s3/1"}, {"stoker_version", kVersion},    {"folder", Telling::folder()},
             {"kept", folder_.keeps()},      {"endpoint", store_.endpoint()}, {"address", kAddress},
             {"images", made.image_count},   {"bytes", made.image_bytes}};
  }

  static Json figures(const Json& span, std::string_view from) {
    const double rate = span["samples_per_s"].get<double>();
    Json entry = {{"from", from}, {"it_per_s", rate / kBatch}, {"samples_per_s", rate}};
    entry["fetch_share"] = span["wait"]["fetch"]["share"];
    entry["store"] = span["store"];
    return entry;
  }
  static std::vector<std::string> cells(const std::string& title, const Json& entry) {
    const Json& store = entry["store"];
    return {title,
            fmt::format("{:.1f}", entry["it_per_s"].get<double>()),
            format_rate(entry["samples_per_s"].get<double>()),
            fmt::format("{:.0f} %", 100 * entry["fetch_share"].get<double>()),
            format_count(store["requests"].get<std::uint64_t>()),
            format_bytes(store["store_bytes"].get<std::uint64_t>()),
            format_count(store["cache_hits"].get<std::uint64_t>())};
  }
  static std::vector<std::string> titles() {
    return {"epoch", "it/s", "images/s", "waits", "requests", "received", "cache hits"};
  }

  void cache() {
    heading("Epoch 0 from S3, epoch 1 from the disk cache");
    // The data is so small that the loader would otherwise read all of epoch 1 ahead, during epoch 0.
    const Json loaded = verb(load_words(kAddress, {"--epochs", "2", "--read-ahead", "1MB", "--cache-dir",
                                                   inside("cache"), "--cache-limit", "1GB"}),
                             "loading");
    std::vector<std::vector<std::string>> rows = {titles()};
    json_["epochs"] = Json::array();
    for (const Json& span : loaded["epochs"]) {
      const bool cached =
          span["store"]["cache_hits"].get<std::uint64_t>() > span["store"]["requests"].get<std::uint64_t>();
      json_["epochs"].push_back(figures(span, cached ? "cache" : "store"));
      rows.push_back(cells(fmt::format("{} from {}", span["epoch"].get<int>(), cached ? "the cache" : "S3"),
                           json_["epochs"].back()));
    }
    tell(table(rows, "   "));
    tell(wrapped("waits: the share of the time without bytes to decode. A later run, and every other process of this "
                 "machine, reads the same cache.") +
         "\n");
  }

  void stage() {
    heading("Stage: some classes, as a copy on the local disk");
    const Json staged = verb({"stage", kAddress, inside("staged"), "--class-subset", "3"}, "staging");
    tell(wrapped(fmt::format("{} files ({}) of {} of {} classes, with {} requests in {:.1f} s",
                             staged["files"].get<int>(), format_bytes(staged["bytes"].get<std::uint64_t>()),
                             staged["classes"].size(), staged["classes_of_source"].get<int>(),
                             staged["requests"].get<int>(), staged["seconds"].get<double>())));
    const Json again = verb({"stage", kAddress, inside("staged"), "--class-subset", "3"}, "staging");
    tell(wrapped(fmt::format("the same command again: {} fetched, {} there unchanged", again["fetched"].get<int>(),
                             again["kept"].get<int>())));
    const Json loaded = verb(load_words(inside("staged"), {"--epochs", "2"}), "loading");
    json_["stage"] = {{"files", staged["files"]},       {"bytes", staged["bytes"]},
                      {"requests", staged["requests"]}, {"classes", staged["classes"]},
                      {"seconds", staged["seconds"]},   {"fetched_again", again["fetched"]}};
    std::vector<std::vector<std::string>> rows = {titles()};
    json_["staged_epochs"] = Json::array();
    for (const Json& span : loaded["epochs"]) {
      json_["staged_epochs"].push_back(figures(span, "disk"));
      rows.push_back(cells(fmt::format("{} from the copy", span["epoch"].get<int>()), json_["staged_epochs"].back()));
    }
    tell(table(rows, "   ") + "\n");
  }

  void tune() {
    heading("Tune: how many requests in flight does this store need?");
    const Json found = verb({"tune", kAddress, "--shuffle", "--transform", std::string(kTransform), "--grid",
                             "io_depth=1,16,256", "--grid", fmt::format("batch_size={}", kBatch), "--search", "grid",
                             "--bench-steps", quick_ ? "8" : "40", "--out", inside("runs/s3")},
                            "tuning");
    if (found["chosen"].is_null()) throw Error(ErrorKind::internal, "no setting ran");
    tell(wrapped(fmt::format("{}.", sentence(found["reason"].get<std::string>()))));
    tell(wrapped(fmt::format("chosen: io_depth={}", found["chosen"]["knobs"]["io_depth"].get<std::string>())));
    tell(wrapped("note: this store is on the same machine. One that is far away adds its latency to each request, and "
                 "needs more of them at once.") +
         "\n");
    json_["tune"] = {{"points", found["grid_points"]}, {"ok", found["ok"]}, {"chosen", found["chosen"]["knobs"]}};
  }

  void plan() {
    heading("Plan: 90 epochs of it");
    const std::string ledger = inside("ledger.json");
    const std::vector<std::string> words = load_words(kAddress, {"--bench-steps", quick_ ? "8" : "40"});
    std::vector<std::string> shown = words;
    shown.insert(shown.end(), {"--json", ">", "ledger.json"});
    os::write_file(ledger, verb(words, "measuring", shown).dump());
    const Json planned = verb({"plan", "--run", inside("runs/s3"), "--ledger", ledger, "--epochs", "90", "--dataset",
                               kAddress, "--price-per-1000-requests", "0.0004", "--price-per-gb", "0.09"},
                              "planning");
    json_["plan"] = {{"headline", planned["headline"]}, {"next_command", planned["next_command"]}};
    tell(wrapped(planned["headline"].get<std::string>()));
    const Json& costs = planned["runs"][0]["costs"];
    json_["plan"]["costs"] = costs;
    const auto cost = [&](std::size_t access) { return costs[access]["run"]["cost"].get<double>(); };
    tell(wrapped(
        fmt::format("at these prices it costs {:.3g} from the store, {:.3g} with the disk cache, and {:.3g} from "
                    "a copy",
                    cost(0), cost(1), cost(2))));
    json_["plan"]["options"] = Json::array();
    for (const Json& option : planned["runs"][0]["options"]) {
      if (!option["worth"].get<bool>()) continue;
      json_["plan"]["options"].push_back({{"name", option["name"]}, {"gain", option["gain"]["p50"]}});
      if (json_["plan"]["options"].size() > kMostOptions) continue;
      tell(wrapped(fmt::format("{}. {}: {:.2f}x ({})", option["order"].get<int>(), option["name"].get<std::string>(),
                               option["gain"]["p50"].get<double>(), option["change"].get<std::string>())));
    }
    if (json_["plan"]["options"].size() == 0) tell(wrapped("it advises no change: nothing would be faster"));
    tell("\n");
  }

  void report() {
    heading("Report: all of it on one page");
    (void)verb({"report", inside("runs/s3"), "--out", inside("report.html"), "--force"}, "writing");
    json_["report"] = inside("report.html");
    tell(wrapped(folder_.keeps() ? fmt::format("open `{}` in a browser", inside("report.html"))
                                 : std::string("it goes with the temporary folder: `stoker demo --s3 --dir demo-data` "
                                               "keeps both")) +
         "\n");
  }

  void finish() const {
    if (face().json) {
      answer(json_.dump(2) + "\n");
      return;
    }
    answer(
        "What to type next, with a bucket of your own (the server of this demo ends now):\n"
        "  stoker load s3://BUCKET/PREFIX --batch-size 256 --epochs 2 --cache-limit 200GB\n"
        "  stoker stage s3://BUCKET/PREFIX data/copy --dry-run\n");
  }

  static constexpr std::size_t kMostOptions = 3;  // that are told; plan.json has all

  const DemoFolder& folder_;
  const LocalStore& store_;
  const bool quick_;
  Json json_;
};

}  // namespace

int tell_s3_story(const Face& face, const DemoFolder& folder, bool quick) {
  std::optional<LocalStore> store;
  {
    Bar bar(face, "starting SeaweedFS");
    std::uint64_t looks = 0;
    store.emplace(kBucket, [&] {
      bar.update(++looks, "looks");
      return interrupted();
    });
  }
  return S3Story(face, folder, *store, quick).run();
}

}  // namespace stoker::cli
