// The head of a request from anywhere: it is read or refused with a status, and what is read has nothing that a
// handler would have to check again.
#include "runtime/core/net/request_head.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<net::RequestHead> head = net::read_request_head(text);
  if (!head) {
    fuzz_check(head.error().http_status >= 400 && head.error().http_status < 600, "a refusal has a status");
    return 0;
  }
  fuzz_check(size <= net::request_head_bytes_max, "a head is limited");
  fuzz_check(head->path.starts_with('/') && !head->host.empty(), "a request has a path and a host");
  for (const char c : head->path + head->query + head->host) fuzz_check(c > ' ' && c < 0x7f, "plain characters");
  for (const auto& [name, value] : head->headers) {
    fuzz_check(!name.empty() && name.find_first_of("\r\n :") == name.npos, "a name is a word");
    fuzz_check(value.find_first_of(std::string_view("\r\n\0", 3)) == value.npos, "a value is one line");
    fuzz_check(name != "transfer-encoding", "a request has no body");
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
          "HEAD /token/run/20261128-095500-kqwmzt.json?a=b HTTP/1.0\r\nHost: [::1]:7455\r\nIf-None-Match: \"x\"\r\n"
          "Authorization: Bearer x\r\nContent-Length: 0\r\n\r\n"};
}

std::vector<std::string> fuzz_words() {
  return {"\r\n",
          "\r\n\r\n",
          "\n",
          "\r",
          " ",
          "\t",
          ":",
          "GET ",
          "POST ",
          " HTTP/1.1",
          " HTTP/0.9",
          "Host: ",
          "[",
          "]",
          "Content-Length: 1",
          "Transfer-Encoding: chunked",
          "%00",
          "#",
          "?",
          "//",
          "\x7f",
          "http://localhost/"};
}
