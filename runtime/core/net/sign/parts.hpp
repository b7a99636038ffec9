// A request before it is signed, taken apart: signers need its pieces, and a signature holds only if the bytes on the
// wire are those that were signed. So the URL is made here too, in RFC 3986's one canonical way.
//
// Who signs does so in HttpRequest::prepare, before each attempt: a signature has a time in it.
// Pure functions; any thread. Nothing here is for showing: see redact.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/text.hpp"
#include "runtime/core/net/http.hpp"

namespace rille::net {

// A key pair; `token` with those that are lent for a while ("": a lasting one). Secret: never shown, never journaled.
struct Credentials {
  std::string id, secret, token;
};

// Keys and values as they are meant, not encoded. Without a value: a key that stands alone, as in S3's "?uploads".
using Query = std::vector<std::pair<std::string, std::optional<std::string>>>;

struct Parts {
  std::string method = "GET";
  std::string scheme = "https", host;  // host: with the port, where it is not the scheme's own
  std::string path = "/";              // as it goes over the wire: encoded (encode_path)
  Query query;
  Headers headers;  // without Host, which every signer signs
  std::string body;

  std::string url() const;
  void set_header(std::string_view name, std::string value);  // replaces one of that name
  const std::string* find_header(std::string_view name) const;
  // Method, URL, headers and body into a request; all else of it stays.
  void put_into(HttpRequest& request) const;
};

// All but A-Z a-z 0-9 - _ . ~ as %XX. encode_path keeps "/".
std::string percent_encode(std::string_view text);
std::string encode_path(std::string_view path);
std::string percent_decode(std::string_view text);  // what is no %XX stays

// "k=v&k2=v2", encoded. `bare`: what stands for a key without a value, "=" or "".
std::string join_query(const Query& query, std::string_view bare = "");
// The same in the order of encoded keys, then encoded values.
std::string canonical_query(const Query& query, std::string_view bare = "=");

// (name in lower case, trimmed value), by name. Those of one name are joined by commas. `host` is one of them.
struct HeaderRules {
  bool one_space = false;      // for whitespace inside of a value
  bool sorted_values = false;  // of one name; else in their order
};
using Canonical = std::vector<std::pair<std::string, std::string>>;
Canonical canonical_headers(const Parts& parts, HeaderRules rules = {});
std::string header_lines(const Canonical& headers);  // "name:value\n" each
std::string header_names(const Canonical& headers);  // "a;b;c"

using rille::lower_case;

// Bytes, not hexadecimal.
std::string hmac_sha256(std::string_view key, std::string_view text);
std::string hmac_sha1(std::string_view key, std::string_view text);
std::string sha1_hex(std::string_view text);
std::string hex(std::string_view bytes);

// 20150830T123600Z; 2015-08-30; Sun, 30 Aug 2015 12:36:00 GMT
std::string compact_time(std::int64_t wall_us);
std::string iso_date(std::int64_t wall_us);
std::string http_date(std::int64_t wall_us);

}  // namespace rille::net
