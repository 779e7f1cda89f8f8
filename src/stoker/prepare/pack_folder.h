// Where a pack is made: a hidden folder beside its destination, which takes the destination's name in one step when it
// is whole. Holds the lock that keeps a second packer out. One thread.
//
//   train.pack            the pack, whole, old or new; never half of one
//   .train.pack.part/     what is being made; left behind by a kill, and continued by the next run
//   .train.pack.lock      flock(2); left behind by a kill, without effect
#pragma once

#include <string>

#include "stoker/dataset/pack_format.h"
#include "stoker/os/file_lock.h"

namespace stoker::prepare {

class PackFolder {
 public:
  // Throws Error(unavailable) if another process is making this pack.
  explicit PackFolder(const std::string& destination);
  ~PackFolder() { release(); }
  PackFolder(const PackFolder&) = delete;
  PackFolder& operator=(const PackFolder&) = delete;

  const std::string& destination() const noexcept { return destination_; }
  const std::string& part() const noexcept { return part_; }
  std::string parent() const;  // the folder that both are in

  void make_part();         // the folder, if it is not there
  void empty_part() const;  // removes the files in it
  bool has_part() const;
  bool is_part_unused() const;  // there, and empty
  // Gives a file of the old pack a second name in the new one; copies it where links cannot be made.
  void take_over(const std::string& name) const;
  // The folder takes the destination's name, in one step; what had the name before is removed, and so is what a killed
  // run left in the folder that `pack` does not name.
  void commit(const dataset::PackManifest& pack);
  void release() noexcept;  // gives the lock back

 private:
  std::string destination_, part_, lock_path_;
  os::FileLock lock_;
};

// Throws Error(usage) if a PackBuilder left unfinished rows there, unless `force` throws them away.
void refuse_unfinished_rows(const PackFolder& folder, bool force);

// Removes a folder of plain files, and nothing else. False if it held anything else and stays.
bool remove_flat_folder(const std::string& path);

}  // namespace stoker::prepare
