#include "stoker/storage/s3/parallel_list.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/os/thread.h"
#include "stoker/storage/interruption.h"

namespace stoker::storage::s3 {
namespace {

constexpr std::size_t kListedAtOnce = 16;
constexpr std::size_t kPagesAhead = 4;       // of one range
constexpr std::size_t kRanges = 64;          // at most; each may cost a request more than one long listing
constexpr std::size_t kFolderPages = 16;     // of names of folders
constexpr int kLevels = 8;                   // of folders that hold one folder and nothing else
constexpr std::size_t kWorthARequest = 100;  // objects of a folder, where each folder takes a request

// What one thread lists.
struct ListRange {
  std::string prefix, start_after;
  std::string end;  // the first key that belongs to the next range; empty: none does
  std::deque<ListPage> pages;
  bool is_done = false;
  std::exception_ptr error;
};

struct Folders {
  std::vector<std::string> names;     // whole prefixes
  std::vector<ListedObject> objects;  // beside them
  bool is_whole = true;               // else there are more of both
};

Folders find_folders(const AskPage& ask, const std::string& prefix) {
  Folders found;
  PageQuestion question{prefix, "/", "", ""};
  for (std::size_t pages = 0;; ++pages) {
    ListPage page = ask(question);
    std::move(page.prefixes.begin(), page.prefixes.end(), std::back_inserter(found.names));
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(found.objects));
    if (page.next.empty() || page.next == question.token) break;
    const bool is_flat = found.names.size() < 2 && !found.objects.empty();
    if (pages + 1 == kFolderPages || is_flat) {
      found.is_whole = false;
      break;
    }
    question.token = std::move(page.next);
  }
  std::sort(found.names.begin(), found.names.end());
  found.names.erase(std::unique(found.names.begin(), found.names.end()), found.names.end());
  return found;
}

// How many objects of the page a folder below `prefix` has, on average.
std::size_t objects_per_folder(const ListPage& page, std::string_view prefix) {
  std::set<std::string_view> folders;
  for (const ListedObject& object : page.objects) {
    const std::string_view key = object.key;
    folders.insert(key.substr(0, key.find('/', std::min(prefix.size(), key.size()))));
  }
  return page.objects.size() / std::max<std::size_t>(1, folders.size());
}

// Notices a listing that would never end, because the store gives keys again under other tokens, or none at all.
class PagesMoveOn {
 public:
  explicit PagesMoveOn(const std::string& subject) : subject_(subject) {}

  void check(const ListPage& page) {
    if (page.objects.empty()) {  // a store may skip many deleted objects
      if (!page.next.empty() && ++empty_ > kMostEmptyPages) fail("pages without keys do not end");
      return;
    }
    empty_ = 0;
    std::uint64_t keys = 0;  // in whatever order
    for (const ListedObject& object : page.objects) keys += hash_text(object.key);
    if (!seen_.insert(keys).second) fail("the store gives the same keys on several pages");
  }

 private:
  static constexpr int kMostEmptyPages = 1000;  // in a row

  [[noreturn]] void fail(std::string_view cause) const {
    throw Error(ErrorKind::corrupt, fmt::format("cannot list `{}`: {}", subject_, cause));
  }

