#include <catch2/catch.hpp>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/core/store/objects/answers.hpp"
#include "runtime/core/store/objects/object_store.hpp"
#include "runtime/core/store/objects/url.hpp"
#include "tests/unit/net/scripted_server.hpp"

using namespace rille;
using namespace rille::objects;

namespace {

// A store of S3's kind whose server answers as the test says, with keys of the environment.
struct Lying {
  explicit Lying(ScriptedServer::Handler handler) : server(std::move(handler)) {
    setenv("AWS_ACCESS_KEY_ID", "id", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret of the key", 1);
    StoreSetup setup{*loop, settings, [this](const std::string&, const std::string&) -> Result<> {
                       if (allowed) return success();
                       return make_error(ErrorKind::denied, "no grant for this host");
                     }};
    setup.wait_ms = 1;
    const std::string url = "s3://bucket/?endpoint=http://" + server.host() + "&region=r";
    store = open_store(parse_object_url(url).value(), setup).value();
  }
  Result<ObjectInfo> get(GetRequest request = {}) {
    const Sink sink = [this](std::string_view piece) -> Result<> {
      taken += piece;
      if (taken.size() <= taken_max) return success();
      return make_error(ErrorKind::io, "the disk is full").with_retry();
    };
    return run_blocking(*loop, store->get("k", request, sink, CancelToken()));
  }

  std::unique_ptr<Loop> loop = Loop::create().value();
  Value settings;
  bool allowed = true;
  std::string taken;
  std::size_t taken_max = 1 << 20;
  ScriptedServer server;
  std::unique_ptr<ObjectStore> store;
};

std::string list_xml(const std::string& rows, const std::string& more = "<IsTruncated>false</IsTruncated>") {
  return "<ListBucketResult>" + rows + more + "</ListBucketResult>";
}

}  // namespace

TEST_CASE("an address in a store is read, and written as it was") {
  const ObjectUrl plain = parse_object_url("s3://bucket/a/b c%20d").value();
  CHECK(plain.bucket == "bucket");
  CHECK(plain.key == "a/b c%20d");
  CHECK(parse_object_url("oss://bucket").value().key == "");
  CHECK(parse_object_url("s3://bucket//x").value().key == "/x");
  const ObjectUrl azure = parse_object_url("az://account/container/key/x").value();
  CHECK(azure.account == "account");
  CHECK(azure.bucket == "container");
  CHECK(azure.key == "key/x");
  const ObjectUrl told = parse_object_url("s3://b-1/k?region=eu-west-1&endpoint=https://minio:9000/").value();
  CHECK(told.key == "k");
  CHECK(told.region == "eu-west-1");
  CHECK(told.endpoint == "https://minio:9000");
  CHECK(parse_object_url("s3://b-1/k?what&region=x").value().key == "k?what&region=x");
  CHECK(parse_object_url("s3://b-1/k?a?region=x").value().key == "k?a");
  for (const char* text : {"s3://bucket/a/b c%20d", "az://account/c/k",
                           "s3://b-1/k?endpoint=https://minio:9000&region=x", "gs://b/\xe4\xb8\xad"})
    CHECK(parse_object_url(text).value().text() == text);
}

TEST_CASE("what is no address in a store is refused with the way to write one") {
  for (const char* text :
       {"http://bucket/k", "s3:/bucket/k", "s3://", "s3:///k", "s3://a@b/k", "s3://a:1/k", "s3://..", "s3://a/\xff",
        "az://account", "az://Account/c/k", "az:///c/k", "s3://b/k?endpoint=ftp://x", "s3://b/k?endpoint=http://",
        "s3://b/k?endpoint=http://x/y", "s3://b/k?endpoint=http://u@x", "s3://b/k?region=a/b"}) {
    INFO(text);
    const auto url = parse_object_url(text);
    REQUIRE(!url);
    CHECK(url.error().kind == ErrorKind::invalid);
    CHECK(!url.error().hint.empty());
  }
  CHECK(!parse_object_url("s3://b/" + std::string(1025, 'k')));
}

TEST_CASE("a token is not sent where an address says") {
  const auto loop = Loop::create().value();
  const Value none;
  const StoreSetup setup{*loop, none, {}};
  for (const char* text : {"gs://b/k?endpoint=http://127.0.0.1:1", "az://a/c/k?endpoint=https://example.org"})
    CHECK(open_store(parse_object_url(text).value(), setup).error().kind == ErrorKind::invalid);
  const Value plain = Value().set("azure", Value().set("endpoints", Value().set("blob", "http://example.org")));
  const StoreSetup in_settings{*loop, plain, {}};
  CHECK(open_store(parse_object_url("az://a/c/k").value(), in_settings).error().kind == ErrorKind::config);
}

TEST_CASE("a store whose region nobody told is an error that says how") {
  for (const char* name : {"OSS_REGION", "ALIBABA_CLOUD_REGION_ID"}) unsetenv(name);
  const auto loop = Loop::create().value();
  const Value none;
  const StoreSetup setup{*loop, none, {}};
  const Error e = open_store(parse_object_url("oss://b/k").value(), setup).error();
  CHECK(e.kind == ErrorKind::config);
  CHECK(e.hint.find("?region=") != std::string::npos);
}

TEST_CASE("hostile lists are refused") {
  CHECK(read_s3_list("<html>", false).error().kind == ErrorKind::integrity);
  CHECK(read_s3_list("<a><ListBucketResult/></a>", false).error().kind == ErrorKind::integrity);
  for (const char* size : {"-1", "1e9", "", "99999999999999999999", "0x10", " 1"}) {
    INFO(size);
    CHECK(!read_s3_list(list_xml(std::string("<Contents><Key>k</Key><Size>") + size + "</Size></Contents>"), false));
  }
  CHECK(!read_s3_list(list_xml("", "<IsTruncated>true</IsTruncated>"), false));
  std::string deep = "<ListBucketResult>";
  for (int i = 0; i < 300'000; ++i) deep += "<Contents><Key>";
  CHECK(!read_s3_list(deep, false));
  for (int i = 0; i < 300'000; ++i) deep += "</Key></Contents>";
  CHECK(!read_s3_list(deep + "</ListBucketResult>", false));
  std::string many;
  for (int i = 0; i < 10'001; ++i) many += "<Contents><Key>k</Key><Size>0</Size></Contents>";
  CHECK(!read_s3_list(list_xml(many), false));
  // A key that is not UTF-8 is left out: no call could name it.
  const std::string bad = "<EncodingType>url</EncodingType><Contents><Key>%FF</Key><Size>1</Size></Contents>";
  CHECK(
      read_s3_list(list_xml(bad + "<Contents><Key>a+b</Key><Size>1</Size></Contents>"), false).value().objects.size() ==
      1);
  CHECK(read_azure_list("<EnumerationResults><Blobs><Blob><Name>k</Name></Blob></Blobs></EnumerationResults>")
            .error()
            .kind == ErrorKind::integrity);
}

TEST_CASE("bytes that were not asked for are not taken") {
  const std::string tag = "ETag: \"1\"\r\n";
  SECTION("more than announced") {
    Lying lying([&](const ScriptedServer::Request&, ScriptedServer::Wire& wire) {
      wire.send("HTTP/1.1 206 X\r\nContent-Length: 20\r\nContent-Range: bytes 0-9/10\r\n" + tag + "\r\n" +
                std::string(20, 'x'));
    });
    GetRequest request;
    request.length = 10;
    CHECK(lying.get(request).error().kind == ErrorKind::integrity);
    CHECK(lying.taken.size() <= 10);
  }
  SECTION("another range") {
    Lying lying([&](const ScriptedServer::Request&, ScriptedServer::Wire& wire) {
      wire.send("HTTP/1.1 206 X\r\nContent-Length: 5\r\nContent-Range: bytes 5-9/10\r\n" + tag + "\r\nxxxxx");
    });
    GetRequest request;
    request.offset = 2;
    CHECK(lying.get(request).error().kind == ErrorKind::integrity);
    CHECK(lying.taken.empty());
  }
  SECTION("all of it, where a range was asked for") {
    Lying lying(
        [&](const ScriptedServer::Request&, ScriptedServer::Wire& wire) { wire.answer(200, "0123456789", tag); });
    GetRequest request;
    request.offset = 2;
    CHECK(lying.get(request).error().kind == ErrorKind::integrity);
    CHECK(lying.taken.empty());
  }
  SECTION("another version when it goes on") {
    int n = 0;
    Lying lying([&](const ScriptedServer::Request& request, ScriptedServer::Wire& wire) {
      if (++n == 1) {
        wire.send("HTTP/1.1 200 X\r\nContent-Length: 10\r\n" + tag + "\r\nold");
        return wire.cut();
      }
      CHECK(request.header("range") == "bytes=3-");
      CHECK(request.header("if-match") == "\"1\"");
      wire.answer(206, "new bye", "Content-Range: bytes 3-9/10\r\nETag: \"2\"\r\n");
    });
    CHECK(lying.get().error().kind == ErrorKind::integrity);
    CHECK(lying.taken == "old");
  }
}

TEST_CASE("a sink that fails ends the get with its error") {
  Lying lying([](const ScriptedServer::Request&, ScriptedServer::Wire& wire) {
    wire.answer(200, "0123456789", "ETag: \"1\"\r\n");
  });
  lying.taken_max = 5;
  CHECK(lying.get().error().message == "the disk is full");
  CHECK(lying.server.count() == 1);
}

TEST_CASE("a host without a grant is not asked") {
  Lying lying([](const ScriptedServer::Request&, ScriptedServer::Wire& wire) { wire.answer(200, ""); });
  lying.allowed = false;
  CHECK(lying.get().error().kind == ErrorKind::denied);
  CHECK(lying.server.count() == 0);
}

TEST_CASE("a store that asks for too long a wait is not waited for") {
  Lying lying([](const ScriptedServer::Request&, ScriptedServer::Wire& wire) {
    wire.answer(503, "<Error><Code>SlowDown</Code><Message>later</Message></Error>", "Retry-After: 3600\r\n");
  });
  const Error e = lying.get().error();
  CHECK(e.kind == ErrorKind::quota);
  CHECK(e.retry_after_ms == 3'600'000);
  CHECK(lying.server.count() == 1);
}

TEST_CASE("what a store says is shown as one line, without the keys") {
  Lying lying([](const ScriptedServer::Request&, ScriptedServer::Wire& wire) {
    wire.answer(403, "<Error><Code>AccessDenied</Code><Message>line\n\x1b[31m secret of the key</Message></Error>");
  });
  const Error e = lying.get().error();
  CHECK(e.kind == ErrorKind::auth);
  CHECK(e.message.find("secret of the key") == std::string::npos);
  CHECK(e.message.find('\n') == std::string::npos);
  CHECK(e.message.find('\x1b') == std::string::npos);
}

TEST_CASE("a region that is no name is not followed") {
  Lying lying([](const ScriptedServer::Request&, ScriptedServer::Wire& wire) {
    wire.answer(301, "<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message></Error>",
                "x-amz-bucket-region: evil.example.org/\r\n");
  });
  CHECK(!lying.get());
  CHECK(lying.server.count() == 1);
}
