#include "stoker/storage/s3/listing.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "stoker/base/error.h"
#include "stoker/storage/s3/address.h"

namespace stoker::storage::s3 {
namespace {

constexpr unsigned kParse = pugi::parse_cdata | pugi::parse_escapes | pugi::parse_ws_pcdata_single;

constexpr std::uint64_t kLargestObject = std::uint64_t{1} << 50;  // bytes; far above what any store takes

// Names may carry the prefix of a namespace.
std::string_view local_name(const pugi::xml_node& node) {
  const std::string_view name = node.name();
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

std::string_view child_text(const pugi::xml_node& node, std::string_view name) {
  for (const pugi::xml_node child : node.children()) {
    if (local_name(child) == name) return child.text().get();
  }
  return {};
}

pugi::xml_node root_of(const pugi::xml_document& document, std::string_view name) {
  for (const pugi::xml_node child : document.children()) {
    if (child.type() == pugi::node_element && local_name(child) == name) return child;
  }
  return {};
}

ListedObject parse_object(const pugi::xml_node& node, bool is_encoded, std::string_view subject) {
  ListedObject object;
  bool has_size = false;
  for (const pugi::xml_node child : node.children()) {
    const std::string_view name = local_name(child), text = child.text().get();
    if (name == "Key") {
      object.key = is_encoded ? decode_key(text) : std::string(text);
    } else if (name == "ETag") {
      object.version = unquoted_tag(text);
    } else if (name == "Size") {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), object.bytes);
      has_size = error == std::errc() && end == text.data() + text.size();
    }
  }
  if (object.key.empty() || !has_size || object.key.find('\0') != std::string::npos) {
    throw Error(ErrorKind::corrupt,
                fmt::format("cannot list `{}`: the answer has an object without a key or a size", subject));
  }
  if (object.bytes > kLargestObject) {
    throw Error(ErrorKind::corrupt,
                fmt::format("cannot list `{}`: the answer says that `{}` has {} bytes, more than any store holds",
                            subject, object.key, object.bytes));
  }
  return object;
}

// "&#0;" in any spelling. XML forbids it, and a text that has it would end there.
bool has_null_character(std::string_view xml) noexcept {
  for (std::size_t at = xml.find("&#"); at != std::string_view::npos; at = xml.find("&#", at + 2)) {
    std::string_view number = xml.substr(at + 2);
    if (number.starts_with('x')) number.remove_prefix(1);
    const std::size_t zeros = std::min(number.find_first_not_of('0'), number.size());
    if (zeros > 0 && zeros < number.size() && number[zeros] == ';') return true;
  }
  return false;
}

std::string find_text(const pugi::xml_node& node, std::string_view name) {
  const pugi::xml_node found = node.find_node([&](const pugi::xml_node& each) { return local_name(each) == name; });
  return found ? found.text().get() : "";
}

}  // namespace

ListPage parse_page(std::string_view xml, std::string_view subject) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size(), kParse, pugi::encoding_utf8);
  const pugi::xml_node root = root_of(document, "ListBucketResult");
  if (!parsed || !root) {
    throw Error(ErrorKind::corrupt,
                fmt::format("cannot list `{}`: the answer is not an S3 listing{}", subject,
                            parsed ? "" : fmt::format(" ({} at byte {})", parsed.description(), parsed.offset)),
                "check that the endpoint speaks S3: AWS_ENDPOINT_URL_S3");
  }
  if (has_null_character(xml)) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot list `{}`: a key in the answer has a NUL character", subject));
  }
  ListPage page;
  const bool is_encoded = child_text(root, "EncodingType") == "url";
  for (const pugi::xml_node child : root.children()) {
    const std::string_view name = local_name(child);
    if (name == "Contents") {
      page.objects.push_back(parse_object(child, is_encoded, subject));
    } else if (name == "CommonPrefixes") {
      const std::string_view prefix = child_text(child, "Prefix");
      page.prefixes.push_back(is_encoded ? decode_key(prefix) : std::string(prefix));
    }
  }
  if (child_text(root, "IsTruncated") == "true") {
    page.next = child_text(root, "NextContinuationToken");
    if (page.next.empty()) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot list `{}`: the answer says that there is more, and not where", subject));
    }
  }
  return page;
}

std::string page_query(std::string_view prefix, std::string_view delimiter, std::string_view token, int most_keys,
                       std::string_view start_after) {
  std::string query;
  const auto add = [&](std::string_view name, std::string_view value) {
    query += fmt::format("{}{}={}", query.empty() ? "" : "&", name, encode_query(value));
  };
  if (!token.empty()) add("continuation-token", token);
  if (!delimiter.empty()) add("delimiter", delimiter);
  add("encoding-type", "url");
  add("list-type", "2");
  add("max-keys", fmt::to_string(most_keys));
  add("prefix", prefix);
  if (!start_after.empty()) add("start-after", start_after);
  return query;
}

ErrorAnswer parse_error(std::string_view xml) noexcept {
  try {
    pugi::xml_document document;
    (void)document.load_buffer(xml.data(), xml.size(), kParse, pugi::encoding_utf8);
    ErrorAnswer answer;
    answer.code = find_text(document, "Code");
    answer.message = find_text(document, "Message");
    answer.region = find_text(document, "Region");
    answer.server_time = find_text(document, "ServerTime");
    return answer;
  } catch (const std::exception&) {
    return {};
  }
}

std::string text_of_element(std::string_view xml, std::string_view name) {
  pugi::xml_document document;
  (void)document.load_buffer(xml.data(), xml.size(), kParse, pugi::encoding_utf8);
  return find_text(document, name);
}

std::string_view unquoted_tag(std::string_view tag) noexcept {
  if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"') tag = tag.substr(1, tag.size() - 2);
  return tag;
}

bool is_same_tag(std::string_view a, std::string_view b) noexcept {
  const auto opaque = [](std::string_view tag) { return unquoted_tag(tag.starts_with("W/") ? tag.substr(2) : tag); };
  return opaque(a) == opaque(b);
}

}  // namespace stoker::storage::s3
