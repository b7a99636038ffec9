#include "runtime/core/net/http.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "runtime/core/net/proxy.hpp"
#include "runtime/core/net/server.hpp"
#include "runtime/core/store/file.hpp"
#include "tests/unit/net/scripted_server.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::net;
using Request = ScriptedServer::Request;
using Wire = ScriptedServer::Wire;

namespace {

struct Fixture {
  std::unique_ptr<Loop> loop = Loop::create().value();
  std::vector<std::string> lines;
  HttpOptions options{
      .proxy_from_environment = false,
      .jitter_seed = 1,
      .log = Log([this](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::debug)};
  std::unique_ptr<HttpClient> client_;
  HttpClient& client() {
    if (!client_) client_ = std::make_unique<HttpClient>(*loop, options);
    return *client_;
  }
  Result<HttpResponse> send(HttpRequest request, CancelToken token = {}) {
    request.retry.base_ms = 1;
    return run_blocking(*loop, client().send(std::move(request), token));
  }
  bool contains(const std::string& text, std::string_view part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
    return true;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a request and its answer") {
  ScriptedServer server([](const Request& r, Wire& w) {
    w.answer(200, r.method + " " + r.target + " " + r.body, "X-Thing:  a b \r\nx-thing: second\r\n");
  });
  auto got = send(
      {.method = "POST", .url = server.url("/p?q=1"), .headers = {{"X-Mine", "v"}, {"X-Empty", ""}}, .body = "hello"});
  REQUIRE(got.ok());
  CHECK(got->status == 200);
  CHECK(got->body == "POST /p?q=1 hello");
  CHECK(got->header("x-thing") == "a b");
  CHECK(got->header("absent").empty());
  auto seen = server.requests().at(0);
  CHECK(seen.header("x-mine") == "v");
  CHECK(seen.headers.count("x-empty") == 1);
  CHECK(seen.headers.count("content-type") == 0);
  CHECK(seen.headers.count("expect") == 0);
  CHECK(send({.method = "HEAD", .url = server.url()})->body.empty());
  CHECK(send({.method = "DELETE", .url = server.url("/d")})->body == "DELETE /d ");
  CHECK(send({.method = "PUT", .url = server.url("/d")})->body == "PUT /d ");
}

TEST_CASE_METHOD(Fixture, "statuses are answers, and errors when the caller says so") {
  ScriptedServer server([](const Request&, Wire& w) {
    w.answer(403, "{\"error\":\"token sesame-1234 is\nbad\"}", "x-request-id: r-7\r\n");
  });
  HttpRequest request{.url = server.url("/a?sig=s3cr3t"), .headers = {{"Authorization", "Bearer sesame-1234"}}};
  auto got = send(request);
  REQUIRE(got.ok());
  Error e = status_error(request, *got);
  CHECK(e.kind == ErrorKind::auth);
  CHECK(e.http_status == 403);
  CHECK(e.request_id == "r-7");
  CHECK(!e.retryable);
  CHECK(e.message == "GET " + server.url("/a?sig=***") + ": status 403: {\"error\":\"token *** is bad\"}");
  auto kind = [&](int status) { return status_error(request, {.status = status}).kind; };
  CHECK(kind(401) == ErrorKind::auth);
  CHECK(kind(404) == ErrorKind::state);
  CHECK(kind(429) == ErrorKind::quota);
  CHECK(kind(503) == ErrorKind::network);
  CHECK(kind(504) == ErrorKind::timeout);
  CHECK(kind(422) == ErrorKind::invalid);
  CHECK(kind(305) == ErrorKind::network);  // a redirect that is not followed
  CHECK(kind(0) == ErrorKind::network);
}

TEST_CASE_METHOD(Fixture, "idempotent requests are tried again and heed Retry-After") {
  int answers = 0;
  ScriptedServer server([&](const Request&, Wire& w) {
    if (++answers < 3) return w.answer(503, "", "Retry-After: 0\r\n");
    w.answer(200, "done");
  });
  auto got = send({.url = server.url()});
  REQUIRE(got.ok());
  CHECK(got->body == "done");
  CHECK(got->attempts == 3);
  answers = -100;
  CHECK(send({.url = server.url()})->status == 503);  // the last answer, after four attempts
  CHECK(server.count() == 7);
  CHECK(send({.method = "POST", .url = server.url()})->status == 503);
  CHECK(server.count() == 8);
  CHECK(send({.method = "POST", .url = server.url(), .idempotent = true})->attempts == 4);
}

TEST_CASE_METHOD(Fixture, "a server that asks for more patience than allowed gets none") {
  ScriptedServer server([](const Request&, Wire& w) { w.answer(429, "", "Retry-After: 3600\r\n"); });
  auto got = send({.url = server.url()});
  CHECK(got->status == 429);
  CHECK(server.count() == 1);
  CHECK(status_error({.url = server.url()}, *got).retry_after_ms == 3'600'000);
}

TEST_CASE_METHOD(Fixture, "an answer that is not HTTP, or leads to no web address, is the server's fault") {
  for (const char* text : {"220 mail ready\r\n\r\n", "HTTP/1.1 302 F\r\nLocation: file:///etc/passwd\r\n\r\n",
                           "HTTP/1.1 302 F\r\nLocation: http://[::1\r\n\r\n", ""}) {
    INFO(text);
    const std::string answer = *text ? text : "HTTP/1.1 200 OK\r\nX-Long: " + std::string(200'000, 'x') + "\r\n\r\n";
    ScriptedServer server([&answer](const Request&, Wire& w) { w.send(answer), w.cut(); });
    const auto got = send({.url = server.url()});
    REQUIRE_FALSE(got.ok());
    CHECK(got.error().kind == ErrorKind::network);
    CHECK_FALSE(got.error().retryable);
  }
  CHECK(send({.url = "http://[::1"}).error().kind == ErrorKind::invalid);
}

TEST_CASE("Retry-After in seconds and as a date") {
  CHECK(parse_retry_after_ms("120", 0) == 120'000);
  CHECK(parse_retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", 784'111'770'000'000) == 7000);
  CHECK(parse_retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", 884'111'770'000'000) == 0);
  CHECK(parse_retry_after_ms("Sun, 06 Nov 924773231 08:49:37 GMT", 0) <= 1'000'000'000'000'000);
  CHECK(parse_retry_after_ms("", 0) == -1);
  CHECK(parse_retry_after_ms("soon", 0) == -1);
  CHECK(parse_retry_after_ms("-5", 0) == -1);
}

TEST_CASE_METHOD(Fixture, "a cut connection is retried only when that is safe") {
  ScriptedServer server([](const Request&, Wire& w) { w.cut(); });
  auto get = send({.url = server.url("/x")});
  REQUIRE(!get.ok());
  CHECK(get.error().kind == ErrorKind::network);
  CHECK(get.error().retryable);
  contains(get.error().message, "GET " + server.url("/x"));
  contains(get.error().message, "after 4 attempts");
  CHECK(server.count() == 4);
  auto post = send({.method = "POST", .url = server.url("/x"), .body = "create"});
  REQUIRE(!post.ok());
  CHECK(!post.error().retryable);
  CHECK(server.count() == 5);
}

// libcurl sends again by itself when a kept connection turns out to be closed; a create must not be sent
// twice.
TEST_CASE_METHOD(Fixture, "a POST is sent once even when a kept connection dies under it") {
  std::atomic<int> answers{0};
  ScriptedServer server([&](const Request& r, Wire& w) {
    ++answers;
    if (r.method == "GET") w.answer(200, "kept");
    else w.cut();
  });
  CHECK(send({.url = server.url()})->body == "kept");
  CHECK(!send({.method = "POST", .url = server.url(), .body = "create"}).ok());
  CHECK(answers == 2);
}

TEST_CASE_METHOD(Fixture, "a POST that never left may be sent again") {
  int port = 0;
  {
    ScriptedServer gone([](const Request&, Wire&) {});
    port = gone.port();
  }
  auto post = send({.method = "POST", .url = "http://127.0.0.1:" + std::to_string(port) + "/"});
  REQUIRE(!post.ok());
  CHECK(post.error().kind == ErrorKind::network);
  CHECK(post.error().retryable);
  CHECK(!post.error().hint.empty());
  contains(post.error().message, "after 4 attempts");
}

TEST_CASE_METHOD(Fixture, "limits of time name themselves") {
  ScriptedServer server([](const Request& r, Wire& w) {
    if (r.target == "/half") w.send("HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\nhalf");
    w.hold();
  });
  for (const char* path : {"/none", "/half"}) {
    auto stall = send({.url = server.url(path), .stall_timeout_ms = 40, .retry = {.attempts = 1}});
    REQUIRE(!stall.ok());
    CHECK(stall.error().kind == ErrorKind::timeout);
    contains(stall.error().message, "the transfer stalled: no byte was sent or received for 40ms");
  }
  auto total = send({.url = server.url(), .total_timeout_ms = 50, .retry = {.attempts = 1}});
  REQUIRE(!total.ok());
  CHECK(total.error().kind == ErrorKind::timeout);
  contains(total.error().message, "50ms");
  auto post = send({.method = "POST", .url = server.url(), .stall_timeout_ms = 40});
  CHECK(post.error().kind == ErrorKind::timeout);
  CHECK(!post.error().retryable);
}

TEST_CASE_METHOD(Fixture, "an answer larger than the limit ends at once") {
  ScriptedServer server([](const Request&, Wire& w) { w.answer(200, std::string(100'000, 'x')); });
  auto got = send({.url = server.url(), .response_bytes_max = 50'000});
  REQUIRE(!got.ok());
  CHECK(got.error().kind == ErrorKind::network);
  contains(got.error().message, "response_bytes_max");
  CHECK(server.count() == 1);
  CHECK(send({.url = server.url(), .response_bytes_max = 100'000}).ok());
}

TEST_CASE_METHOD(Fixture, "cancelling ends a request in flight and a wait between attempts") {
  CancelSource source;
  ScriptedServer server([&](const Request& r, Wire& w) {
    loop->post_from_thread([&] { source.cancel(make_error(ErrorKind::cancelled, "enough")); });
    if (r.target == "/wait") w.answer(503, "", "Retry-After: 50\r\n");
    else w.hold();
  });
  std::string path = GENERATE("/hold", "/wait");
  auto got = send({.url = server.url(path)}, source.token());
  REQUIRE(!got.ok());
  CHECK(got.error().kind == ErrorKind::cancelled);
  CHECK(got.error().message == "enough");
  CHECK(send({.url = server.url()}, source.token()).error().message == "enough");
  CHECK(server.count() == 1);
}

TEST_CASE_METHOD(Fixture, "a task that is dropped takes its transfer along") {
  Loop* other_loop = nullptr;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (r.target == "/hold") other_loop->post_from_thread([] {}), w.hold();
    else w.answer(200, "ok");
  });
  auto other = Loop::create().value();
  other_loop = other.get();
  auto gone = std::make_unique<HttpClient>(*other, options);
  other->spawn([](HttpClient& c, std::string url) -> Task<> {
    HttpRequest request{.url = std::move(url)};
    (void)co_await c.send(std::move(request));
  }(*gone, server.url("/hold")));
  other->run_until([&] { return server.count() == 1; });
  gone.reset();   // the transfer keeps what it needs
  other.reset();  // destroys the task, and the transfer with it
  CHECK(send({.url = server.url("/after")})->body == "ok");
}

TEST_CASE_METHOD(Fixture, "a body streams to the sink; other statuses do not") {
  std::string big(300'000, 'b');
  ScriptedServer server(
      [&](const Request& r, Wire& w) { r.target == "/ok" ? w.answer(200, big) : w.answer(404, "nothing here"); });
  std::string head, body;
  HttpRequest request{.url = server.url("/ok")};
  request.on_head = [&](const HttpResponse& h) {
    head = h.header("content-length");
    return success();
  };
  request.sink = [&](std::string_view piece) {
    CHECK(!head.empty());
    body += piece;
    return success();
  };
  auto got = send(request);
  REQUIRE(got.ok());
  CHECK(got->body.empty());
  CHECK(body == big);
  body.clear();
  request.url = server.url("/no");
  got = send(request);
  CHECK(got->status == 404);
  CHECK(got->body == "nothing here");
  CHECK(body.empty());
  request.url = server.url("/ok");
  request.sink = [](std::string_view) -> Result<> { return make_error(ErrorKind::io, "disk full").with_retry(); };
  CHECK(send(request).error().message == "disk full");
  request.on_head = [](const HttpResponse&) -> Result<> { return make_error(ErrorKind::invalid, "no").with_retry(); };
  CHECK(send(request).error().message == "no");
  CHECK(server.count() == 4);
}

TEST_CASE_METHOD(Fixture, "a body is read in pieces, again on a retry") {
  std::string big(200'000, '\0');
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 7 >> 3);
  int refused = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (refused++ == 0) w.answer(500, "");
    else w.answer(200, r.body == big ? "same" : "differs");
  });
  HttpRequest request{.method = "PUT", .url = server.url(), .body_bytes = static_cast<std::int64_t>(big.size())};
  request.body_read = [&](std::uint64_t offset, char* out, std::size_t size) {
    std::memcpy(out, big.data() + offset, size);
    return success();
  };
  CHECK(send(request)->body == "same");
  request.body_read = [](std::uint64_t, char*, std::size_t) -> Result<> {
    return make_error(ErrorKind::io, "unreadable");
  };
  CHECK(send(request).error().message == "unreadable");
}

TEST_CASE_METHOD(Fixture, "prepare is asked before every attempt") {
  int calls = 0;
  ScriptedServer server([](const Request& r, Wire& w) { w.answer(r.header("x-date") == "2" ? 200 : 503, ""); });
  HttpRequest request{.url = server.url()};
  request.prepare = [&](HttpRequest& r) -> Result<> {
    r.headers.emplace_back("x-date", std::to_string(++calls));
    if (calls > 2) return make_error(ErrorKind::state, "lost the lease").with_retry();
    return success();
  };
  CHECK(send(request)->status == 200);
  CHECK(server.requests().at(1).headers.size() == server.requests().at(0).headers.size());
  CHECK(send(request).error().message == "lost the lease");
  CHECK(server.count() == 2);
}

TEST_CASE_METHOD(Fixture, "at_send is asked over each connection, before anything is sent") {
  std::string order;
  ScriptedServer server([](const Request& r, Wire& w) {
    if (r.target == "/away") return w.answer(302, "", "Location: /there\r\n");
    w.answer(r.target == "/busy" ? 503 : 200, "");
  });
  HttpRequest request{.url = server.url("/away")};
  request.prepare = [&](HttpRequest&) -> Result<> { return order += 'p', success(); };
  request.at_send = [&]() -> Result<> { return order += std::to_string(server.count()), success(); };
  CHECK(send(request)->status == 200);
  CHECK(order == "p01");
  // Its error ends the send, however often it may be sent again; also of what is on its way over a kept connection.
  order.clear();
  request.url = server.url("/busy");
  request.at_send = [&]() -> Result<> {
    if (server.count() == 3) return make_error(ErrorKind::timeout, "too late").with_retry();
    return success();
  };
  const auto late = send(request);
  REQUIRE_FALSE(late);
  CHECK(late.error().message == "too late (after 2 attempts)");
  CHECK(order == "pp");
  CHECK(server.count() == 3);
  CHECK(send({.url = server.url("/there")})->status == 200);
}

TEST_CASE_METHOD(Fixture, "redirects keep secrets at home") {
  ScriptedServer other(
      [](const Request& r, Wire& w) { w.answer(200, r.target + r.header("x-api-key") + r.header("x-plain")); });
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (r.target == "/away") return w.answer(302, "moved", "Location: " + other.url("/there") + "\r\n");
    if (r.target == "/near") return w.answer(307, "moved", "Location: here?x=1\r\n");
    if (r.target == "/round") return w.answer(301, "", "Location: /round\r\n");
    if (r.target == "/file") return w.answer(301, "", "Location: file:///etc/passwd\r\n");
    w.answer(200, r.target + r.header("x-api-key"));
  });
  HttpRequest request{.url = server.url("/away"), .headers = {{"X-Api-Key", "K"}, {"X-Plain", "P"}}};
  std::string body;
  request.sink = [&](std::string_view piece) {
    body += piece;
    return success();
  };
  CHECK(send(request)->url == other.url("/there"));
  CHECK(body == "/thereP");
  request.sink = nullptr;
  request.url = server.url("/near");
  CHECK(send(request)->body == "/here?x=1K");
  request.url = server.url("/round");
  contains(send(request).error().message, "more than 5 redirects");
  request.url = server.url("/file");
  contains(send(request).error().message, "not an http(s) URL");
  request.method = "POST";
  request.url = server.url("/near");
  CHECK(send(request)->status == 307);
}

TEST_CASE_METHOD(Fixture, "may_connect is asked for each server, also after a redirect") {
  ScriptedServer other([](const Request&, Wire& w) { w.answer(200, "secret"); });
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (r.target == "/away") return w.answer(302, "", "Location: " + other.url("/there") + "\r\n");
    w.answer(200, "near");
  });
  std::string asked;
  HttpRequest request{.url = server.url("/near")};
  request.may_connect = [&](const std::string& host, const std::string& port) -> Result<> {
    asked += host + ":" + port + " ";
    if (port == std::to_string(server.port())) return success();
    return make_error(ErrorKind::denied, "not there").with_retry();
  };
  CHECK(send(request)->body == "near");
  request.url = server.url("/away");
  const auto refused = send(request);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::denied);
  CHECK(refused.error().message == "not there");  // it is not tried again
  CHECK(other.count() == 0);
  CHECK(asked == server.host() + " " + server.host() + " " + other.host() + " ");
}

TEST_CASE_METHOD(Fixture, "the server of a URL is the one that is connected to") {
  const auto server = [](const std::string& url) {
    auto found = server_of(url);
    return found ? found->host + " " + found->port : found.error().message;
  };
  CHECK(server("https://example.org/a") == "example.org 443");
  CHECK(server("http://user:word@example.org:81/?other.org") == "example.org 81");
  CHECK(server("http://good.org@evil.org/") == "evil.org 80");
  CHECK(server("http://[::1]:8080/") == "[::1] 8080");
  contains(server("ftp://example.org/"), "is not an http(s) URL");
  contains(server("https://"), "is not an http(s) URL");
}

TEST_CASE_METHOD(Fixture, "TLS: an untrusted certificate is refused") {
  TempDir dir;
  ScriptedServer server([](const Request&, Wire& w) { w.answer(200, "secret"); }, true);
  auto got = send({.url = server.url()});
  REQUIRE(!got.ok());
  CHECK(got.error().kind == ErrorKind::network);
  CHECK(!got.error().retryable);
  contains(got.error().message, "certificate is not valid");
  CHECK(server.count() == 0);
  REQUIRE(store::write_file_atomic(dir.file("ca.pem"), server.certificate_pem()).ok());
  options.ca_file = dir.file("ca.pem");
  client_.reset();
  CHECK(send({.url = server.url()})->body == "secret");
  CHECK(!send({.url = "https://localhost:" + std::to_string(server.port())}).ok());  // another name than it bears
}

TEST_CASE_METHOD(Fixture, "proxies come from the environment") {
  ScriptedServer proxy([](const Request& r, Wire& w) { w.answer(200, "proxied " + r.target); });
  options.proxy_from_environment = true;
  setenv("http_proxy", ("http://" + proxy.host()).c_str(), 1);
  unsetenv("no_proxy"), unsetenv("NO_PROXY");
  auto got = send({.url = "http://nowhere.example/x"});
  unsetenv("http_proxy");
  REQUIRE(got.ok());
  CHECK(got->body == "proxied http://nowhere.example/x");
}

TEST_CASE_METHOD(Fixture, "a proxy that is not there is named, without its password") {
  options.proxy_from_environment = true;
  setenv("http_proxy", "http://me:hidden@127.0.0.1:1", 1);
  setenv("no_proxy", "local.example, .inner.example", 1);
  const Error e = send({.url = "http://nowhere.example/x", .retry = {.attempts = 1}}).error();
  CHECK(e.kind == ErrorKind::network);
  contains(e.message, "by way of the proxy http://127.0.0.1:1");
  contains(e.hint, "http_proxy");
  CHECK((e.message + e.hint).find("hidden") == std::string::npos);
  CHECK(proxy_for("http://nowhere.example").variable == "http_proxy");
  CHECK(proxy_for("http://local.example:8080/x").url.empty());
  CHECK(proxy_for("http://a.inner.example").url.empty());
  CHECK(proxy_for("http://notinner.example").url == "http://127.0.0.1:1");
  setenv("HTTPS_PROXY", "proxy.example:3128", 1);
  CHECK(proxy_for("https://nowhere.example").url == "http://proxy.example:3128");
  setenv("no_proxy", "*", 1);
  CHECK(proxy_for("https://nowhere.example").url.empty());
  for (const char* name : {"http_proxy", "HTTPS_PROXY", "no_proxy"}) unsetenv(name);
}

TEST_CASE_METHOD(Fixture, "what is not a web address or a header is refused") {
  for (const char* url : {"", "ftp://h/", "file:///etc/passwd", "http://h/a b\r\nX: y", "h/x"})
    CHECK(send({.url = url}).error().kind == ErrorKind::invalid);
  CHECK(send({.url = "http://127.0.0.1:1/", .headers = {{"X", "a\r\nInjected: 1"}}}).error().kind ==
        ErrorKind::invalid);
  CHECK(send({.url = "http://127.0.0.1:1/", .headers = {{"X:Y", "a"}}}).error().kind == ErrorKind::invalid);
}

TEST_CASE_METHOD(Fixture, "logs and errors hold no secret") {
  ScriptedServer server([](const Request&, Wire& w) { w.cut(); });
  auto got = send(
      {.url = "http://user:hunter2@" + server.host() + "/?token=hunter2", .headers = {{"Authorization", "hunter2"}}});
  REQUIRE(!got.ok());
  CHECK(got.error().summary().find("hunter2") == std::string::npos);
  REQUIRE(lines.size() >= 4);
  for (const std::string& line : lines) CHECK(line.find("hunter2") == std::string::npos);
}

TEST_CASE_METHOD(Fixture, "many requests at once share few connections") {
  ScriptedServer server([](const Request& r, Wire& w) { w.answer(200, r.target); });
  int right = 0, done = 0;
  for (int i = 0; i < 100; ++i)
    loop->spawn([](HttpClient& c, std::string base, int n, int& good, int& all) -> Task<> {
      HttpRequest request{.url = base + std::to_string(n)};
      auto got = co_await c.send(std::move(request));
      good += got && got->body == "/" + std::to_string(n);
      ++all;
    }(client(), server.url(), i, right, done));
  loop->run_until([&] { return done == 100; });
  CHECK(right == 100);
}
