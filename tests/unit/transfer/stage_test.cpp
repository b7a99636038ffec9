#include "runtime/workflow/transfer/stage.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "runtime/core/base/value.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"
#include "tests/unit/net/scripted_server.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::transfer;
using Request = ScriptedServer::Request;
using Wire = ScriptedServer::Wire;

namespace {

struct Fixture {
  TempDir dir;
  std::unique_ptr<Loop> loop = Loop::create().value();
  net::HttpClient client{*loop, {.proxy_from_environment = false, .jitter_seed = 1}};
  std::string content = std::string(300'000, 'a');
  std::string etag = "\"v1\"";
  StageOptions options;

  Fixture() {
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 2654435761u >> 11);
    options.retry.base_ms = 1;
  }
  Result<Staged> get(const std::string& source, const std::string& name = "out", CancelToken token = {}) {
    return run_blocking(*loop, stage(client, source, dir.file(name), options, token));
  }
  std::string out(const std::string& name = "out") { return store::read_file(dir.file(name)).value(); }
  std::string sha() { return store::fingerprint(content, true).sha256; }
  std::string validator() { return "ETag: " + etag + "\r\n"; }
  bool there(const std::string& name) { return std::filesystem::exists(dir.file(name)); }

  // A server that handles Range, If-Range and If-None-Match correctly.
  void serve(const Request& r, Wire& w) {
    if (r.header("if-none-match") == etag) return w.answer(304, "", validator());
    std::string range = r.header("range");
    bool partial = !range.empty() && r.header("if-range") == etag;
    if (!partial) return w.answer(200, content, validator());
    std::size_t from = std::stoul(range.substr(6));
    if (from >= content.size())
      return w.answer(416, "", "Content-Range: bytes */" + std::to_string(content.size()) + "\r\n");
    w.answer(206, content.substr(from),
             validator() + "Content-Range: bytes " + std::to_string(from) + "-" + std::to_string(content.size() - 1) +
                 "/" + std::to_string(content.size()) + "\r\n");
  }
  // Sends the head of the whole answer and only its first bytes.
  void send_some(Wire& w, std::size_t bytes) {
    w.send("HTTP/1.1 200 X\r\nContent-Length: " + std::to_string(content.size()) + "\r\n" + validator() + "\r\n" +
           content.substr(0, bytes));
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a pipe or a device is refused, not read for ever") {
  std::string pipe = dir.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& source : {pipe, std::string("/dev/zero"), "file://" + pipe}) {
    auto staged = get(source);
    REQUIRE_FALSE(staged.ok());
    CHECK(staged.error().kind == ErrorKind::invalid);
    CHECK(staged.error().message.find("neither a file nor a directory") != std::string::npos);
  }
}

TEST_CASE_METHOD(Fixture, "a validator that cannot be sent in a header is ignored") {
  etag = "\"v\x01\"";
  int asked = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    CHECK(r.header("if-range").empty());
    if (++asked == 1) send_some(w, 1000), w.cut();
    else serve(r, w);
  });
  const auto staged = get(server.url("/f"));
  INFO((staged.ok() ? "" : staged.error().summary()));
  REQUIRE(staged.ok());
  CHECK(out() == content);
  CHECK(staged->version.empty());
}

TEST_CASE_METHOD(Fixture, "a web file arrives whole, checked, with progress") {
  ScriptedServer server([&](const Request& r, Wire& w) { serve(r, w); });
  std::vector<Progress> seen;
  options.progress = [&](const Progress& p) { seen.push_back(p); };
  options.sha256 = sha();
  auto staged = get(server.url("/f?token=secret"), "deep/er/out");
  REQUIRE(staged.ok());
  CHECK(out("deep/er/out") == content);
  CHECK(staged->size_bytes == 300'000);
  CHECK(staged->sha256 == sha());
  CHECK(staged->version == etag);
  CHECK(!staged->from_cache);
  REQUIRE(!seen.empty());
  CHECK(seen.back().done_bytes == 300'000);
  CHECK(seen.back().total_bytes == 300'000);
  CHECK(seen.back().bytes_per_second > 0);
  CHECK(!there("deep/er/out.part"));
  CHECK(!there("deep/er/out.part.json"));
}

TEST_CASE_METHOD(Fixture, "a cut transfer goes on where it stopped") {
  int calls = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    ++calls;
    if (calls == 1) return send_some(w, 100'000), w.cut();
    if (calls == 2) {  // a part of the rest, then silence
      w.send("HTTP/1.1 206 X\r\nContent-Length: 200000\r\nContent-Range: bytes 100000-299999/300000\r\n" + validator() +
             "\r\n" + content.substr(100'000, 50'000));
      return w.hold();
    }
    serve(r, w);
  });
  options.stall_timeout_ms = 1000;
  auto staged = get(server.url("/f"));
  REQUIRE(staged.ok());
  CHECK(out() == content);
  auto requests = server.requests();
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].header("range").empty());
  CHECK(requests[1].header("range") == "bytes=100000-");
  CHECK(requests[1].header("if-range") == etag);
  CHECK(requests[2].header("range") == "bytes=150000-");
}

