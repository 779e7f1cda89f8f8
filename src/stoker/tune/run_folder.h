// The folder of one search: config.json, results.csv (each row on disk before the next trial starts), results.json
// and trials/. One process at a time holds it. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/os/append_file.h"
#include "stoker/os/file_lock.h"
#include "stoker/tune/choose.h"
#include "stoker/tune/row.h"
#include "stoker/tune/run_config.h"

namespace stoker::tune {

class RunFolder {
 public:
  // A new folder `path`, which must not exist or be empty. `config` is what the search is: a resumed one must have the
  // same. Throws Error.
  static RunFolder make(const std::string& path, const RunConfig& config);
  // One that was made before. Another experiment's is refused, and so is one whose `data` was another. A row that was
  // cut short by a crash is dropped, and a trial that a killed tuner left running is ended.
  static RunFolder resume(const std::string& path, const RunConfig& config);

  const std::string& path() const noexcept { return path_; }
  const std::vector<Row>& rows() const noexcept { return rows_; }  // in the order of their trials
  std::uint64_t next_trial() const noexcept;
  std::string trial_folder(std::uint64_t trial, const Point& knobs);  // made, with its config.json

  void add(const Row& row);  // durable when this returns
  // What a trial reported that it uses, its own defaults too: `used` of config.json, with image size and window. The
  // first that reports any counts. Knobs are left out: they differ from trial to trial.
  void note_settings(const Json& settings);
  // Removes it again, if no trial has run: what it holds then is ours alone, and says nothing.
  void discard() noexcept;
  // results.json, from all rows and `more`.
  void write_results(const Choice& choice, const Json& more) const;

 private:
  RunFolder(std::string path, const RunConfig& config);
  void lock();

  std::string path_;
  std::vector<std::string> knobs_;
  std::vector<Row> rows_;
  os::FileLock lock_;
  os::AppendFile csv_;
  bool has_settings_ = false;
};

// A row as JSON, with null for what is not known.
Json to_json(const Row& row);
Json to_json(const Choice& choice, const std::vector<Row>& rows);

}  // namespace stoker::tune
