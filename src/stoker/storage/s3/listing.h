// What stores answer, read from XML: a page of ListObjectsV2, and errors. Pure functions; hostile XML is an error or
// nothing, never more memory than the text has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::storage::s3 {

struct ListedObject {
  std::string key;
  std::uint64_t bytes = 0;
  std::string version;  // the ETag without its quotes; empty: the store tells none
};

struct ListPage {
  std::vector<ListedObject> objects;
  std::vector<std::string> prefixes;  // of a listing with a delimiter
  std::string next;                   // the token of the next page; empty: this is the last one
};

// Throws Error(corrupt), naming `subject`.
ListPage parse_page(std::string_view xml, std::string_view subject);

// The query of a page, encoded and sorted, as the signature needs it.
std::string page_query(std::string_view prefix, std::string_view delimiter, std::string_view token, int most_keys,
                       std::string_view start_after = {});

struct ErrorAnswer {
  std::string code, message, region, server_time;
};
// Fields that are missing, or all of them where it is no XML, stay empty.
ErrorAnswer parse_error(std::string_view xml) noexcept;

// The text of the first element `name` below the root at any depth, as answers of the token service have it; or empty.
std::string text_of_element(std::string_view xml, std::string_view name);

// "abc" of "\"abc\""; a weak tag keeps its W/.
std::string_view unquoted_tag(std::string_view tag) noexcept;
// Whether two tags name the same content: servers and proxies make strong tags weak on the way.
bool is_same_tag(std::string_view a, std::string_view b) noexcept;

}  // namespace stoker::storage::s3