TEST_CASE_METHOD(Fixture, "a later call goes on with the part of an earlier one") {
  int calls = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    ++calls;
    if (calls == 1) return send_some(w, 100'000), w.cut();
    if (calls <= 5) return w.cut();
    serve(r, w);
  });
  options.resumes_max = 0;
  auto cut = get(server.url("/f"));
  REQUIRE(!cut.ok());
  CHECK(cut.error().kind == ErrorKind::network);
  CHECK(cut.error().hint.find("100000 bytes so far are kept") != std::string::npos);
  CHECK(there("out.part"));
  CHECK(!there("out"));

  SECTION("same version") {
    auto staged = get(server.url("/f"));
    REQUIRE(staged.ok());
    CHECK(staged->resumed_at_bytes == 100'000);
    CHECK(server.requests().back().header("range") == "bytes=100000-");
  }
  SECTION("the server has another version now") {
    etag = "\"v2\"";
    content = "short and new";
    auto staged = get(server.url("/f"));
    REQUIRE(staged.ok());
    CHECK(staged->version == etag);
  }
  SECTION("another URL does not continue it") {
    auto staged = get(server.url("/g"));
    REQUIRE(staged.ok());
    CHECK(staged->resumed_at_bytes == 0);
    CHECK(server.requests().back().header("range").empty());
  }
  SECTION("a part from before a reboot is not trusted without a digest") {
    Value note = Value::from_json(store::read_file(dir.file("out.part.json")).value()).value();
    REQUIRE(store::write_file_atomic(dir.file("out.part.json"), note.set("boot", "other").to_json()).ok());
    auto staged = get(server.url("/f"));
    REQUIRE(staged.ok());
    CHECK(staged->resumed_at_bytes == 0);
  }
  SECTION("a torn note is no note") {
    REQUIRE(store::write_file_atomic(dir.file("out.part.json"), "{\"url\":").ok());
    REQUIRE(get(server.url("/f")).ok());
  }
  SECTION("a part that is longer than the file") {
    std::ofstream(dir.file("out.part"), std::ios::app) << content;
    REQUIRE(get(server.url("/f")).ok());
  }
  CHECK(out() == content);
  CHECK(!there("out.part"));
  CHECK(!there("out.part.json"));
}

TEST_CASE_METHOD(Fixture, "the tail of another version is not taken from a server that ignores If-Range") {
  int calls = 0, tails = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (++calls == 1) return send_some(w, 100'000), w.cut();
    content[0] = 'B', etag = "\"v2\"";
    if (r.header("range").empty()) return serve(r, w);
    ++tails;
    w.answer(206, content.substr(100'000), validator() + "Content-Range: bytes 100000-299999/300000\r\n");
  });
  auto staged = get(server.url("/f"));
  REQUIRE(staged.ok());
  CHECK(staged->version == "\"v2\"");
  CHECK(out() == content);
  CHECK(tails == 1);
}

TEST_CASE_METHOD(Fixture, "a file above the limit is refused before and while it comes") {
  options.size_bytes_max = 200'000;
  std::string length = GENERATE("Content-Length: 300000\r\n", "");
  ScriptedServer server([&](const Request&, Wire& w) {
    w.send("HTTP/1.1 200 X\r\nConnection: close\r\n" + length + "\r\n" + content), w.cut();
  });
  auto staged = get(server.url("/f"));
  REQUIRE(!staged.ok());
  INFO(staged.error().message);
  CHECK(staged.error().message.find("limit") != std::string::npos);
  CHECK(server.count() == 1);
  CHECK(dir.entries() == 0);
}

TEST_CASE_METHOD(Fixture, "a busy server is asked again") {
  int calls = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (++calls == 1) return w.answer(503, "busy", "Retry-After: 0\r\n");
    serve(r, w);
  });
  REQUIRE(get(server.url("/f")).ok());
  CHECK(calls == 2);
  CHECK(out() == content);
}

