// Which samples exist: a folder tree, an index.csv, a bare .npy, a pack, tar shards, a list; and subsets or repetitions
// of any of them.
// Data sets are immutable once opened, and safe from any thread. What a call returns is borrowed from the data set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/codec/codec.h"
#include "stoker/storage/location.h"
#include "stoker/storage/source.h"

namespace stoker::storage {
class HandOver;
}

namespace stoker::dataset {

class VolumeSet;

enum class LabelKind : std::uint8_t { none, integer, real };

struct Label {
  std::int64_t integer = -1;  // class index or whole number; -1 without labels
  float real = 0;             // LabelKind::real
};

// Data that is there and could not be listed: a folder that may not be read, a damaged part of a tar shard.
struct Loss {
  std::string name;  // of the folder or shard, as in messages
  std::string cause;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // 0: not known

  std::string message() const;  // one sentence
};

// The random key of a row: the same key gives the same choice.
struct RowKey {
  std::uint64_t seed = 0, epoch = 0, id = 0;
};

// What is true of the whole data set.
struct Facts {
  std::string address;            // as the user gave it
  std::string kind;               // "folder", "index.csv", "npy", "raw pack", "encoded pack", "tar", "list";
                                  // wrappers add to it: "folder, subset 1000"
  std::uint64_t fingerprint = 0;  // of names, sizes and labels; a resumed run compares it
  // What else the fingerprint depends on, as name and value, so that a message can say what differs. May be empty.
  std::vector<std::pair<std::string, std::string>> settings;
  std::uint64_t total_bytes = 0;    // of the stored samples
  std::uint64_t largest_bytes = 0;  // of all parts of a row together
  std::uint32_t most_parts = 1;     // of a row: see Dataset::parts
  LabelKind label_kind = LabelKind::none;
  std::vector<std::string> label_columns;    // of an index.csv, where samples have several labels
  std::vector<std::string> classes;          // sorted names, where labels are class indices
  std::vector<std::string> columns;          // further columns of an index.csv, by name
  std::string path_column, label_column;     // of an index.csv: their names; no label, or several: empty
  std::optional<codec::ArrayInfo> array;     // npy, raw pack: of all samples together; the first dimension counts them
  std::shared_ptr<const VolumeSet> volumes;  // samples are patches of them: see volumes.h; else null
  std::string seek_path;                     // where places in its JPEG files may be kept; empty: nowhere
  std::string pack_seek_path;                // where a pack brings them along; empty: it does not
  bool sizes_may_be_stale = false;           // sizes come from a cached listing; a reader takes a file as it is now
  std::vector<Loss> losses;                  // only with OpenOptions::skip_losses
  std::vector<std::string> notes;  // things worth saying once: skipped hidden files, ignored extensions, loops
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual const Facts& facts() const noexcept = 0;
  virtual std::uint64_t size() const noexcept = 0;
  virtual std::uint64_t id(std::uint64_t index) const noexcept = 0;  // stable under additions; below 2^63
  // Where its bytes are. `text` is for the name of a file or object; storage::kLocationText is always enough. Where it
  // is empty or too small, the name is left out: everything else is known without it.
  virtual storage::Location locate(std::uint64_t index, std::span<char> text) const noexcept = 0;
  storage::Location location(std::uint64_t index) const noexcept { return locate(index, {}); }  // without the name
  virtual Label label(std::uint64_t index) const noexcept = 0;
  // The label in one of Facts::label_columns, where there are several.
  virtual Label label_at(std::uint64_t index, [[maybe_unused]] std::size_t column) const noexcept {
    return label(index);
  }
  virtual codec::Media media(std::uint64_t index) const noexcept = 0;  // by name; content decides at decode time
  virtual std::string name(std::uint64_t index) const = 0;             // for people: relative path, or "x.npy[17]"
  virtual double column(std::size_t column, std::uint64_t index) const noexcept = 0;  // NaN where not a number
  virtual std::string column_text(std::size_t, std::uint64_t) const { return {}; }    // as it was written

  // The parts that a row needs, chosen before anything is read: the ranges of a random patch, say. The choice depends
  // on index and key alone. A row is the bytes of its parts, one after another. Every sample is one part, at locate(),
  // unless Facts::most_parts says more.
  virtual std::uint32_t parts(std::uint64_t, const RowKey&) const noexcept { return 1; }
  virtual storage::Location locate_part(std::uint64_t index, const RowKey&, std::uint32_t /*part*/,
                                        std::span<char> text) const noexcept {
    return locate(index, text);
  }

  // The sources that samples lie in; empty where every sample is a file or object of its own.
  virtual std::span<const storage::Source* const> sources() const noexcept { return {}; }
  // The backends that hold its bytes, each once; empty: local files.
  virtual std::span<const storage::Backend* const> backends() const noexcept { return {}; }
  // What opening read of them and left in memory for the first epoch; null: nothing.
  virtual std::shared_ptr<storage::HandOver> hand_over() const noexcept { return nullptr; }
  // The number of the stored sample behind an index, below size() if none is there twice; copies share theirs.
  virtual std::uint64_t stored(std::uint64_t index) const noexcept { return index; }
  virtual std::uint64_t stored_count() const noexcept { return size(); }
  // The index that the sample has in the innermost data set, below all subsets and copies.
  virtual std::uint64_t base_index(std::uint64_t index) const noexcept { return index; }

