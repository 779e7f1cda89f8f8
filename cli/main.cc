// stoker: finds the verb, runs it, and translates every failure once.
#include <algorithm>
#include <csignal>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/version.h"
#include "stoker/codec/media.h"
#include "stoker/dataset/volume.h"
#include "stoker/feed/machine.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/interruption.h"

#include "interrupt.h"
#include "json_head.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

std::string cpu_version() {
  const feed::VectorCode code = feed::vector_code();
  if (code.name.empty()) return "plain code only";
  return fmt::format("{} code, which this CPU {}", code.name,
                     code.runs_here ? "runs" : "lacks: plain code runs instead");
}

int run(const std::vector<std::string>& words) {
  const std::vector<const Verb*>& verbs = all_verbs();
  if (words.empty()) {
    say(program_help(verbs, false, 80));
    return 2;
  }
  std::string first = words[0];
  std::vector<std::string> rest(words.begin() + 1, words.end());
  if (first == kDicomWorker) return run_dicom_worker(rest);
  if (first == "help" && !rest.empty()) {
    first = rest[0];
    rest = {"--help"};
  }
  if (first == "-h" || first == "--help" || first == "help") {
    answer(program_help(verbs, first == "--help", 80));
    return 0;
  }
  if (first == "--version" || first == "-V") {
    answer(
        fmt::format("stoker {}\nreads: {} in folders, index.csv, packs and tar shards; .npy\nfrom: {}\nvolumes: {}\n"
                    "prepares: {}\nCPU: {}\n",
                    kVersion, codec::names(), sources_version(), volumes_version(), dicom_version(), cpu_version()));
    return 0;
  }
  for (const Verb* verb : verbs) {
    if (verb->name != first) continue;
    const Arguments arguments(*verb, rest);
    if (arguments.wants_long_help()) {
      answer(long_help(*verb, 80));
      return 0;
    }
    if (arguments.wants_short_help()) {
      answer(short_help(*verb, 80));
      return 0;
    }
    try {
      return verb->run(arguments);
    } catch (const Error& error) {  // from here on its options are flags
      throw Error(error.kind(), in_flags(error.text(), *verb), in_flags(error.hint_text(), *verb));
    }
  }
  std::vector<std::string_view> names;
  std::string list;
  for (const Verb* verb : verbs) {
    names.push_back(verb->name);
    list += (list.empty() ? "" : ", ") + verb->name;
  }
  names.insert(names.end(), {"--help", "--version"});
  const std::string near = nearest(first, names.data(), names.size());
  throw Error(ErrorKind::usage, fmt::format("there is no {} `{}`", first.starts_with('-') ? "flag" : "verb", first),
              near.empty() ? fmt::format("the verbs are: {}", list) : fmt::format("did you mean `stoker {}`?", near));
}

// With --json the answer is one object on stdout, also where there is only an error to tell.
void answer_in_json(const Error& error) {
  if (has_answered()) return;
  Json json = json_head("error");
  json["error"] = {{"kind", name(error.kind())},
                   {"message", error.message()},
                   {"hint", error.hint().empty() ? Json() : Json(error.hint())}};
  try {
    answer(json.dump(2) + "\n");
  } catch (...) {  // stdout is closed, or nobody reads it; stderr has the text
  }
}

void report(const Error& error, bool in_json) {
  const std::string prefix = error.kind() == ErrorKind::internal ? "internal error" : "error";
  say(fmt::format("{}: {}\n", prefix, printable(error.message())));
  if (!error.hint().empty()) say(fmt::format("\nhint: {}\n", printable(error.hint())));
  if (in_json) answer_in_json(error);
}

// Of the words that are ours: those behind `--` are another program's.
bool has_json_flag(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

}  // namespace

std::string sources_version() {
  return storage::find_backend("s3") != nullptr ? "local files, s3://, http://, https://"
                                                : "local files (built without STOKER_S3)";
}

std::string volumes_version() {
  const std::string volumes = dataset::volume_formats();
  return volumes.empty() ? "none (built without STOKER_VOLUMES)" : volumes;
}

const std::vector<const Verb*>& all_verbs() {
  static const std::vector<const Verb*> verbs = {&demo_verb(),    &inspect_verb(),    &load_verb(), &measure_verb(),
                                                 &tune_verb(),    &run_verb(),        &pack_verb(), &check_verb(),
                                                 &prepare_verb(), &stage_verb(),      &plan_verb(), &report_verb(),
                                                 &doctor_verb(),  &completions_verb()};
  return verbs;
}

}  // namespace stoker::cli

int main(int argc, char** argv) {
  using namespace stoker;
  cli::open_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  cli::watch_for_interrupt();
  storage::Interruption interruption(cli::interrupted);  // also ends waits for a store
  const storage::InterruptionScope interruptible(&interruption);
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const bool in_json = cli::has_json_flag(words);
  try {
    return cli::run(words);
  } catch (const cli::ReaderLeft&) {
    return 0;
  } catch (const Error& error) {
    if (cli::interrupted()) {
      cli::say("interrupted\n");
      if (in_json) cli::answer_in_json(Error(ErrorKind::unavailable, "interrupted"));
      return cli::interruption_code();
    }
    cli::report(error, in_json);
  } catch (const std::bad_alloc&) {
    cli::report(Error(ErrorKind::unavailable, "cannot go on: out of memory", "lower --memory-limit or --batch-size"),
                in_json);
  } catch (const std::exception& error) {
    cli::report(Error(ErrorKind::internal, error.what()), in_json);
  }
  return 2;
}
