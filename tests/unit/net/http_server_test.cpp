#include "runtime/core/net/http_server.hpp"

#include <openssl/pem.h>

#include <catch2/catch.hpp>

#include "runtime/core/net/http.hpp"
#include "runtime/core/store/file.hpp"
#include "tests/unit/net/server_certificate.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::net;

namespace {

struct ServerFixture {
  std::unique_ptr<Loop> loop = Loop::create().value();
  HttpServerOptions options;
  int asked = 0;
  std::string big = std::string(3 << 20, 'x');

  std::unique_ptr<HttpServer> start() {
    auto server = HttpServer::start(*loop, options, [this](const RequestHead& head) {
      ++asked;
      HttpAnswer out;
      out.body = head.path == "/big" ? big : head.path + "?" + head.query;
      return out;
    });
    REQUIRE(server.ok());
    return std::move(*server);
  }
  HttpResponse get(const std::string& url, const std::string& ca_file = "", const std::string& method = "GET",
                   Headers headers = {}) {
    HttpOptions client_options;
    client_options.proxy_from_environment = false;
    client_options.ca_file = ca_file;
    HttpClient client(*loop, client_options);
    HttpRequest request;
    request.method = method, request.url = url, request.headers = std::move(headers);
    request.retry.attempts = 1;
    auto got = run_blocking(*loop, client.send(std::move(request)));
    INFO((got ? "" : got.error().message));
    REQUIRE(got.ok());
    return *got;
  }
  static Async<std::string> say(Loop& loop, std::string address, std::string bytes) {
    RILLE_CO_TRY(auto stream, co_await Stream::connect_tcp(loop, address));
    std::string out;
    // A server that refuses what it has read so far may close before it has read all.
    (co_await stream->write(bytes)).ok();
    char piece[4096];
    for (;;) {
      RILLE_CO_TRY(const std::size_t n, co_await stream->read(piece, sizeof piece));
      if (n == 0) co_return out;
      out.append(piece, n);
    }
  }
  // What the server says to these bytes, until it closes.
  std::string say(const HttpServer& server, const std::string& bytes) {
    const std::string origin = server.origin();
    return run_blocking(*loop, say(*loop, origin.substr(origin.find("//") + 2), bytes)).value();
  }
};

// A certificate for 127.0.0.1 and its key, as files.
struct CertificateFiles {
  TempDir folder;
  std::string certificate = folder.file("certificate.pem"), key = folder.file("key.pem");
  CertificateFiles() {
    ServerCertificate made = ServerCertificate::make();
    REQUIRE(store::write_file_atomic(certificate, made.pem).ok());
    BIO* const out = BIO_new_file(key.c_str(), "w");
    PEM_write_bio_PrivateKey(out, SSL_CTX_get0_privatekey(made.context), nullptr, nullptr, 0, nullptr, nullptr);
    BIO_free(out);
    SSL_CTX_free(made.context);
  }
};

}  // namespace

TEST_CASE_METHOD(ServerFixture, "a server answers GET and HEAD") {
  const auto server = start();
  const HttpResponse got = get(server->origin() + "/a/b?c");
  CHECK(got.status == 200);
  CHECK(got.body == "/a/b?c");
  CHECK(got.header("cache-control") == "no-store");
  CHECK(got.header("x-content-type-options") == "nosniff");
  CHECK(got.header("referrer-policy") == "no-referrer");
  CHECK(got.header("content-security-policy") == "frame-ancestors 'none'");
  const HttpResponse head = get(server->origin() + "/a", "", "HEAD");
  CHECK(head.body.empty());
  CHECK(head.header("content-length") == "3");
  CHECK(get(server->origin() + "/big").body == big);
  CHECK(asked == 3);
}

