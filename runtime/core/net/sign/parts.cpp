#include "runtime/core/net/sign/parts.hpp"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <ctime>

#include "runtime/core/base/text.hpp"

namespace rille::net {

namespace {

bool same_name(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

std::string encode(std::string_view text, std::string_view kept) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (byte | 32) >= 'a' && (byte | 32) <= 'z';
    if (letter || (byte >= '0' && byte <= '9') || kept.find(c) != std::string_view::npos) out += c;
    else (out += '%') += {digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

std::string joined(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out;
  for (const auto& [key, rest] : pairs) (out += out.empty() ? "" : "&") += key + rest;
  return out;
}

std::vector<std::pair<std::string, std::string>> encoded(const Query& query, std::string_view bare) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, value] : query)
    out.emplace_back(percent_encode(key), value ? "=" + percent_encode(*value) : std::string(bare));
  return out;
}

std::string one_spaced(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (std::string_view(" \t\n\r").find(c) == std::string_view::npos) out += c;
    else if (out.empty() || out.back() != ' ') out += ' ';
  }
  return out;
}

std::string format_time(std::int64_t wall_us, const char* format) {
  const std::time_t seconds = static_cast<std::time_t>(wall_us / 1'000'000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &utc)};
}

std::string hmac(const EVP_MD* md, std::string_view key, std::string_view text) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  HMAC(md, key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       out, &bytes);
  return {reinterpret_cast<char*>(out), bytes};
}

}  // namespace

std::string Parts::url() const {
  const std::string asked = join_query(query);
  return scheme + "://" + host + path + (asked.empty() ? "" : "?" + asked);
}

void Parts::set_header(std::string_view name, std::string value) {
  std::erase_if(headers, [&](const auto& header) { return same_name(header.first, name); });
  headers.emplace_back(name, std::move(value));
}

const std::string* Parts::find_header(std::string_view name) const {
  const auto at = std::find_if(headers.begin(), headers.end(), [&](const auto& h) { return same_name(h.first, name); });
  return at == headers.end() ? nullptr : &at->second;
}

void Parts::put_into(HttpRequest& request) const {
  request.method = method;
  request.url = url();
  request.headers = headers;
  request.body = body;
}

std::string percent_encode(std::string_view text) { return encode(text, "-_.~"); }
std::string encode_path(std::string_view path) { return encode(path, "-_.~/"); }

std::string percent_decode(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string join_query(const Query& query, std::string_view bare) { return joined(encoded(query, bare)); }

std::string canonical_query(const Query& query, std::string_view bare) {
  auto pairs = encoded(query, bare);
  std::sort(pairs.begin(), pairs.end());
  return joined(pairs);
}

Canonical canonical_headers(const Parts& parts, HeaderRules rules) {
  Canonical out{{"host", parts.host}};
  for (const auto& [name, value] : parts.headers)
    out.emplace_back(lower_case(name), rules.one_space ? one_spaced(trimmed(value)) : trimmed(value));
  std::stable_sort(out.begin(), out.end(),
                   [&](const auto& a, const auto& b) { return rules.sorted_values ? a < b : a.first < b.first; });
  for (std::size_t i = 1; i < out.size();) {
    if (out[i].first != out[i - 1].first) {
      ++i;
      continue;
    }
    out[i - 1].second += "," + out[i].second;
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return out;
}

std::string header_lines(const Canonical& headers) {
  std::string out;
  for (const auto& [name, value] : headers) out += name + ":" + value + "\n";
  return out;
}

std::string header_names(const Canonical& headers) {
  std::string out;
  for (const auto& [name, value] : headers) (out += out.empty() ? "" : ";") += name;
  return out;
}

std::string hmac_sha256(std::string_view key, std::string_view text) { return hmac(EVP_sha256(), key, text); }
std::string hmac_sha1(std::string_view key, std::string_view text) { return hmac(EVP_sha1(), key, text); }

std::string sha1_hex(std::string_view text) {
  unsigned char out[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out);
  return hex({reinterpret_cast<char*>(out), sizeof out});
}

std::string hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) out += {digits[static_cast<unsigned char>(c) >> 4], digits[c & 15]};
  return out;
}

std::string compact_time(std::int64_t wall_us) { return format_time(wall_us, "%Y%m%dT%H%M%SZ"); }
std::string iso_date(std::int64_t wall_us) { return format_time(wall_us, "%Y-%m-%d"); }

std::string http_date(std::int64_t wall_us) {
  // Uses English names of days and months in every locale.
  const std::time_t seconds = static_cast<std::time_t>(wall_us / 1'000'000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return std::string(days[utc.tm_wday]) + format_time(wall_us, ", %d ") + months[utc.tm_mon] +
         format_time(wall_us, " %Y %H:%M:%S GMT");
}

}  // namespace rille::net