TEST_CASE_METHOD(Fixture, "redirects are followed") {
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (r.target == "/f") return w.answer(302, "elsewhere", "Location: /real\r\n");
    serve(r, w);
  });
  REQUIRE(get(server.url("/f")).ok());
  CHECK(out() == content);
}

TEST_CASE_METHOD(Fixture, "a wrong checksum names both digests and leaves nothing") {
  ScriptedServer server([&](const Request& r, Wire& w) { serve(r, w); });
  REQUIRE(store::write_file_atomic(dir.file("out"), "what was there").ok());
  options.sha256 = std::string(64, '0');
  auto staged = get(server.url("/f?sig=secret"));
  REQUIRE(!staged.ok());
  CHECK(staged.error().kind == ErrorKind::integrity);
  CHECK(staged.error().message.find(sha()) != std::string::npos);
  CHECK(staged.error().message.find(options.sha256) != std::string::npos);
  CHECK(staged.error().message.find("secret") == std::string::npos);
  CHECK(out() == "what was there");
  CHECK(dir.entries() == 1);
}

TEST_CASE_METHOD(Fixture, "refusals are errors of their kind and leave nothing") {
  int status = GENERATE(404, 403, 500);
  ScriptedServer server([&](const Request&, Wire& w) { w.answer(status, "no such thing"); });
  auto staged = get(server.url("/f"));
  REQUIRE(!staged.ok());
  CHECK(staged.error().kind == (status == 404   ? ErrorKind::invalid
                                : status == 403 ? ErrorKind::auth
                                                : ErrorKind::network));
  CHECK(staged.error().http_status == status);
  CHECK(staged.error().message.find("no such thing") != std::string::npos);
  CHECK(dir.entries() == 0);
}

TEST_CASE_METHOD(Fixture, "a file without a validator is not continued but started again") {
  int calls = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    CHECK(r.header("range").empty());
    if (++calls == 1) {
      w.send("HTTP/1.1 200 X\r\nContent-Length: 300000\r\n\r\n" + content.substr(0, 1000));
      return w.cut();
    }
    w.answer(200, content);
  });
  REQUIRE(get(server.url("/f")).ok());
  CHECK(out() == content);
  CHECK(calls == 2);
}

