#include "runtime/core/net/redact.hpp"

#include <algorithm>
#include <array>

#include "runtime/core/base/text.hpp"

namespace rille::net {

namespace {

bool speaks_of_secret(std::string_view name) {
  static constexpr std::array<std::string_view, 9> words = {"sig",        "token", "secret", "passw",  "pwd",
                                                            "credential", "key",   "auth",   "session"};
  const std::string lower = lower_case(name);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view w) { return lower.find(w) != std::string::npos; });
}

std::string redact_query(std::string_view query) {
  std::string out;
  while (true) {
    std::size_t end = query.find('&');
    std::string_view item = query.substr(0, end);
    std::size_t equals = item.find('=');
    if (equals != std::string_view::npos && speaks_of_secret(item.substr(0, equals)))
      out.append(item.substr(0, equals)).append("=***");
    else out.append(item);
    if (end == std::string_view::npos) return out;
    out += '&';
    query.remove_prefix(end + 1);
  }
}

}  // namespace

std::string redact_url(std::string_view url) {
  std::size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos || scheme_end == 0) return "(not a URL)";
  std::string out(url.substr(0, scheme_end + 3));
  url.remove_prefix(scheme_end + 3);
  url = url.substr(0, url.find('#'));
  std::string_view authority = url.substr(0, url.find_first_of("/?"));
  std::string_view rest = url.substr(authority.size());
  std::size_t at = authority.rfind('@');
  out += at == std::string_view::npos ? authority : authority.substr(at + 1);
  std::size_t question = rest.find('?');
  out += rest.substr(0, question);
  if (question != std::string_view::npos) out += "?" + redact_query(rest.substr(question + 1));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';  // so that a log line stays one line
  return out;
}

std::string shown_address(std::string_view url) { return redact_url(url.substr(0, url.find_first_of("?#"))); }

bool is_secret_header(std::string_view name) {
  const std::string lower = lower_case(name);
  return lower.find("cookie") != std::string::npos || speaks_of_secret(lower);
}

}  // namespace rille::net
