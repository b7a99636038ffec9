#include "runtime/core/net/request_head.hpp"

#include <catch2/catch.hpp>

using namespace rille::net;

namespace {

// The status of the answer that refuses the head; 200: it is read.
int head_status(const std::string& text) {
  const auto head = read_request_head(text);
  return head ? 200 : head.error().http_status;
}

std::string request_with(const std::string& line, const std::string& more = "") {
  return line + "\r\nHost: localhost\r\n" + more + "\r\n";
}

}  // namespace

TEST_CASE("a request's head") {
  const auto head = read_request_head(
      "GET /a/b?c=d&e HTTP/1.1\r\nHOST: LocalHost:7455\r\nIf-None-Match: \t\"x\" \r\nX: \xc3\xa9\r\nX: 2\r\n\r\n");
  REQUIRE(head.ok());
  CHECK(!head->head);
  CHECK(head->path == "/a/b");
  CHECK(head->query == "c=d&e");
  CHECK(head->host == "localhost");
  CHECK(head->header("if-none-match") == "\"x\"");
  CHECK(head->header("x") == "\xc3\xa9");
  CHECK(head->header("absent").empty());
  CHECK(read_request_head(request_with("HEAD / HTTP/1.0"))->head);
}

TEST_CASE("the host that a request names") {
  const auto host = [](const std::string& value) {
    const auto head = read_request_head("GET / HTTP/1.1\r\nHost: " + value + "\r\n\r\n");
    return head ? head->host : "refused";
  };
  CHECK(host("127.0.0.1:80") == "127.0.0.1");
  CHECK(host("[::1]:80") == "::1");
  CHECK(host("[::1]") == "::1");
  CHECK(host("Example.ORG") == "example.org");
  for (const char* wrong : {"", "a b", "a@localhost", "localhost:80x", "localhost:80:90", "[::1", "[::1]x", "::1",
                            "localhost/", "\"localhost\"", "localhost,evil", "[]", ":80"})
    CHECK(host(wrong) == "refused");
}

TEST_CASE("what a request may not be") {
  CHECK(head_status(request_with("GET / HTTP/1.1")) == 200);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH", "get"})
    CHECK(head_status(request_with(std::string(method) + " / HTTP/1.1")) == 405);
  CHECK(head_status(request_with("GET / HTTP/2.0")) == 505);
  for (const char* line :
       {"GET /", "GET  / HTTP/1.1", "GET http://localhost/ HTTP/1.1", "GET * HTTP/1.1", " / HTTP/1.1",
        "GET / a HTTP/1.1", "GET /#a HTTP/1.1", "GET /\x7f HTTP/1.1", "GET /\xc3\xa9 HTTP/1.1", "", "G(T / HTTP/1.1"})
    CHECK(head_status(request_with(line)) == 400);
  for (const char* header : {"Host: localhost\r\n", " folded\r\n", "no colon\r\n", "a b: c\r\n", ": c\r\n", "\r\n",
                             "a: b\nc: d\r\n", "a: b\rc\r\n"})
    CHECK(head_status(request_with("GET / HTTP/1.1", header)) == 400);
  CHECK(head_status("GET / HTTP/1.1\r\n\r\n") == 400);
  CHECK(head_status("GET / HTTP/1.1\r\nHost: localhost\r\n") == 400);
  CHECK(head_status("GET / HTTP/1.1\nHost: localhost\n\n") == 400);
  std::string zero = request_with("GET / HTTP/1.1", "A: @\r\n");
  zero[zero.find('@')] = '\0';
  CHECK(head_status(zero) == 400);
}

TEST_CASE("a request has no body and a head of limited size") {
  CHECK(head_status(request_with("GET / HTTP/1.1", "Content-Length: 0\r\n")) == 200);
  CHECK(head_status(request_with("GET / HTTP/1.1", "Content-Length: 1\r\n")) == 413);
  CHECK(head_status(request_with("GET / HTTP/1.1", "Transfer-Encoding: chunked\r\n")) == 413);
  const std::size_t rest = request_with("GET / HTTP/1.1", "A: \r\n").size();
  const auto filled = [&](std::size_t bytes) { return "A: " + std::string(bytes - rest, 'x') + "\r\n"; };
  CHECK(head_status(request_with("GET / HTTP/1.1", filled(request_head_bytes_max))) == 200);
  CHECK(head_status(request_with("GET / HTTP/1.1", filled(request_head_bytes_max + 1))) == 431);
  std::string many;
  for (std::size_t i = 1; i < request_headers_max; ++i) many += "A: b\r\n";
  CHECK(head_status(request_with("GET / HTTP/1.1", many)) == 200);
  CHECK(head_status(request_with("GET / HTTP/1.1", many + "A: b\r\n")) == 431);
}