TEST_CASE_METHOD(ServerFixture, "no other request reaches the handler") {
  const auto server = start();
  const HttpResponse posted = get(server->origin() + "/", "", "POST");
  CHECK(posted.status == 405);
  CHECK(posted.header("allow") == "GET, HEAD");
  CHECK(
      say(*server, "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello").starts_with("HTTP/1.1 413 "));
  CHECK(say(*server, std::string(request_head_bytes_max + 5000, 'x')).starts_with("HTTP/1.1 431 "));
  CHECK(say(*server, "\x16\x03\x01 hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
  CHECK(asked == 0);
}

TEST_CASE_METHOD(ServerFixture, "a name that is not the server's is refused") {
  const auto server = start();
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil.example"})
    CHECK(say(*server, std::string("GET / HTTP/1.1\r\nHost: ") + host + "\r\n\r\n").starts_with("HTTP/1.1 403 "));
  CHECK(asked == 0);
  for (const char* host : {"127.0.0.1", "localhost:1", "[::1]:80", "LOCALHOST"})
    CHECK(say(*server, std::string("GET / HTTP/1.1\r\nHost: ") + host + "\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_CASE_METHOD(ServerFixture, "a client that sends no request is cut off") {
  options.head_timeout_ms = 1;
  const auto server = start();
  CHECK(say(*server, "GET / HTTP/1.1\r\nHost: loc").empty());
}

TEST_CASE_METHOD(ServerFixture, "one too many takes the place of the oldest that was not welcome, or of none") {
  options.head_timeout_ms = 3'600'000;
  options.connections_max = 2;
  const auto server = start();
  const std::string address = server->origin().substr(7);
  char piece[4096];
  auto welcome = run_blocking(*loop, Stream::connect_tcp(*loop, address)).value();
  REQUIRE(run_blocking(*loop, welcome->write("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")).ok());
  REQUIRE(run_blocking(*loop, welcome->read(piece, sizeof piece)).value() > 0);
  for (const char* said : {"GET / HT", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"}) {
    INFO(said);
    auto idle = run_blocking(*loop, Stream::connect_tcp(*loop, address)).value();
    REQUIRE(run_blocking(*loop, idle->write(said)).ok());
    CHECK(say(*server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 200 "));
  }
  auto second = run_blocking(*loop, Stream::connect_tcp(*loop, address)).value();
  REQUIRE(run_blocking(*loop, second->write("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")).ok());
  REQUIRE(run_blocking(*loop, second->read(piece, sizeof piece)).value() > 0);
  CHECK(say(*server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").empty());
}

TEST_CASE_METHOD(ServerFixture, "the end of a server ends its connections") {
  auto server = start();
  const std::string address = server->origin().substr(7);
  auto stream = run_blocking(*loop, Stream::connect_tcp(*loop, address)).value();
  REQUIRE(run_blocking(*loop, stream->write("GET /")).ok());
  server.reset();
  char piece[16];
  CHECK(run_blocking(*loop, stream->read(piece, sizeof piece)).value() == 0);
  CHECK(!run_blocking(*loop, Stream::connect_tcp(*loop, address)).ok());
}

TEST_CASE_METHOD(ServerFixture, "a server with TLS") {
  const CertificateFiles files;
  options.certificate = files.certificate, options.key = files.key;
  const auto server = start();
  REQUIRE(server->origin().starts_with("https://127.0.0.1:"));
  CHECK(get(server->origin() + "/a", files.certificate).body == "/a?");
  CHECK(get(server->origin() + "/big", files.certificate).body == big);
  CHECK(get(server->origin() + "/", files.certificate, "GET", {{"Host", "evil.example"}}).status == 403);
  CHECK(say(*server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").find("HTTP/1.1 200") == std::string::npos);
}

TEST_CASE_METHOD(ServerFixture, "off the loopback a server needs TLS, and the names are those of its certificate") {
  const auto refuse = [this] {
    auto server = HttpServer::start(*loop, options, [](const RequestHead&) { return HttpAnswer(); });
    REQUIRE(!server.ok());
    return server.error();
  };
  options.host = "0.0.0.0";
  CHECK(refuse().kind == ErrorKind::config);
  CHECK(refuse().message.find("0.0.0.0") == 0);
  const CertificateFiles files;
  options.certificate = files.certificate;
  options.key = files.certificate;
  CHECK(refuse().message.find("the key " + files.certificate) == 0);
  options.key = files.folder.file("nothing");
  CHECK(refuse().kind == ErrorKind::config);
  options.key = files.key;
  const auto server = start();
  const std::string port = server->origin().substr(server->origin().rfind(':'));
  CHECK(get("https://127.0.0.1" + port + "/", files.certificate).status == 200);
  CHECK(get("https://127.0.0.1" + port + "/", files.certificate, "GET", {{"Host", "localhost"}}).status == 403);
}

TEST_CASE_METHOD(ServerFixture, "an address of IPv6") {
  options.host = "::1";
  const auto server = start();
  REQUIRE(server->origin().starts_with("http://[::1]:"));
  CHECK(get(server->origin() + "/a").body == "/a?");
}

TEST_CASE_METHOD(ServerFixture, "an address that cannot be listened at") {
  const auto server = start();
  options.port = static_cast<std::uint16_t>(std::stoi(server->origin().substr(server->origin().rfind(':') + 1)));
  const auto second = HttpServer::start(*loop, options, [](const RequestHead&) { return HttpAnswer(); });
  REQUIRE(!second.ok());
  CHECK(second.error().message.find("127.0.0.1:" + std::to_string(options.port)) != std::string::npos);
  options.host = "localhost";
  CHECK(HttpServer::start(*loop, options, [](const RequestHead&) { return HttpAnswer(); }).error().kind ==
        ErrorKind::invalid);
}
