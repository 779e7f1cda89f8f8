// Where an object lies, from s3://bucket/key to the URL that is asked for. Pure functions, safe from any thread.
#pragma once

#include <string>
#include <string_view>

namespace stoker::storage::s3 {

struct Place {
  std::string bucket, key;  // the key may be empty: the whole bucket
};

// `name` is an address without "s3://". Throws Error(usage) where the bucket is missing or cannot be one.
Place parse_place(std::string_view name);
void parse_place(std::string_view name, Place& into);                   // the same, in memory that is there already
std::string address_of(std::string_view bucket, std::string_view key);  // "s3://bucket/key", for messages

// The same of a file on a web server: the bucket is its host and port. Throws Error(usage): no host, or a password in
// it.
void parse_web_place(std::string_view scheme, std::string_view name, Place& place);

// Percent-encodes every byte outside A-Za-z0-9-_.~ and, in a path, the slash. Signatures are made over exactly this.
std::string encode_path(std::string_view key);
std::string encode_query(std::string_view text);
// Percent-encodes what no URL may hold. What is encoded already, and a query behind `?`, stay.
std::string encode_web_path(std::string_view path);
// The reverse of what listings do to keys: also a plus is a space. Bad escapes stay as they are.
std::string decode_key(std::string_view text);

// Where requests for one bucket go.
struct Endpoint {
  std::string origin;           // "https://bucket.s3.eu-west-1.amazonaws.com", without a slash at the end
  std::string path;             // "", or "/bucket" for path style
  std::string region;           // for the signature
  bool is_web = false;          // of a web server: paths are encoded as people write URLs
  bool lists_in_order = false;  // whether listings come in the bytewise order of keys, as Amazon promises

  std::string url(std::string_view key) const;  // of an object; of the bucket if the key is empty
  void write_url(std::string_view key, std::string& out) const;
};

enum class Style { automatic, path, virtual_host };

// `endpoint_url`: empty for Amazon; otherwise http(s)://host[:port][/path]. Throws Error(usage) if it is not.
Endpoint make_endpoint(std::string_view endpoint_url, std::string_view region, std::string_view bucket, Style style);

Endpoint web_endpoint(std::string_view scheme, std::string_view host);  // "https" and "host:443"

}  // namespace stoker::storage::s3