TEST_CASE_METHOD(Fixture, "cancelling keeps what can be continued") {
  CancelSource source;
  ScriptedServer server([&](const Request&, Wire& w) { send_some(w, 100'000), w.hold(); });
  options.progress = [&](const Progress& p) {
    if (p.done_bytes > 0) loop->post([&] { source.cancel(make_error(ErrorKind::cancelled, "enough")); });
  };
  auto staged = get(server.url("/f"), "out", source.token());
  REQUIRE(!staged.ok());
  CHECK(staged.error().kind == ErrorKind::cancelled);
  CHECK(there("out.part"));
  CHECK(there("out.part.json"));
}

TEST_CASE_METHOD(Fixture, "the cache saves the second transfer and is checked") {
  ScriptedServer server([&](const Request& r, Wire& w) { serve(r, w); });
  options.cache_directory = dir.file("cache");
  REQUIRE(get(server.url("/f?part=1&X-Amz-Signature=one"), "a").ok());
  // The same address with another signature: the server is asked, and answers "not modified".
  auto again = get(server.url("/f?part=1&X-Amz-Signature=two"), "b");
  REQUIRE(again.ok());
  CHECK(again->from_cache);
  CHECK(again->version == etag);
  CHECK(out("b") == content);
  CHECK(!there("b.part"));
  CHECK(server.requests().back().header("if-none-match") == etag);
  // With an expected digest no request is sent.
  options.sha256 = sha();
  std::size_t asked = server.count();
  CHECK(get("http://nowhere.invalid/x", "c")->from_cache);
  CHECK(server.count() == asked);
  CHECK(out("c") == content);
  // A damaged cache entry is detected, dropped and fetched again.
  std::string file = dir.file("cache/sha256/" + sha());
  REQUIRE(store::write_file_atomic(file, std::string(300'000, 'z')).ok());
  auto fresh = get(server.url("/f"), "d");
  REQUIRE(fresh.ok());
  CHECK(!fresh->from_cache);
  CHECK(out("d") == content);
  options.sha256.clear();
  REQUIRE(store::write_file_atomic(file, std::string(300'000, 'z')).ok());
  fresh = get(server.url("/f"), "e");
  REQUIRE(fresh.ok());
  CHECK(!fresh->from_cache);
  CHECK(out("e") == content);
  // A new version is fetched.
  etag = "\"v2\"", content = "new";
  CHECK(!get(server.url("/f"), "f")->from_cache);
  CHECK(out("f") == "new");
}

TEST_CASE_METHOD(Fixture, "nothing is written that there is no room for") {
  ScriptedServer server([&](const Request& r, Wire& w) { serve(r, w); });
  std::int64_t counted = 0, most = 0;
  options.room = [&](std::int64_t bytes) -> Result<> {
    if (counted + bytes > most) return make_error(ErrorKind::quota, "full");
    counted += bytes;
    return success();
  };
  const auto size = [&](const std::string& name) {
    return static_cast<std::int64_t>(std::filesystem::file_size(dir.file(name)));
  };
  SECTION("of a web file") {
    most = 150'000;
    auto full = get(server.url("/f"));
    REQUIRE(!full.ok());
    CHECK(full.error().kind == ErrorKind::quota);
    CHECK(size("out.part") + size("out.part.json") == counted);
    CHECK(server.count() == 1);
    most = 1'000'000;  // what was kept is not counted again
    const std::int64_t before = counted, kept = size("out.part");
    REQUIRE(get(server.url("/f")).ok());
    CHECK(counted - before == 300'000 - kept);
  }
  SECTION("in the cache, and of a copy from there") {
    options.cache_directory = dir.file("cache");
    most = 400'000;  // enough for the file, not for the cache's copy
    REQUIRE(get(server.url("/f"), "a").ok());
    CHECK(!there("cache/sha256/" + sha()));
    most = 10'000'000;
    std::int64_t before = counted;
    REQUIRE(get(server.url("/f"), "b").ok());
    CHECK(counted - before > 600'000);
    CHECK(size("cache/sha256/" + sha()) == 300'000);
    before = counted;
    CHECK(get(server.url("/f"), "c")->from_cache);
    CHECK(counted - before == 300'000);
    most = counted + 299'999;
    CHECK(get(server.url("/f"), "d").error().kind == ErrorKind::quota);
    CHECK(!there("d"));
  }
  SECTION("of local files") {
    REQUIRE(store::make_directories(dir.file("folder/deep")).ok());
    for (const char* name : {"folder/x", "folder/deep/y"})
      REQUIRE(store::write_file_atomic(dir.file(name), content).ok());
    most = 500'000;
    CHECK(get(dir.file("folder"), "copy").error().kind == ErrorKind::quota);
    CHECK(counted == 300'000);
    CHECK(get("file://" + dir.file("folder/x"), "copy2").error().kind == ErrorKind::quota);
    CHECK(!there("copy2"));
  }
}

TEST_CASE_METHOD(Fixture, "parameters that are no signature are part of a cached address") {
  ScriptedServer server([&](const Request& r, Wire& w) {
    const std::string dated = "Last-Modified: Mon, 02 Nov 2026 00:00:00 GMT\r\n";
    if (r.header("if-modified-since").empty()) return w.answer(200, r.target, dated);
    w.answer(304, "", dated);
  });
  options.cache_directory = dir.file("cache");
  for (const char* path :
       {"/f?key=new", "/f?key=old", "/f?token=a", "/f?token=b&sv=2026", "/f?st=a", "/f?st=b", "/f?q-1"}) {
    REQUIRE(get(server.url(path), "x").ok());
    CHECK(out("x") == path);
    std::filesystem::remove(dir.file("x"));
  }
}

TEST_CASE_METHOD(Fixture, "the cache stays within its limit") {
  ScriptedServer server([&](const Request& r, Wire& w) {
    w.answer(200, std::string(1000, r.target[1]), "ETag: \"" + r.target.substr(1) + "\"\r\n");
  });
  options.cache_directory = dir.file("cache");
  options.cache_bytes_max = 2500;
  for (const char* path : {"/a", "/b", "/c", "/d"}) REQUIRE(get(server.url(path)).ok());
  std::size_t files = 0;
  for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator(dir.file("cache/sha256"))) ++files;
  CHECK(files == 2);
  options.cache_bytes_max = 10;
  REQUIRE(get(server.url("/e")).ok());
  CHECK(out() == std::string(1000, 'e'));
}

TEST_CASE_METHOD(Fixture, "two fetches to one place do not mix") {
  ScriptedServer server([&](const Request&, Wire& w) { send_some(w, 1000), w.hold(); });
  CancelSource source;
  bool first_done = false;
  loop->spawn([](Fixture& f, std::string url, CancelToken token, bool& done) -> Task<> {
    (void)co_await stage(f.client, url, f.dir.file("out"), f.options, token);
    done = true;
  }(*this, server.url("/f"), source.token(), first_done));
  auto second = get(server.url("/f"));
  REQUIRE(!second.ok());
  CHECK(second.error().kind == ErrorKind::state);
  CHECK(there("out.part"));
  source.cancel(make_error(ErrorKind::cancelled, "x"));
  loop->run_until([&] { return first_done; });
}

TEST_CASE_METHOD(Fixture, "local files and directories") {
  REQUIRE(store::make_directories(dir.file("src/sub")).ok());
  REQUIRE(store::write_file_atomic(dir.file("src/one file"), content).ok());
  REQUIRE(store::write_file_atomic(dir.file("src/sub/two"), "22").ok());
  Progress last;
  options.progress = [&](const Progress& p) { last = p; };
  auto tree = get(dir.file("src"), "copy");
  REQUIRE(tree.ok());
  CHECK(tree->size_bytes == 300'002);
  CHECK(last.done_bytes == 300'002);
  CHECK(last.total_bytes == 300'002);
  CHECK(out("copy/one file") == content);
  CHECK(out("copy/sub/two") == "22");
  options.sha256 = sha();
  auto file = get("file://" + dir.file("src/one%20file"));
  REQUIRE(file.ok());
  CHECK(file->sha256 == sha());
  CHECK(out() == content);
  options.sha256 = std::string(64, 'A');
  auto wrong = get(dir.file("src/sub/two"), "two");
  CHECK(wrong.error().kind == ErrorKind::integrity);
  CHECK(!there("two"));
  CHECK(get(dir.file("src"), "again").error().kind == ErrorKind::invalid);
}

TEST_CASE_METHOD(Fixture, "what cannot be staged is named") {
  CHECK(get(dir.file("none")).error().kind == ErrorKind::io);
  CHECK(get("s3://bucket/key").error().kind == ErrorKind::invalid);
  CHECK(get("file://elsewhere/x").error().kind == ErrorKind::invalid);
  CHECK(get("").error().kind == ErrorKind::invalid);
  REQUIRE(store::write_file_atomic(dir.file("f"), "1").ok());
  REQUIRE(store::make_directories(dir.file("d")).ok());
  CHECK(get(dir.file("f"), "d").error().message.find("is a directory") != std::string::npos);
  CHECK(get("http://127.0.0.1:1/", "d").error().message.find("is a directory") != std::string::npos);
  CHECK(get(dir.file("d"), "d/inside").error().kind == ErrorKind::invalid);
  options.sha256 = "abc";
  CHECK(get(dir.file("f")).error().message.find("abc") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "a self-signed server is refused") {
  ScriptedServer server([&](const Request& r, Wire& w) { serve(r, w); }, true);
  auto staged = get(server.url("/f"));
  REQUIRE(!staged.ok());
  CHECK(staged.error().message.find("certificate is not valid") != std::string::npos);
  CHECK(dir.entries() == 0);
}
