#include "runtime/core/net/sign/tencent.hpp"

#include <algorithm>

#include "runtime/core/base/id.hpp"

namespace rille::net {

namespace {

Canonical tc3_headers(const Parts& parts, bool sign_action) {
  Canonical headers = canonical_headers(parts);
  std::erase_if(headers, [&](const auto& header) {
    return header.first != "content-type" && header.first != "host" && !(sign_action && header.first == "x-tc-action");
  });
  for (auto& [name, value] : headers) value = lower_case(value);
  return headers;
}

// Whether COS signs this header. Only headers that COS interprets are signed, because proxies may add or change others.
bool in_cos_signature(const std::string& name) {
  constexpr std::string_view named[] = {"cache-control",
                                        "content-disposition",
                                        "content-encoding",
                                        "content-length",
                                        "content-md5",
                                        "content-type",
                                        "date",
                                        "expect",
                                        "expires",
                                        "host",
                                        "if-match",
                                        "if-modified-since",
                                        "if-none-match",
                                        "if-unmodified-since",
                                        "origin",
                                        "range",
                                        "transfer-encoding"};
  return name.starts_with("x-cos-") || std::find(std::begin(named), std::end(named), name) != std::end(named);
}

// The names "a;b" and the pairs "a=1&b=2" of a COS signature: encoded, names in lower case, sorted by name.
std::pair<std::string, std::string> cos_list(std::vector<std::pair<std::string, std::string>> pairs) {
  for (auto& [key, value] : pairs) {
    key = lower_case(percent_encode(key));
    value = percent_encode(value);
  }
  std::sort(pairs.begin(), pairs.end());
  std::string names, text;
  for (const auto& [key, value] : pairs) {
    (names += names.empty() ? "" : ";") += key;
    (text += text.empty() ? "" : "&") += key + "=" + value;
  }
  return {names, text};
}

// The fields of a COS signature, in their order.
Query cos_authorization(const Parts& parts, const Credentials& who, std::int64_t from_s, std::int64_t to_s) {
  const std::string time = std::to_string(from_s) + ";" + std::to_string(to_s);
  Canonical headers = canonical_headers(parts);
  std::erase_if(headers, [](const auto& header) { return !in_cos_signature(header.first); });
  std::vector<std::pair<std::string, std::string>> query;
  for (const auto& [key, value] : parts.query) query.emplace_back(key, value.value_or(""));
  const auto [header_list, header_text] = cos_list(headers);
  const auto [query_list, query_text] = cos_list(query);
  const std::string what =
      lower_case(parts.method) + "\n" + percent_decode(parts.path) + "\n" + query_text + "\n" + header_text + "\n";
  const std::string key = hex(hmac_sha1(who.secret, time));
  const std::string signature = hex(hmac_sha1(key, "sha1\n" + time + "\n" + sha1_hex(what) + "\n"));
  return {{"q-sign-algorithm", "sha1"},   {"q-ak", who.id},
          {"q-sign-time", time},          {"q-key-time", time},
          {"q-header-list", header_list}, {"q-url-param-list", query_list},
          {"q-signature", signature}};
}

}  // namespace

std::string tencent_canonical_sha256(const Parts& parts, bool sign_action) {
  const Canonical headers = tc3_headers(parts, sign_action);
  return sha256_hex(parts.method + "\n/\n" + join_query(parts.query) + "\n" + header_lines(headers) + "\n" +
                    header_names(headers) + "\n" + sha256_hex(parts.body));
}

Parts sign_tencent(Parts parts, const Credentials& who, const TencentCall& call, std::int64_t wall_us) {
  const std::string seconds = std::to_string(wall_us / 1'000'000), date = iso_date(wall_us);
  parts.set_header("X-TC-Action", call.action);
  parts.set_header("X-TC-Version", call.version);
  parts.set_header("X-TC-Timestamp", seconds);
  if (!call.region.empty()) parts.set_header("X-TC-Region", call.region);
  if (!who.token.empty()) parts.set_header("X-TC-Token", who.token);
  const std::string scope = date + "/" + call.service + "/tc3_request";
  const std::string text =
      "TC3-HMAC-SHA256\n" + seconds + "\n" + scope + "\n" + tencent_canonical_sha256(parts, call.sign_action);
  const std::string key = hmac_sha256(hmac_sha256(hmac_sha256("TC3" + who.secret, date), call.service), "tc3_request");
  parts.set_header("Authorization", "TC3-HMAC-SHA256 Credential=" + who.id + "/" + scope +
                                        ", SignedHeaders=" + header_names(tc3_headers(parts, call.sign_action)) +
                                        ", Signature=" + hex(hmac_sha256(key, text)));
  return parts;
}

Parts sign_cos(Parts parts, const Credentials& who, std::int64_t from_s, std::int64_t to_s) {
  if (!who.token.empty()) parts.set_header("x-cos-security-token", who.token);
  std::string text;
  for (const auto& [name, value] : cos_authorization(parts, who, from_s, to_s))
    text += (text.empty() ? "" : "&") + name + "=" + *value;
  parts.set_header("Authorization", text);
  return parts;
}

std::string presign_cos(Parts parts, const Credentials& who, std::int64_t from_s, std::int64_t to_s) {
  if (!who.token.empty()) parts.query.emplace_back("x-cos-security-token", who.token);
  const Query signed_as = cos_authorization(parts, who, from_s, to_s);
  parts.query.insert(parts.query.end(), signed_as.begin(), signed_as.end());
  return parts.url();
}

}  // namespace rille::net
