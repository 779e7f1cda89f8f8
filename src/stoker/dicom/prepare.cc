#include "stoker/dicom/prepare.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/dicom/find.h"
#include "stoker/dicom/index.h"
#include "stoker/dicom/manifest.h"
#include "stoker/dicom/parts.h"
#include "stoker/dicom/pseudonym.h"
#include "stoker/dicom/write.h"
#include "stoker/os/file.h"
#include "stoker/os/file_lock.h"
#include "stoker/os/folder_entries.h"
#include "stoker/os/read_file.h"
#include "stoker/prepare/pack.h"

namespace stoker::dicom {
namespace {

constexpr const char* kSettingsSchema = "stoker.prepare_dicom/1";
constexpr const char* kPackName = "slices.pack";

// Names of folders from text of files: nothing that leads elsewhere, hides, or looks like one of ours.
std::string as_folder_name(std::string text) {
  for (char& c : text) {
    const bool is_plain =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '-';
    if (!is_plain) c = '_';
  }
  if (text.empty() || text[0] == '.' || text[0] == '_') text.insert(0, "s");
  return text.substr(0, 200);
}

class Preparation {
 public:
  explicit Preparation(const PrepareOptions& options) : options_(options) {
    while (options_.source.size() > 1 && options_.source.ends_with('/')) options_.source.pop_back();
    while (options_.destination.size() > 1 && options_.destination.ends_with('/')) options_.destination.pop_back();
    report_.source = options_.source;
    report_.destination = options_.destination;
    report_.format = options_.format;
    report_.dry_run = options_.dry_run;
    report_.part = options_.part;
    index_folder_ = options_.destination + "/_index";
    report_.index = index_folder_ + "/index.csv";
  }

  PrepareReport run() {
    const auto began = std::chrono::steady_clock::now();
    refuse_together();
    check_destination();
    if (!options_.keep_identifiers) {
      const std::string path = options_.key_file.empty() ? default_key_path() : options_.key_file;
      // A dry run of a first run writes no key either: any ids do.
      const bool is_trial = options_.dry_run && !os::exists(path);
      pseudonyms_.emplace(is_trial ? std::string("a dry run") : read_or_make_key(path));
    }
    compare_settings();
    if (!options_.dry_run) lock_destination();

    FoundFiles found = find_files(options_);
    report_.files = found.looked_at;
    sources_ = std::move(found.sources);
    report_.left_out = std::move(found.unreadable);
    plan();
    compare();
    if (options_.join) require_parts();
    if (options_.dry_run) {
      report_.notes.emplace_back(
          "a dry run reads headers and decodes nothing: files whose pixels are damaged are found when they are "
          "written");
    } else {
      write();
      if (options_.part) {
        note_part();
      } else {
        write_index();
        if (options_.format == Format::pack) write_pack();
        if (options_.join) remove_part_notes(index_folder_);
      }
    }
    std::sort(report_.left_out.begin(), report_.left_out.end(),
              [](const LeftOut& a, const LeftOut& b) { return a.path < b.path; });
    report_.idle = jobs_.empty() && !report_.pruned;
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return std::move(report_);
  }

 private:
  void refuse_together() const {
    const std::string_view word = options_.join ? "join" : "part";
    const auto refuse = [&](std::string_view other, std::string_view value) {
      throw Error(ErrorKind::usage, format_text("{} and {} do not go together", option(word), option(other, value)),
                  "leave one of them out");
    };
    if (options_.join && options_.part) refuse("part", options_.part->text());
    if ((options_.join || options_.part) && options_.dry_run) refuse("dry_run", "True");
    if (options_.part && options_.prune) refuse("prune", "True");
  }

  std::string settings_text() const {
    return Json({{"schema", kSettingsSchema},
                 {"format", name(options_.format == Format::pack ? Format::png : options_.format)},
                 {"ids", pseudonyms_ ? pseudonyms_->fingerprint() : std::string("kept")}})
        .dump();
  }

