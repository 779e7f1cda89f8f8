#include "stoker/storage/cache_writer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/os/thread.h"
#include "stoker/storage/object_cache.h"

namespace stoker::storage {

std::vector<std::uint64_t> CacheWriter::Inbox::take() {
  (void)event_.take();
  const std::scoped_lock lock(mutex_);
  return std::exchange(tags_, {});
}

CacheWriter::CacheWriter(ObjectCache& cache) : cache_(cache) {
  thread_ = os::start_thread([this] { run(); });
}

CacheWriter::~CacheWriter() {
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool CacheWriter::offer(const Job& job) {
  {
    const std::scoped_lock lock(mutex_);
    if (!jobs_.empty() && waiting_bytes_ + job.bytes.size() > kMostWaiting) return false;
    jobs_.push_back(job);
    waiting_bytes_ += job.bytes.size();
    if (jobs_.size() > 1) return true;  // the thread is awake
  }
  changed_.notify_all();
  return true;
}

void CacheWriter::cancel(Inbox& inbox) {
  std::vector<CacheKey> released;
  {
    std::unique_lock lock(mutex_);
    for (std::size_t i = jobs_.size(); i-- > 1;) {
      if (jobs_[i].inbox != &inbox) continue;
      released.push_back(jobs_[i].key);
      waiting_bytes_ -= jobs_[i].bytes.size();
      jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    changed_.wait(lock, [&] { return jobs_.empty() || jobs_.front().inbox != &inbox; });
  }
  for (const CacheKey& key : released) cache_.release(key);
}

void CacheWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = jobs_.front();
    lock.unlock();
    (void)cache_.store(job.key, job.bytes, job.use);
    {
      const std::scoped_lock inbox(job.inbox->mutex_);
      job.inbox->tags_.push_back(job.tag);
      job.inbox->event_.raise();
    }
    lock.lock();
    jobs_.pop_front();
    waiting_bytes_ -= job.bytes.size();
    changed_.notify_all();  // cancel() may wait for this
  }
}

}  // namespace stoker::storage
