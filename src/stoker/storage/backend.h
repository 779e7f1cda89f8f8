// A place where data lies: local files, S3. Found by the scheme of an address, "s3" of s3://bucket/key. A backend
// opens single objects as sources, lists what lies below an address, and fetches many objects at once.
// Immutable, safe from any thread, and there until the process ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/storage/fetcher.h"
#include "stoker/storage/object_writer.h"
#include "stoker/storage/source.h"

namespace stoker::storage {

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view scheme() const noexcept = 0;  // without "://"
  // Tells two stores of one scheme apart in caches: the scheme and, where it may differ, the address of the service as
  // the environment names it now. Throws Error.
  virtual std::string identity() const { return std::string(scheme()); }
  virtual ReadAdvice advice() const noexcept = 0;  // for objects that are read whole
  // What a user should know of how the store is reached, such as a credentials file that others can read. Throws Error.
  virtual std::vector<std::string> notes() const { return {}; }

  // Names are addresses without scheme and "://". Both throw Error.
  virtual std::unique_ptr<Source> open(std::string_view name, Storage storage) const = 0;

  struct Object {
    std::string_view name;
    std::uint64_t bytes = 0;
    std::string_view version;  // changes with the content (an ETag); empty: the store has none
  };
  // Calls take() for every object below the folder `name`, in the bytewise order of their names. False from take() ends
  // the listing.
  using Take = std::function<bool(const Object&)>;
  virtual bool can_list() const noexcept { return true; }  // false: list() throws Error(unsupported)
  virtual void list(std::string_view name, const Take& take) const = 0;

  // Writes an object, replacing one of that name; removes one, also if there is none. Stores that cannot throw
  // Error(unsupported), as this does.
  virtual std::unique_ptr<ObjectWriter> create(std::string_view name) const;
  virtual void remove(std::string_view name) const;

  // `fallback_reason` (if given): why it is slower than it could be, else empty.
  virtual std::unique_ptr<Fetcher> make_fetcher(const FetcherOptions& options, std::string* fallback_reason) const = 0;
};

// An address in its two parts. A path has no scheme, and is its own name.
struct Address {
  std::string_view scheme, name;
};
Address split_address(std::string_view address) noexcept;

// A file:// address as a path; any other address as it is.
std::string without_file_scheme(const std::string& address);

// Local files. Their list follows no links; data sets read folders with dataset/scan.h, which is faster and knows
// links.
const Backend& local_files() noexcept;

// The backend of a scheme; local files for none. Null: this build has no such backend.
const Backend* find_backend(std::string_view scheme) noexcept;
// The store that an address lies in; null: it is a local path, or no backend has its scheme.
const Backend* store_of(std::string_view address) noexcept;
// The build option that adds the backend of a scheme; empty: no option does.
std::string_view option_of(std::string_view scheme) noexcept;

// How what lies there is best read.
ReadAdvice advice_on(const Location& location) noexcept;

// What tests add to the table, while it lives. Not while another thread opens data sets.
class AddedBackend {
 public:
  explicit AddedBackend(const Backend& backend);
  ~AddedBackend();
  AddedBackend(const AddedBackend&) = delete;
  AddedBackend& operator=(const AddedBackend&) = delete;

 private:
  const Backend& backend_;
};

// One fetcher for data that lies in `backends` (null: local files; none: the same). With one backend it is that
// backend's own; with several it passes each read to the right one, and waits for all of them in one place.
// Stores are read through `options.cache`, if there is one.
std::unique_ptr<Fetcher> make_fetcher(const FetcherOptions& options, std::span<const Backend* const> backends,
                                      std::string* fallback_reason = nullptr);

}  // namespace stoker::storage