  // A folder that holds other files is refused.
  void check_destination() const {
    if (!os::exists(options_.destination) || os::exists(index_folder_ + "/prepare.json")) return;
    std::error_code error;
    const auto first = std::filesystem::directory_iterator(options_.destination, error);
    if (error)
      throw Error(ErrorKind::usage, fmt::format("cannot write into `{}`: {}", options_.destination, error.message()));
    if (first == std::filesystem::directory_iterator() || first->path().filename() == "_index") return;
    throw Error(ErrorKind::usage,
                fmt::format("cannot write into `{}`: it holds files that `stoker prepare dicom` did not write",
                            options_.destination),
                "name a new folder");
  }

  void compare_settings() const {
    const std::string path = index_folder_ + "/prepare.json";
    if (!os::exists(path)) return;
    const Json before = Json::parse_or_null(os::read_text(path)), now = Json::parse_or_null(settings_text());
    if (before == now) return;
    const Text what = before["format"] != now["format"] ? format_text("another {}", option("format"))
                      : before["ids"] == Json("kept") || now["ids"] == Json("kept")
                          ? format_text("the other choice of {}", option("keep_identifiers"))
                          : Text("another key, so its ids would not match");
    throw Error(ErrorKind::usage,
                format_text("cannot continue in `{}`: it was made with {}", options_.destination, what),
                "use the same options as before, or name a new folder");
  }

  void lock_destination() {
    os::make_folders(index_folder_);
    int error_number = 0;
    const std::string suffix = options_.part ? "-" + options_.part->folder() : "";
    lock_ = os::FileLock::try_take(fmt::format("{}/.lock{}", index_folder_, suffix), error_number);
    if (error_number == EWOULDBLOCK || (!options_.part && is_a_part_being_made())) {
      throw Error(ErrorKind::unavailable,
                  options_.part ? fmt::format("another process is writing part {} of `{}`", options_.part->text(),
                                              options_.destination)
                                : fmt::format("another process is writing into `{}`", options_.destination),
                  "wait for its end");
    }
    if (!os::exists(index_folder_ + "/prepare.json"))
      os::write_file(index_folder_ + "/prepare.json", settings_text() + "\n");
    // What a run that was killed left behind.
    aside_ = fmt::format("{}/.partial{}", index_folder_, suffix);
    std::error_code ignored;
    std::filesystem::remove_all(aside_, ignored);
    os::make_folders(aside_);
    if (options_.part) return;
    for (const auto& entry : std::filesystem::directory_iterator(index_folder_, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with('.') && name.ends_with(".part")) (void)os::remove_file(index_folder_ + "/" + name);
    }
  }

  // Also removes the lock files that parts left behind.
  bool is_a_part_being_made() const {
    bool is_made = false;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(index_folder_, ignored)) {
      if (!entry.path().filename().string().starts_with(".lock-")) continue;
      int error_number = 0;
      const os::FileLock lock = os::FileLock::try_take(entry.path().string(), error_number);
      if (lock) (void)os::remove_file(entry.path().string());
      is_made = is_made || error_number == EWOULDBLOCK;
    }
    return is_made;
  }

  // The series of this run's part, by their number in the plan.
  bool is_ours(std::size_t number) const {
    return !options_.part || number % options_.part->of == options_.part->number - 1;
  }

