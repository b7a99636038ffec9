#include "runtime/core/net/request_head.hpp"

#include <algorithm>

#include "runtime/core/base/text.hpp"

namespace rille::net {

namespace {

Error refused(int status, std::string why) {
  Error e = make_error(ErrorKind::invalid, std::move(why));
  e.http_status = status;
  return e;
}

bool is_token(std::string_view text) {  // RFC 9110, 5.6.2
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

Result<> read_request_line(std::string_view line, RequestHead& head) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last) return refused(400, "the request line has three words");
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!is_token(method)) return refused(400, "the method is no word");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return refused(505, "HTTP/1.1 is spoken here");
  if (method != "GET" && method != "HEAD") return refused(405, "only GET and HEAD are answered");
  const auto printable = [](char c) { return c > ' ' && c < 0x7f && c != '#'; };
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), printable))
    return refused(400, "the target is a path of this server");
  const std::size_t mark = target.find('?');
  head.head = method == "HEAD";
  head.path = target.substr(0, mark);
  if (mark != target.npos) head.query = target.substr(mark + 1);
  return {};
}

Result<> read_header(std::string_view line, RequestHead& head) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon))) return refused(400, "a header is 'Name: value'");
  const std::string_view value = line.substr(colon + 1);
  const auto control = [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 0x7f; };
  if (std::any_of(value.begin(), value.end(), control)) return refused(400, "a header has control characters");
  if (head.headers.size() == request_headers_max) return refused(431, "too many headers");
  head.headers.emplace_back(lower_case(line.substr(0, colon)), trimmed(value));
  return {};
}

// "127.0.0.1:80" is 127.0.0.1, "[::1]:80" is ::1; "" if it is neither name nor address with a port.
std::string host_in(std::string_view value) {
  std::string_view host = value, rest;
  if (value.starts_with('[')) {
    const std::size_t end = value.find(']');
    if (end == value.npos) return "";
    host = value.substr(1, end - 1), rest = value.substr(end + 1);
  } else if (const std::size_t colon = value.find(':'); colon != value.npos) {
    host = value.substr(0, colon), rest = value.substr(colon);
  }
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!rest.empty() && (rest.front() != ':' || !std::all_of(rest.begin() + 1, rest.end(), digit))) return "";
  const auto of_host = [&](char c) {
    return digit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '_' || c == ':';
  };
  std::string out = lower_case(host);
  return std::all_of(out.begin(), out.end(), of_host) ? out : "";
}

Result<> check_headers(RequestHead& head) {
  int hosts = 0;
  for (const auto& [name, value] : head.headers) {
    if (name == "host") ++hosts, head.host = host_in(value);
    const bool body = name == "transfer-encoding" || (name == "content-length" && value != "0");
    if (body) return refused(413, "a request has no body here");
  }
  if (hosts != 1 || head.host.empty()) return refused(400, "a request names one Host");
  return {};
}

}  // namespace

std::string_view RequestHead::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers)
    if (name == lower_case_name) return value;
  return {};
}

Result<RequestHead> read_request_head(std::string_view text) {
  if (text.size() > request_head_bytes_max) return refused(431, "the head of the request is too large");
  if (!text.ends_with("\r\n\r\n")) return refused(400, "the head of the request has no end");
  RequestHead head;
  bool first = true;
  for (std::string_view rest = text.substr(0, text.size() - 2); !rest.empty();) {
    const std::size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    RILLE_CHECK(first ? read_request_line(line, head) : read_header(line, head));
    rest.remove_prefix(end + 2);
    first = false;
  }
  RILLE_CHECK(check_headers(head));
  return head;
}

}  // namespace rille::net
