// Parts: the pieces of a request before it is signed. A signature is valid only for the exact bytes that are sent, so
// Parts also builds the URL, in the canonical form of RFC 3986.
//
// Requests are signed in HttpRequest::prepare, before each attempt, because a signature contains a time. Pure
// functions; any thread. Never show a Parts or Credentials: see redact.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/text.hpp"
#include "runtime/core/net/http.hpp"

namespace rille::net {

// A key pair. `token` belongs to temporary keys; "": permanent keys. Secret: never shown, never journaled.
struct Credentials {
  std::string id, secret, token;
};

// Keys and values before encoding. Without a value the key stands alone, as in S3's "?uploads".
using Query = std::vector<std::pair<std::string, std::optional<std::string>>>;

struct Parts {
  std::string method = "GET";
  std::string scheme = "https", host;  // host includes the port, unless it is the scheme's default port
  std::string path = "/";              // percent-encoded, as it is sent (encode_path)
  Query query;
  Headers headers;  // without Host, which every signer adds
  std::string body;

  std::string url() const;
  void set_header(std::string_view name, std::string value);  // replaces a header of that name, if there is one
  const std::string* find_header(std::string_view name) const;
  // Sets method, URL, headers and body of `request`.
  void put_into(HttpRequest& request) const;
};

// percent_encode writes every byte except A-Z a-z 0-9 - _ . ~ as %XX. encode_path also keeps "/".
std::string percent_encode(std::string_view text);
std::string encode_path(std::string_view path);
std::string percent_decode(std::string_view text);  // decodes %XX; keeps all other text

// "k=v&k2=v2", encoded. `bare`: the text after a key without a value, "=" or "".
std::string join_query(const Query& query, std::string_view bare = "");
// As join_query, sorted by encoded key, then by encoded value.
std::string canonical_query(const Query& query, std::string_view bare = "=");

// How canonical_headers writes headers: (name in lower case, trimmed value), sorted by name, including `host`; values
// of one name are joined by commas.
struct HeaderRules {
  bool one_space = false;      // replace whitespace within a value by one space
  bool sorted_values = false;  // true: sort the values of one name; false: keep their order
};
using Canonical = std::vector<std::pair<std::string, std::string>>;
Canonical canonical_headers(const Parts& parts, HeaderRules rules = {});
std::string header_lines(const Canonical& headers);  // one line "name:value\n" per header
std::string header_names(const Canonical& headers);  // the names, such as "a;b;c"

using rille::lower_case;

// The HMAC functions return raw bytes, not hexadecimal.
std::string hmac_sha256(std::string_view key, std::string_view text);
std::string hmac_sha1(std::string_view key, std::string_view text);
std::string sha1_hex(std::string_view text);
std::string hex(std::string_view bytes);

// 20150830T123600Z from compact_time; 2015-08-30 from iso_date; Sun, 30 Aug 2015 12:36:00 GMT from http_date.
std::string compact_time(std::int64_t wall_us);
std::string iso_date(std::int64_t wall_us);
std::string http_date(std::int64_t wall_us);

}  // namespace rille::net
