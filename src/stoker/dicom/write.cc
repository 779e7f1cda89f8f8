#include "stoker/dicom/write.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/os/cpu.h"
#include "stoker/os/fd.h"
#include "stoker/os/file.h"
#include "stoker/os/folder_entries.h"
#include "stoker/os/read_file.h"
#include "stoker/os/sync.h"
#include "stoker/os/write_all.h"
#include "stoker/os/write_at.h"

namespace stoker::dicom {
namespace {

constexpr const char* kArrayName = "slices.npy";
constexpr std::size_t kFramesAtOnce = 16;  // of a native multi-frame file in one request
constexpr std::uint64_t kWorkerSlack =
    256 * kMiB;  // address space of a worker beyond what decoding takes: libraries, heap
constexpr auto kTick = std::chrono::milliseconds(100);

std::string slice_name(std::size_t number) {
  return fmt::format("{:05}.png", number);
}

std::uint64_t array_row_bytes(const Series& series) {
  return std::uint64_t{series.rows} * series.columns * 2;
}

std::uint64_t array_offset(const Series& series, std::size_t row) {
  return dataset::kPackDataOffset + row * array_row_bytes(series);
}

std::string array_header(const Series& series, std::size_t slices) {
  const std::array<std::uint64_t, 3> shape = {slices, series.rows, series.columns};
  return dataset::npy_header(DType::u16, shape);
}

void check_write(int error_number, const std::string& path) {
  if (error_number != 0) throw system_error(error_number, "write", path);
}

std::size_t worker_count(const PrepareOptions& options) {
  return static_cast<std::size_t>(options.workers > 0 ? options.workers : os::effective_cores().whole());
}

std::vector<std::string> worker_command(const PrepareOptions& options) {
  std::vector<std::string> command = options.worker_command;
  command.push_back(std::to_string(options.memory_limit + kWorkerSlack));
  return command;
}

}  // namespace

SeriesWriter::SeriesWriter(const PrepareOptions& options, const std::vector<Source>& sources, std::string aside)
    : options_(options),
      sources_(sources),
      aside_(std::move(aside)),
      pool_(worker_command(options), {.workers = worker_count(options), .memory_bytes = options.memory_limit}),
      workers_(worker_count(options)) {}

// Native files are read frame by frame; GDCM holds the file and all its frames, once encoded and once as pixels.
std::uint64_t SeriesWriter::memory_of(const Header& header) const noexcept {
  const std::uint64_t frame = std::uint64_t{header.rows} * header.columns * 2;
  if (header.syntax.packing == Packing::encapsulated) return 3 * frame * header.frames + 4 * frame;
  if (header.syntax.is_deflated) return 2 * frame * header.frames + 4 * frame;
  return 6 * frame;
}

void SeriesWriter::start(SeriesJob& job) {
  Open open;
  open.job = &job;
  open.folder = aside_ + "/" + job.series->name;
  open.bytes.assign(job.series->slices.size(), 0);
  open.errors.assign(job.series->slices.size(), "");
  for (const Slice& slice : job.series->slices) open.sources.push_back(slice.source);
  check_write(os::make_folder(open.folder), open.folder);
  if (is_array()) {
    const std::string path = open.folder + "/" + kArrayName,
                      header = array_header(*job.series, job.series->slices.size());
    const os::Fd file = os::open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    check_write(os::write_all(file.get(), std::as_bytes(std::span(header))), path);
  }
  open_.push_back(std::move(open));

  // One request for each file; in the order of the series.
  std::map<std::size_t, std::size_t> place;  // of a source in `files`
  std::vector<std::vector<std::size_t>> files;
  for (std::size_t i = 0; i < job.series->slices.size(); ++i) {
    const std::size_t source = job.series->slices[i].source;
    const auto [at, is_new] = place.emplace(source, files.size());
    const bool is_encapsulated = sources_[source].header.syntax.packing == Packing::encapsulated;
    const bool is_full = !is_new && !is_encapsulated && files[at->second].size() >= kFramesAtOnce;
    if (is_full) at->second = files.size();
    if (is_new || is_full) files.emplace_back();
    files[at->second].push_back(i);
  }
  for (std::vector<std::size_t>& slices : files) {
    const std::size_t source = job.series->slices[slices.front()].source;
    ask(open_.size() - 1, source, std::move(slices));
  }
  if (open_.back().unanswered == 0) finish_slices(open_.size() - 1);  // all of them are too large
}

void SeriesWriter::ask(std::size_t number, std::size_t from, std::vector<std::size_t> slices) {
  Open& open = open_[number];
  const Series& series = *open.job->series;
  const Source& source = sources_[from];
  const std::uint64_t memory = memory_of(source.header);
  if (memory > options_.memory_limit) {
    for (const std::size_t i : slices) {
      open.errors[i] = fmt::format("decoding it takes about {}, above the limit of {}", format_bytes(memory),
                                   format_bytes(options_.memory_limit));
    }
    done_ += slices.size();
    return;
  }
  Json frames = Json::array(), places = Json::array();
  for (const std::size_t i : slices) {
    frames.push_back(series.slices[i].frame);
    places.push_back(is_array() ? Json(array_offset(series, i)) : Json(open.folder + "/" + slice_name(i)));
  }
  Json request = {{"do", "slices"},
                  {"path", options_.source + "/" + source.path},
                  {"rows", series.rows},
                  {"columns", series.columns}};
  request["frames"] = std::move(frames);
  if (is_array()) request["array"] = open.folder + "/" + kArrayName;
  request[is_array() ? "at" : "to"] = std::move(places);
  pool_.submit({asked_.size(), request.dump(), memory});
  asked_.push_back({number, std::move(slices), from});
  ++open.unanswered;
}

// Asks for slices again that `source` did not give, from the next copy of it. False: there is none.
bool SeriesWriter::ask_copy(std::size_t number, std::size_t source, const std::vector<std::size_t>& slices) {
  Open& open = open_[number];
  const Slice& first = open.job->series->slices[slices.front()];
  const auto tried = std::find(first.copies.begin(), first.copies.end(), source);
  const auto next = source == first.source ? first.copies.begin() : std::next(tried);
  if (next == first.copies.end()) return false;
  for (const std::size_t slice : slices) {
    if (source == first.source) open.replaced[slice] = open.errors[slice];
    open.errors[slice].clear();
    open.sources[slice] = *next;
  }
  const std::size_t copy = *next;
  done_ -= slices.size();
  ask(number, copy, slices);
  return true;
}

void SeriesWriter::take(const Answer& answer) {
  const Asked asked = asked_[answer.id];
  const std::size_t number = asked.open;
  Open& open = open_[number];
  --open.unanswered;
  if (answer.json.contains("stop")) throw Error(ErrorKind::unavailable, answer.json["stop"].text());
  const std::string whole = !answer.failure.empty()         ? answer.failure
                            : answer.json.contains("error") ? answer.json["error"].text()
                                                            : "";
  if (asked.slices.empty()) {
    if (!whole.empty())
      throw Error(ErrorKind::unavailable, fmt::format("cannot write `{}` to the disk: {}", open.folder, whole));
    publish(open);
    return;
  }
  for (std::size_t i = 0; i < asked.slices.size(); ++i) {
    const std::size_t slice = asked.slices[i];
    open.errors[slice] = !whole.empty() ? whole : answer.json.at("errors").at(i).text();
    if (open.errors[slice].empty()) open.bytes[slice] = answer.json.at("bytes").at(i).get<std::uint64_t>();
  }
  done_ += asked.slices.size();
  std::vector<std::size_t> failed;
  for (const std::size_t slice : asked.slices) {
    if (!open.errors[slice].empty()) failed.push_back(slice);
  }
  if (!failed.empty()) ask_copy(number, asked.source, failed);
  if (open.unanswered == 0) finish_slices(number);
}

// All requests of the series are answered: what is there becomes the manifest, and then goes to the disk.
void SeriesWriter::finish_slices(std::size_t number) {
  Open& open = open_[number];
  Manifest& manifest = open.job->manifest;
  const Series& series = *open.job->series;
  std::size_t written = 0;
  std::string last;  // one sentence for a file, not for each of its frames
  for (std::size_t i = 0; i < series.slices.size(); ++i) {
    if (open.errors[i].empty()) {
      manifest.lines.push_back(open.job->line(i, is_array() ? written : 0, open.sources[i]));
      if (const auto replaced = open.replaced.find(i); replaced != open.replaced.end()) {
        const std::string& path = sources_[series.slices[i].source].path;
        const std::string cause =
            fmt::format("{}; its copy `{}` is used", replaced->second, sources_[open.sources[i]].path);
        if (path != last) {
          report_->left_out.push_back({path, cause, false});
          manifest.failed.push_back({open.job->sources[i], replaced->second + "; a copy of it is used"});
        }
        last = path;
      }
      if (!is_array()) manifest.outputs.push_back({slice_name(i), open.bytes[i]});
      report_->bytes_written += open.bytes[i];
      ++written;
      continue;
    }
    if (!is_array()) (void)os::remove_file(open.folder + "/" + slice_name(i));  // what a crash left of it
    const std::string& path = sources_[series.slices[i].source].path;
    if (path != last) {
      report_->left_out.push_back({path, open.errors[i], false});
      manifest.failed.push_back({open.job->sources[i], open.errors[i]});
    }
    last = path;
  }
  if (written == 0) {
    ++report_->refused_series;
    --(os::exists(options_.destination + "/" + series.name) ? report_->changed : report_->added);
    if (is_array()) (void)os::remove_file(open.folder + "/" + kArrayName);
    (void)os::remove_empty_folder(open.folder);
    return;
  }
  if (is_array()) close_array(open, written);
  report_->slices_written += written;
  os::write_file(open.folder + "/" + kManifestName, manifest.to_text());
  pool_.submit({asked_.size(), Json({{"do", "sync"}, {"folder", open.folder}}).dump(), 0});
  asked_.push_back({number, {}});
  ++open.unanswered;
}

// Moves the rows behind one that failed, and says in the header how many there are.
void SeriesWriter::close_array(Open& open, std::size_t written) {
  const Series& series = *open.job->series;
  const std::string path = open.folder + "/" + kArrayName;
  const std::uint64_t size = array_offset(series, written);
  if (written < series.slices.size()) {
    const os::Fd file = os::open_file(path, O_RDWR);
    std::vector<std::byte> row(array_row_bytes(series));
    std::size_t to = 0;
    for (std::size_t from = 0; from < series.slices.size(); ++from) {
      if (!open.errors[from].empty()) continue;
      if (from != to) {
        os::read_exactly(file.get(), row, array_offset(series, from), path);
        check_write(os::write_all_at(file.get(), row, array_offset(series, to)), path);
      }
      ++to;
    }
    const std::string header = array_header(series, written);
    check_write(os::write_all_at(file.get(), std::as_bytes(std::span(header)), 0), path);
    check_write(os::set_file_size(file.get(), size), path);
  }
  open.job->manifest.outputs.push_back({kArrayName, size});
}

void SeriesWriter::publish(Open& open) {
  const std::string path = options_.destination + "/" + open.job->series->name;
  if (const auto old = Manifest::read(path)) {
    // Both change their names in one step. Where that is not possible, the old one goes first.
    const int error_number = os::exchange_entries(open.folder, path);
    if (error_number == 0) {
      remove_series(open.folder, *old);
    } else {
      remove_series(path, *old);
      check_write(os::rename_entry(open.folder, path), path);
    }
  } else {
    check_write(os::rename_entry(open.folder, path), path);
  }
  const os::Fd folder = os::open_file(options_.destination, O_RDONLY | O_DIRECTORY);
  check_write(os::sync_folder(folder.get()), options_.destination);
  open.bytes = {};
  open.errors = {};
  open.sources = {};
}

void SeriesWriter::write(std::vector<SeriesJob>& jobs, PrepareReport& report) {
  report_ = &report;
  std::uint64_t total = 0;
  for (const SeriesJob& job : jobs) total += job.series->slices.size();
  std::size_t next = 0;
  std::vector<Answer> answers;
  while (next < jobs.size() || pool_.unanswered() > 0) {
    while (next < jobs.size() && pool_.unanswered() < 2 * workers_) start(jobs[next++]);
    answers.clear();
    pool_.poll(kTick, answers);
    for (const Answer& answer : answers) take(answer);
    if (options_.progress && !options_.progress({"writing", done_, total})) {
      throw Error(ErrorKind::unavailable, "interrupted");
    }
  }
}

}  // namespace stoker::dicom