  // What the list of samples itself takes: names, sizes, labels. Not what is mapped from files.
  virtual std::uint64_t memory_bytes() const noexcept { return 0; }
};

using DatasetPtr = std::shared_ptr<const Dataset>;

// Called now and then while a scan runs: files seen so far. Returning false ends the scan with Error(unavailable,
// "interrupted").
using Progress = std::function<bool(std::uint64_t seen)>;

// Where the list of objects below an address of a store comes from: see object_listing.h.
enum class UseListing : std::uint8_t {
  fresh,  // the store is asked at each start
  kept,   // it is asked once, and the answer is kept in the cache folder
};
inline constexpr std::array<std::string_view, 2> kListingWords = {"fresh", "kept"};

struct OpenOptions {
  std::string label;                       // index.csv: the label column; empty: `label` where there is one
  std::vector<std::string> label_columns;  // index.csv: several of them instead, each of numbers
  storage::Storage storage = storage::Storage::buffered;  // npy, pack, tar: how the files are opened
  std::string cache_dir;  // listings are kept here; empty: $XDG_CACHE_HOME/stoker or ~/.cache/stoker
  bool use_cache = true;
  // What opening reads of tar shards in a store is not read again in the first epoch: with a cache_limit it goes into
  // the disk cache (object_cache.h), as far as there is room; else it stays in memory (Dataset::hand_over), up to half
  // of memory_limit. 0: it is not kept. memory_limit also bounds what opening reads at a time.
  std::uint64_t memory_limit = 0, cache_limit = 0;
  UseListing listing = UseListing::fresh;
  // What cannot be listed is left out and named in Facts::losses; false: it is an error.
  bool skip_losses = false;  // true: a missing file that an index.csv or list names stays, with 0 bytes and a note
  int threads = 0;           // of the scan; 0: effective cores
  Progress progress;
  std::function<std::int64_t()> now_ns;  // since 1970; empty: the system's clock (tests pass their own)
  // Narrowing and widening, in this order.
  std::string where;                    // an expression over the columns: see where.h; empty: all
  std::vector<std::string> class_list;  // classes by name; empty: all
  std::uint64_t class_subset = 0;       // 0: all classes
  std::uint64_t class_subset_seed = 42;
  std::uint64_t subset = 0;  // 0: all samples
  std::uint64_t subset_seed = 42;
  std::uint64_t inflate = 1;  // repeat the data set this number of times, without copying
};

// `address`: a folder, a .csv, a .npy, a .pack, a .tar or several as shards-{000..099}.tar of local files or a store.
// Throws Error. Folder: classes are the sub-folders, sorted, as with torchvision's ImageFolder; a flat folder has no
// labels. .csv: the path column is the first found of path, file, filename, file_name, filepath, file_path,
// relative_path, rel_path, image, image_path, img_path, img, png_path, jpg_path, jpeg_path, wav_path, audio_path,
// audio, npy_path, npz_path (in any case), else the first whose first value is a file. Paths are below the csv's
// folder, or the one above if that folder is `_index`. The file must not be rewritten in place while open (a new one
// renamed over it is fine).
DatasetPtr open(const std::string& address, const OpenOptions& options = {});
// A list of files with labels; `label_kind` none ignores the labels. Sizes are looked up (in parallel). `classes` are
// the names of integer labels, which count from 0; none: they have no names. The ids of samples are hashes of their
// paths; `ids_are_places`: the places in the list, so that random draws do not depend on where the files lie.
DatasetPtr from_list(std::vector<std::pair<std::string, Label>> samples, LabelKind label_kind,
                     const OpenOptions& options = {}, std::vector<std::string> classes = {},
                     bool ids_are_places = false);

// The wrappers that OpenOptions names, for use on any data set.
DatasetPtr take_subset(DatasetPtr dataset, std::uint64_t count, std::uint64_t seed);  // sorted by index
DatasetPtr take_indices(DatasetPtr dataset, std::vector<std::uint64_t> indices);      // in the order given
// Classes are renumbered, in the order of their names. The classes that a seed draws depend on the names alone, so that
// a folder, a store and a pack of the same classes give the same ones: docs/how-to/local-copy.md has the rule.
DatasetPtr take_classes(DatasetPtr dataset, std::uint64_t count, std::uint64_t seed);
DatasetPtr take_class_list(DatasetPtr dataset, const std::vector<std::string>& names);  // all of them must be there
DatasetPtr inflate(DatasetPtr dataset, std::uint64_t times);                            // copies have ids of their own

// {"seed":…, "count":…, "ids":[…], "paths":[…]}: what a subset holds, written whole or not at all.
void write_subset_json(const Dataset& dataset, std::uint64_t seed, const std::string& path);

}  // namespace stoker::dataset