  // A series that the parts refused is tried again; any other one must be there.
  void require_parts() const {
    const std::set<std::string> refused = require_all_parts(index_folder_, options_.destination, plan_key_);
    for (const SeriesJob& job : jobs_) {
      if (refused.contains(job.series->name)) continue;
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot join the parts of `{}`: the series `{}` is not there, or is damaged",
                              options_.destination, job.series->name),
                  format_text("leave {} out to write what is missing", option("join")));
    }
  }

  void note_part() const {
    PartNote note{*options_.part, plan_key_, {}};
    for (const SeriesJob& job : jobs_) {
      if (!Manifest::read(options_.destination + "/" + job.series->name)) note.refused.push_back(job.series->name);
    }
    write_part_note(index_folder_, note);
  }

  std::string written_id(std::string_view kind, const std::string& value) const {
    if (pseudonyms_) return pseudonyms_->of(kind, value);
    return kind == "series" ? as_folder_name(value) : value;
  }

  void plan() {
    plan_ = plan_series(sources_,
                        [this](std::string_view kind, const std::string& value) { return written_id(kind, value); });
    report_.left_out.insert(report_.left_out.end(), plan_.left_out.begin(), plan_.left_out.end());
    std::set<std::size_t> used;
    for (const Series& series : plan_.series) {
      for (const Slice& slice : series.slices) used.insert(slice.source);
      for (const std::string& note : series.notes) report_.series_notes.push_back({series.name, note});
    }
    report_.images = used.size();
  }

  std::string line_of(const Series& series, std::size_t slice, std::size_t row, std::size_t source) const {
    const Slice& one = series.slices[slice];
    const bool is_array = options_.format == Format::npy;
    const std::string path = is_array ? series.name + "/slices.npy" : fmt::format("{}/{:05}.png", series.name, slice);
    return index_line({series, one, sources_[source].header, path, row, written_id("source", sources_[source].path)});
  }

  SeriesJob job_of(const Series& series) const {
    SeriesJob job;
    job.series = &series;
    std::set<std::size_t> inputs;
    std::string planned;
    for (std::size_t i = 0; i < series.slices.size(); ++i) {
      const std::size_t source = series.slices[i].source;
      inputs.insert(source);
      inputs.insert(series.slices[i].copies.begin(), series.slices[i].copies.end());
      job.sources.push_back(written_id("source", sources_[source].path));
      planned += line_of(series, i, i, source) + "\n";
    }
    for (const std::size_t source : inputs) {
      job.manifest.inputs.push_back(
          {written_id("source", sources_[source].path), sources_[source].bytes, sources_[source].modified_ns});
    }
    job.manifest.plan = hash_text(planned);
    job.line = [this, &series](std::size_t slice, std::size_t row, std::size_t source) {
      return line_of(series, slice, row, source);
    };
    return job;
  }

  // Which series are there, which have changed, and which have no files any more.
  void compare() {
    std::set<std::string> planned;
    for (std::size_t number = 0; number < plan_.series.size(); ++number) {
      const Series& series = plan_.series[number];
      planned.insert(series.name);
      SeriesJob job = job_of(series);
      plan_key_ = mix(mix(plan_key_, hash_text(series.name)), job.manifest.plan);
      for (const Manifest::Input& input : job.manifest.inputs)
        plan_key_ = mix(mix(plan_key_, input.bytes), static_cast<std::uint64_t>(input.modified_ns));
      if (!is_ours(number)) continue;
      ++report_.series;
      report_.slices += series.slices.size();
      const std::string folder = options_.destination + "/" + series.name;
      const auto old = Manifest::read(folder);
      const FolderState state = state_of(folder, old);
      if (state == FolderState::foreign) {
        report_.left_out.push_back(
            {sources_[series.slices.front().source].path,
             fmt::format("the folder `{}` of its series holds files that Stoker did not write", folder), false});
        ++report_.refused_series;
        continue;
      }
      if (state == FolderState::whole && old->plan == job.manifest.plan && old->inputs == job.manifest.inputs) {
        ++report_.kept;
        repeat_failures(series, job, *old);
        continue;
      }
      ++(state == FolderState::missing ? report_.added : report_.changed);
      jobs_.push_back(std::move(job));
    }
    if (!options_.part) find_removed(planned);
  }

  // A series that is up to date has the same bad slices as before: they are named in every run.
  void repeat_failures(const Series& series, const SeriesJob& job, const Manifest& old) {
    std::unordered_map<std::string_view, std::size_t> slice_of;
    for (std::size_t i = 0; i < job.sources.size(); ++i) slice_of.emplace(job.sources[i], i);
    for (const Manifest::Failed& failed : old.failed) {
      const auto slice = slice_of.find(failed.source);
      if (slice == slice_of.end()) continue;
      report_.left_out.push_back({sources_[series.slices[slice->second].source].path, failed.cause, false});
    }
  }

  void find_removed(const std::set<std::string>& planned) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(options_.destination, error)) {
      const std::string name = entry.path().filename().string(), folder = options_.destination + "/" + name;
      if (planned.contains(name)) continue;
      const auto manifest = Manifest::read(folder);
      if (!manifest) continue;
      report_.removed.push_back(name);
      if (!options_.prune || options_.dry_run) continue;
      remove_series(folder, *manifest);
      report_.pruned = true;
    }
    std::sort(report_.removed.begin(), report_.removed.end());
  }

  void write() {
    if (!jobs_.empty()) SeriesWriter(options_, sources_, aside_).write(jobs_, report_);
    std::error_code ignored;
    std::filesystem::remove_all(aside_, ignored);
  }

  // From the manifests, so that it holds what is there, also series of earlier runs whose files are gone.
  void write_index() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(options_.destination)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    std::string text = std::string(kIndexColumns) + "\n", volumes = "image\n";
    report_.series = report_.slices = 0;
    for (const std::string& name : names) {
      const auto manifest = Manifest::read(options_.destination + "/" + name);
      if (!manifest) continue;
      ++report_.series;
      report_.slices += manifest->lines.size();
      for (const std::string& line : manifest->lines) text += line + "\n";
      volumes += name + (options_.format == Format::npy ? "/slices.npy\n" : "\n");
    }
    if (const std::string path = index_folder_ + "/volumes.csv";
        !os::exists(path) || os::read_text(path, std::uint64_t{1} << 40) != volumes) {
      os::write_file(path, volumes);
    }
    if (os::exists(report_.index) && os::read_text(report_.index, std::uint64_t{1} << 40) == text) return;
    os::write_file(report_.index, text);
  }

  void write_pack() {
    if (report_.slices == 0) return;
    prepare::PackOptions options;
    options.source = report_.index;
    options.destination = options_.destination + "/" + kPackName;
    const bool is_one_size = std::all_of(plan_.series.begin(), plan_.series.end(), [&](const Series& series) {
      return series.rows == plan_.series[0].rows && series.columns == plan_.series[0].columns;
    });
    options.kind = is_one_size ? dataset::PackKind::raw : dataset::PackKind::encoded;
    options.color = codec::Color::keep;
    if (options_.workers > 0) options.num_workers = options_.workers;
    options.progress = [this](const prepare::PackProgress& progress) {
      return !options_.progress || options_.progress({"packing", progress.done, progress.total});
    };
    const prepare::PackReport packed = prepare::make_pack(options);
    report_.notes.push_back(fmt::format("`{}`: {} slices, {}", options.destination, packed.count, packed.content));
  }

  PrepareOptions options_;
  std::string index_folder_, aside_;
  std::optional<Pseudonyms> pseudonyms_;  // none: ids are kept
  os::FileLock lock_;
  std::vector<Source> sources_;
  SeriesPlan plan_;
  std::vector<SeriesJob> jobs_;
  std::uint64_t plan_key_ = 0;  // of all series and their files
  PrepareReport report_;
};

}  // namespace

std::string_view name(Format format) noexcept {
  return format == Format::png ? "png" : format == Format::npy ? "npy" : "pack";
}

Format parse_format(std::string_view text) {
  for (const Format format : {Format::png, Format::npy, Format::pack}) {
    if (text == name(format)) return format;
  }
  throw Error(ErrorKind::usage, fmt::format("there is no format `{}`", text), "png, npy or pack");
}

std::uint64_t PrepareReport::refused() const noexcept {
  return static_cast<std::uint64_t>(
      std::count_if(left_out.begin(), left_out.end(), [](const LeftOut& one) { return !one.is_ignored; }));
}

PrepareReport prepare(const PrepareOptions& options) {
  return Preparation(options).run();
}

}  // namespace stoker::dicom