  const std::string& subject_;
  int empty_ = 0;
  std::set<std::uint64_t> seen_;
};

void list_one_by_one(const AskPage& ask, PageQuestion question, const UsePage& use, const std::string& subject) {
  PagesMoveOn moves_on(subject);
  for (;;) {
    ListPage page = ask(question);
    moves_on.check(page);
    const std::string next = page.next;
    if (!use(page) || next.empty()) return;
    question.token = next;
  }
}

// The threads that list ranges, and the one that takes their pages in the order of the ranges.
class RangeLister {
 public:
  RangeLister(const AskPage& ask, std::vector<ListRange> ranges, const std::string& subject)
      : ask_(ask), subject_(subject), ranges_(std::move(ranges)) {}
  RangeLister(const RangeLister&) = delete;
  RangeLister& operator=(const RangeLister&) = delete;
  ~RangeLister() {
    {
      const std::scoped_lock lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(const UsePage& use) {
    try {
      while (threads_.size() < std::min(kListedAtOnce, ranges_.size())) {
        threads_.push_back(os::start_thread([this] { work(); }));
      }
    } catch (const std::system_error& error) {
      if (threads_.empty()) {
        throw Error(ErrorKind::unavailable, fmt::format("cannot list: no thread can be started: {}", error.what()));
      }
    }
    for (ListRange& range : ranges_) {
      for (;;) {
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, kAskEvery, [&] { return !range.pages.empty() || range.is_done; })) {
          lock.unlock();
          check_interruption();
          lock.lock();
        }
        if (range.pages.empty()) {
          if (range.error) std::rethrow_exception(range.error);
          break;
        }
        ListPage page = std::move(range.pages.front());
        range.pages.pop_front();
        lock.unlock();
        changed_.notify_all();
        if (!use(page)) return;
      }
    }
  }

 private:
  void work() {
    const InterruptionScope interruptible(interruption_);
    for (;;) {
      std::unique_lock lock(mutex_);
      if (is_over_ || next_ == ranges_.size()) return;
      ListRange& range = ranges_[next_++];
      lock.unlock();
      try {
        list(range);
      } catch (...) {
        const std::scoped_lock failing(mutex_);
        range.error = std::current_exception();
      }
      {
        const std::scoped_lock ending(mutex_);
        range.is_done = true;
      }
      changed_.notify_all();
    }
  }

  void list(ListRange& range) {
    const UsePage use = [&](ListPage& page) {
      bool ends_here = false;
      if (!range.end.empty()) {
        const auto beyond = std::find_if(page.objects.begin(), page.objects.end(),
                                         [&](const ListedObject& object) { return object.key >= range.end; });
        ends_here = beyond != page.objects.end();
        page.objects.erase(beyond, page.objects.end());
      }
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_over_ || range.pages.size() < kPagesAhead; });
      if (is_over_) return false;
      range.pages.push_back(std::move(page));
      lock.unlock();
      changed_.notify_all();
      return !ends_here;
    };
    list_one_by_one(ask_, {range.prefix, "", "", range.start_after}, use, subject_);
  }

  const AskPage& ask_;
  const std::string& subject_;
  Interruption* const interruption_ = interruption_in_force();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ListRange> ranges_;
  std::size_t next_ = 0;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

void list_in_parallel(const AskPage& ask, const std::string& prefix, bool is_sorted, const UsePage& use,
                      const std::string& subject) {
  ListPage first = ask({prefix, "", "", ""});
  const std::string next = first.next;
  const auto go_on_alone = [&] {
    if (use(first) && !next.empty()) list_one_by_one(ask, {prefix, "", next, ""}, use, subject);
  };
  if (next.empty()) return go_on_alone();

  std::string base = prefix;
  Folders folders = find_folders(ask, base);
  for (int level = 0; level < kLevels && folders.names.size() == 1 && folders.objects.empty() && folders.is_whole;
       ++level) {
    base = folders.names.front();
    folders = find_folders(ask, base);
  }
  std::vector<ListRange> ranges;
  if (is_sorted) {
    // A folder's own mark, which start-after leaves out, is not a sample.
    const std::size_t count = std::min(kRanges, folders.names.size());
    if (count < 2) return go_on_alone();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& boundary = folders.names[i * folders.names.size() / count];
      if (i > 0) ranges.back().end = boundary;
      ranges.emplace_back().prefix = prefix;
      if (i > 0) ranges.back().start_after = boundary;
    }
  } else {
    const bool is_worth_it =
        folders.is_whole && folders.names.size() > 1 && objects_per_folder(first, base) >= kWorthARequest;
    if (!is_worth_it) return go_on_alone();
    for (const std::string& name : folders.names) ranges.emplace_back().prefix = name;
    ListPage beside;
    beside.objects = std::move(folders.objects);
    if (!use(beside)) return;
  }
  RangeLister(ask, std::move(ranges), subject).run(use);
}

}  // namespace stoker::storage::s3
