// Lists all objects below a prefix with several requests at a time. A store gives a listing page by page, each page
// only after the one before it; so the keys are cut at folder boundaries into ranges that are listed at once.
//
//   the store lists in order      ranges of keys between some of the folders (start-after)
//   it does not, or may not       the folders themselves, if they are few enough to be worth a request each
//
// A listing of one page takes one request. Pages wait in short queues: memory does not grow with the number of keys.
#pragma once

#include <functional>
#include <string>

#include "stoker/storage/s3/listing.h"

namespace stoker::storage::s3 {

struct PageQuestion {
  std::string prefix, delimiter, token, start_after;
};
// Waits for the answer. Called from many threads at once. Throws Error.
using AskPage = std::function<ListPage(const PageQuestion&)>;
// Takes a page; false ends the listing. Called from the thread that lists.
using UsePage = std::function<bool(ListPage&)>;

// Gives every object below `prefix` once. `is_sorted`: the store lists keys in bytewise order, and so are pages given;
// else in any order. Throws what `ask` throws, and Error(corrupt), naming `subject`, where pages do not move on.
void list_in_parallel(const AskPage& ask, const std::string& prefix, bool is_sorted, const UsePage& use,
                      const std::string& subject);

}  // namespace stoker::storage::s3
