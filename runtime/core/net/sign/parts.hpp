// Parts: a request before it is signed, in pieces. A signature is valid only for the exact bytes on the wire, so the
// URL is also built here, in the canonical form of RFC 3986.
//
// Requests are signed in HttpRequest::prepare, before each attempt, because a signature contains a time.
// Pure functions; any thread. Nothing here may be shown: see redact.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/text.hpp"
#include "runtime/core/net/http.hpp"

namespace rille::net {

// A key pair; `token` belongs to temporary keys ("": permanent). Secret: never shown, never journaled.
struct Credentials {
  std::string id, secret, token;
};

// Keys and values before encoding. No value: the key stands alone, as in S3's "?uploads".
using Query = std::vector<std::pair<std::string, std::optional<std::string>>>;

struct Parts {
  std::string method = "GET";
  std::string scheme = "https", host;  // host: with the port, unless it is the scheme's default
  std::string path = "/";              // encoded as on the wire (encode_path)
  Query query;
  Headers headers;  // without Host, which every signer adds
  std::string body;

  std::string url() const;
  void set_header(std::string_view name, std::string value);  // replaces one of that name
  const std::string* find_header(std::string_view name) const;
  // Sets the request's method, URL, headers and body.
  void put_into(HttpRequest& request) const;
};

// Encodes everything but A-Z a-z 0-9 - _ . ~ as %XX. encode_path keeps "/".
std::string percent_encode(std::string_view text);
std::string encode_path(std::string_view path);
std::string percent_decode(std::string_view text);  // anything but %XX is kept

// "k=v&k2=v2", encoded. `bare`: written after a key without a value, "=" or "".
std::string join_query(const Query& query, std::string_view bare = "");
// The same, sorted by encoded key, then encoded value.
std::string canonical_query(const Query& query, std::string_view bare = "=");

// (name in lower case, trimmed value), sorted by name, with `host`. Values of one name are joined by commas.
struct HeaderRules {
  bool one_space = false;      // for whitespace within a value
  bool sorted_values = false;  // values of one name are sorted; otherwise in their order
};
using Canonical = std::vector<std::pair<std::string, std::string>>;
Canonical canonical_headers(const Parts& parts, HeaderRules rules = {});
std::string header_lines(const Canonical& headers);  // "name:value\n" each
std::string header_names(const Canonical& headers);  // "a;b;c"

using rille::lower_case;

// The HMACs return bytes, not hexadecimal.
std::string hmac_sha256(std::string_view key, std::string_view text);
std::string hmac_sha1(std::string_view key, std::string_view text);
std::string sha1_hex(std::string_view text);
std::string hex(std::string_view bytes);

// 20150830T123600Z; 2015-08-30; Sun, 30 Aug 2015 12:36:00 GMT
std::string compact_time(std::int64_t wall_us);
std::string iso_date(std::int64_t wall_us);
std::string http_date(std::int64_t wall_us);

}  // namespace rille::net
