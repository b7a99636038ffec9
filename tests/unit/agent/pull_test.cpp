#include "runtime/workflow/agent/pull.hpp"

#include <mutex>
#include <set>

#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/agent/file_server.hpp"
#include "tests/unit/agent/pull_fixture.hpp"

using namespace rille;
using namespace rille::agent;
namespace fs = std::filesystem;
using Request = ScriptedServer::Request;
using Wire = ScriptedServer::Wire;

TEST_CASE_METHOD(PullFixture, "a file is pulled in parts, each asked for once, and is not fetched again") {
  ScriptedServer server(honest());
  auto pulled = pull(server.url("/o?X-Amz-Signature=secret"));
  if (!pulled) FAIL(pulled.error().summary());
  CHECK(read(file()) == content);
  CHECK(pulled->size_bytes == 105'000);
  CHECK(pulled->moved_bytes == 105'000);
  CHECK(pulled->sha256 == sha());
  CHECK(pulled->version == etag);
  CHECK(told_bytes == 105'000);
  CHECK_FALSE(left_over());
  const auto asked = ranges(server);
  CHECK(asked.size() == 11);
  for (const auto& [range, times] : asked) CHECK(times == 1);
  for (const Request& r : server.requests()) CHECK(r.header("if-match") == etag);

  pulled = pull(server.url("/o"));
  CHECK(pulled->moved_bytes == 0);
  CHECK(pulled->sha256 == sha());
  CHECK(server.count() == 11);
  for (const auto& entry : fs::recursive_directory_iterator(temp.file("")))
    if (entry.is_regular_file()) CHECK(read(entry.path()).find("secret") == std::string::npos);
}

TEST_CASE_METHOD(PullFixture, "an edited file, and one of another version, is pulled again") {
  ScriptedServer server(honest());
  request.version.clear();
  CHECK(pull(server.url()).value().version == etag);
  const std::size_t asked = server.count();
  auto same = pull(server.url());
  CHECK(same.value().moved_bytes == 0);
  CHECK(server.count() == asked + 1);  // is it still the newest?
  CHECK(server.requests().back().header("if-none-match") == etag);
  write(file(), "edited");
  CHECK(pull(server.url()).ok());
  CHECK(read(file()) == content);
  content = noise(42'000), etag = "\"v2\"", request.size_bytes = 42'000;
  auto newer = pull(server.url());
  CHECK(newer.value().version == etag);
  CHECK(read(file()) == content);
}

TEST_CASE_METHOD(PullFixture, "what is not there at first is looked for at the server: size, version, emptiness") {
  ScriptedServer server(honest());
  request.size_bytes = -1, request.version.clear();
  CHECK(pull(server.url()).value().version == etag);
  CHECK(read(file()) == content);
  CHECK(server.count() == 11);
  content.clear(), etag = "\"v2\"", request.key = "empty", request.path = "none";
  CHECK(pull(server.url()).value().size_bytes == 0);
  CHECK(read(file("none")).empty());
  CHECK(fs::exists(file("none")));
  content = "few", request.key = "small", request.path = "few", etag = "\"v3\"";
  const std::size_t asked = server.count();
  CHECK(pull(server.url()).ok());
  CHECK(read(file("few")) == "few");
  CHECK(server.count() == asked + 1);
}

TEST_CASE_METHOD(PullFixture, "an empty and a small file are one request") {
  ScriptedServer server(honest());
  content.clear(), request.size_bytes = 0;
  CHECK(pull(server.url()).value().sha256 == sha256_hex(""));
  CHECK(fs::file_size(file()) == 0);
  content = noise(10'000), etag = request.version = "\"v2\"", request.size_bytes = 10'000;
  CHECK(pull(server.url()).value().moved_bytes == 10'000);
  CHECK(read(file()) == content);
  CHECK(server.count() == 2);
}

TEST_CASE_METHOD(PullFixture, "a server without ranges is read in one stream") {
  ScriptedServer server([this](const Request&, Wire& w) { w.answer(200, content, "ETag: " + etag + "\r\n"); });
  CHECK(pull(server.url()).value().sha256 == sha());
  CHECK(server.count() == 1);
  CHECK(read(file()) == content);
  ScriptedServer endless([this](const Request&, Wire& w) {  // and of unknown length
    w.send("HTTP/1.1 200 X\r\nConnection: close\r\n\r\n" + content);
    w.cut();
  });
  request.size_bytes = -1, request.version.clear(), request.key = "endless", request.path = "endless";
  CHECK(pull(endless.url()).value().size_bytes == 105'000);
  CHECK(read(file("endless")) == content);
  ScriptedServer nameless([this](const Request& r, Wire& w) {  // ranges, but nothing that names a version
    etag.clear();
    serve(r, w);
  });
  request.key = "nameless", request.path = "nameless";
  auto pulled = pull(nameless.url());
  if (!pulled) FAIL(pulled.error().summary());
  CHECK(read(file("nameless")) == content);
  CHECK(nameless.count() == 2);
}

TEST_CASE_METHOD(PullFixture, "a later pull goes on, and fetches no finished part again") {
  int answers = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (++answers <= 5 || answers > 20) serve(r, w);
    else w.cut();
  });
  request.parallel = 1;
  auto pulled = pull(server.url());
  REQUIRE_FALSE(pulled.ok());
  CHECK(pulled.error().kind == ErrorKind::network);
  CHECK(pulled.error().code != "cannot_reach");
  CHECK(states() == "11111000000");
  server.quietly([&] { answers = 20; });
  pulled = pull(server.url());
  if (!pulled) FAIL(pulled.error().summary());
  CHECK(pulled->moved_bytes == 55'000);
  CHECK(read(file()) == content);
  for (const auto& [range, times] : ranges(server))  // libcurl itself repeats a GET that a reused connection cut
    if (range != "bytes=50000-59999") CHECK(times == 1);
}

TEST_CASE_METHOD(PullFixture, "after another boot only what was synced counts") {
  int answers = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (++answers == 6) w.answer(404, "");
    else serve(r, w);
  });
  request.parallel = 1;
  REQUIRE_FALSE(pull(server.url()).ok());
  std::string note = read(note_path());
  const std::size_t boot = note.find("\"boot\":\"") + 8, marks = note.find('\n') + 1;
  note[boot] = note[boot] == '0' ? '1' : '0';
  note[marks + 1] = '2';  // as sync() leaves it
  write(note_path(), note);
  auto pulled = pull(server.url());
  if (!pulled) FAIL(pulled.error().summary());
  CHECK(pulled->moved_bytes == 95'000);
  CHECK(read(file()) == content);
}

TEST_CASE_METHOD(PullFixture, "a damaged note is no note") {
  for (const char* text : {"", "\n", "{}\n", "{\"key\":\"source\"}\n1111", "[[[[\n"}) {
    INFO(text);
    int answers = 0;
    ScriptedServer server([&](const Request& r, Wire& w) {
      if (++answers == 4) w.answer(404, "");
      else serve(r, w);
    });
    request.parallel = 1, request.path = "again", request.key = "damaged";
    fs::remove_all(directory + "/pulls"), fs::remove(file("again"));
    fs::remove_all(temp.file(".rille-cache-" + std::to_string(::geteuid())));
    REQUIRE_FALSE(pull(server.url()).ok());
    write(note_path(), text);
    CHECK(pull(server.url()).value().moved_bytes == 105'000);
    CHECK(read(file("again")) == content);
  }
}

TEST_CASE_METHOD(PullFixture,
                 "an object that changes on the way is an integrity error, and the next pull starts anew") {
  int answers = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (++answers == 4) etag = "\"v2\"";
    serve(r, w);
  });
  for (bool asks : {true, false}) {  // by If-Match, and by what the answers tell
    server.quietly([&] { answers = 0, etag = "\"v1\""; });
    request.version = asks ? "\"v1\"" : "";
    if (!asks) headers = {{"If-Match", "*"}};
    ScriptedServer careless([&](const Request& r, Wire& w) {
      if (++answers == 4) etag = "\"v2\"";
      Request plain = r;
      plain.headers.erase("if-match");
      serve(plain, w);
    });
    auto pulled = pull(asks ? server.url() : careless.url());
    REQUIRE_FALSE(pulled.ok());
    CHECK(pulled.error().kind == ErrorKind::integrity);
    CHECK_FALSE(left_over());
    CHECK_FALSE(fs::exists(file()));
  }
}

TEST_CASE_METHOD(PullFixture, "an object of another generation than the one asked for is an integrity error") {
  std::string generation = "7";
  ScriptedServer gs([&](const Request& r, Wire& w) {
    const std::string range = r.header("range");
    const std::string told = "x-goog-generation: " + generation + "\r\nETag: \"e\"\r\n";
    if (range.empty()) return w.answer(200, content, told);
    const std::size_t from = std::stoul(range.substr(6));
    const std::string piece = content.substr(from, part_bytes), total = std::to_string(content.size());
    const std::string bytes = std::to_string(from) + "-" + std::to_string(from + piece.size() - 1);
    w.answer(206, piece, told + "Content-Range: bytes " + bytes + "/" + total + "\r\n");
  });
  request.version = "8";
  for (const std::int64_t size : {part_bytes, std::int64_t{105'000}}) {
    INFO(size);
    content.resize(static_cast<std::size_t>(size)), request.size_bytes = size;
    request.key = "generation " + std::to_string(size), request.path = "data/" + std::to_string(size);
    generation = "7";
    const auto other = pull(gs.url());
    REQUIRE_FALSE(other.ok());
    CHECK(other.error().kind == ErrorKind::integrity);
    CHECK_FALSE(left_over());
    generation = "8";
    CHECK(pull(gs.url()).value().version == "8");
  }
}

// A part that ends in the same turn of the loop in which another part's head tells of the change is noted as done, in a
// part file that is there still.
TEST_CASE_METHOD(PullFixture, "an object that changes while parts end in the same turn is an integrity error") {
  std::mutex mutex;
  std::vector<std::pair<Request, Wire*>> open;  // asked for, and not answered yet
  ScriptedServer server([&](const Request& r, Wire& w) {
    const std::lock_guard lock(mutex);
    if (r.header("range").starts_with("bytes=0-")) serve(r, w);
    else open.emplace_back(r, &w);
  });
  const auto answer_at_once = [&]() -> Task<void> {
    const auto asked = [&] {
      const std::lock_guard lock(mutex);
      return open.size() == 3;
    };
    while (!asked()) (co_await sleep_for(*loop, 1, {})).ok();
    for (std::size_t i = 0; i < 3; ++i) {
      etag = i == 1 ? "\"v2\"" : "\"v1\"";
      open[i].first.headers.erase("if-match");
      serve(open[i].first, *open[i].second);
    }
  };
  request.parallel = 3;
  loop->spawn(answer_at_once());
  const auto pulled = pull(server.url());
  REQUIRE_FALSE(pulled.ok());
  CHECK(pulled.error().kind == ErrorKind::integrity);
  CHECK_FALSE(left_over());
  CHECK_FALSE(fs::exists(file()));
}

TEST_CASE_METHOD(PullFixture, "parts of an older version are thrown away if no version is asked for") {
  int answers = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (++answers == 4) w.answer(404, "");
    else serve(r, w);
  });
  request.version.clear(), request.parallel = 1;
  REQUIRE(pull(server.url()).error().kind == ErrorKind::invalid);
  content = std::string(105'000, 'z'), etag = "\"v2\"";
  auto pulled = pull(server.url());
  if (!pulled) FAIL(pulled.error().summary());
  CHECK(read(file()) == content);
  CHECK(pulled->version == etag);
}

TEST_CASE_METHOD(PullFixture, "another digest leaves nothing behind") {
  ScriptedServer server(honest());
  request.sha256 = sha256_hex("other");
  auto pulled = pull(server.url("/o?sig=secret"));
  REQUIRE_FALSE(pulled.ok());
  CHECK(pulled.error().kind == ErrorKind::integrity);
  CHECK(pulled.error().message.find(sha()) != std::string::npos);
  CHECK(pulled.error().message.find("sig") == std::string::npos);
  CHECK_FALSE(fs::exists(file()));
  CHECK_FALSE(left_over());
  request.sha256 = sha();
  CHECK(pull(server.url()).ok());
}

TEST_CASE_METHOD(PullFixture, "a disk without room is said before the first byte") {
  ScriptedServer server(honest());
  request.size_bytes = std::int64_t{1} << 42, request.part_bytes = 1 << 30;
  auto pulled = pull(server.url());
  REQUIRE_FALSE(pulled.ok());
  CHECK(pulled.error().kind == ErrorKind::quota);
  CHECK(pulled.error().code == "disk_full");
  CHECK(server.count() == 0);
  CHECK_FALSE(left_over());
}

TEST_CASE_METHOD(PullFixture, "paths that lead out, and values out of range, are refused") {
  ScriptedServer server(honest());
  for (const char* path : {"../out", "/tmp/rille-out", ".", "", "a/../../b"}) {
    INFO(path);
    request.path = path;
    auto pulled = pull(server.url());
    REQUIRE_FALSE(pulled.ok());
    CHECK(pulled.error().kind == ErrorKind::invalid);
  }
  fs::create_directories(file("folder"));
  request.path = "folder";
  CHECK(pull(server.url()).error().kind == ErrorKind::invalid);
  CHECK(server.count() == 0);
  request.path = "good";
  PullAddress address;
  address.url = server.url(), address.headers = {{"a", "b"}};
  const Value good = pull_header(request, address, 0);
  CHECK(pull_order_from(good).value().headers == net::Headers{{"a", "b"}});
  for (const auto& [field, value] : std::vector<std::pair<std::string, Value>>{{"key", ""},
                                                                               {"url", ""},
                                                                               {"size", -2},
                                                                               {"size", 1e18},
                                                                               {"part_bytes", 0},
                                                                               {"bytes_per_second_max", -1},
                                                                               {"sha256", "abc"},
                                                                               {"version", "a\nb"},
                                                                               {"key", std::string(2000, 'x')},
                                                                               {"expires_in_ms", -1}}) {
    INFO(field);
    Value bad = good;
    bad.set(field, value);
    CHECK_FALSE(pull_order_from(bad).ok());
  }
}

TEST_CASE_METHOD(PullFixture,
                 "a server that does not answer cannot be reached; one that refuses has an expired address") {
  int port = 0;
  {
    ScriptedServer gone(honest());
    port = gone.port();
  }
  auto pulled = pull("http://127.0.0.1:" + std::to_string(port) + "/o?sig=secret");
  REQUIRE_FALSE(pulled.ok());
  CHECK(pulled.error().kind == ErrorKind::network);
  CHECK(pulled.error().code == "cannot_reach");
  CHECK(pulled.error().summary().find("sig") == std::string::npos);
  for (const auto& [status, body] :
       std::vector<std::pair<int, std::string>>{{403, ""}, {401, ""}, {400, "<Code>ExpiredToken</Code>"}}) {
    ScriptedServer server([&](const Request&, Wire& w) { w.answer(status, body); });
    pulled = pull(server.url());
    REQUIRE_FALSE(pulled.ok());
    CHECK(pulled.error().kind == ErrorKind::auth);
    CHECK(pulled.error().code == "address_expired");
  }
}

TEST_CASE_METHOD(PullFixture, "no part is asked for with an address that is about to expire") {
  ScriptedServer server(honest());
  request.parallel = 1, request.bytes_per_second_max = 100'000, expires_in_ms = 300;  // it takes a second
  auto pulled = pull(server.url());
  REQUIRE_FALSE(pulled.ok());
  CHECK(pulled.error().code == "address_expired");
  const std::size_t asked = server.count();
  CHECK(asked < 11);
  request.bytes_per_second_max = 0, expires_in_ms = 0;
  CHECK(pull(server.url()).ok());
  CHECK(server.count() == 11);
}

TEST_CASE("the pace holds the bytes of all parts below its limit") {
  PullPace pace(1'000'000);
  std::int64_t now_ns = 1'000'000'000, moved = 0;
  const std::int64_t start_ns = now_ns;
  while (now_ns < start_ns + 10'000'000'000) {
    if (const std::int64_t ms = pace.wait_ms(now_ns)) {
      now_ns += ms * 1'000'000;
      continue;
    }
    pace.take(64 << 10, now_ns);
    moved += 64 << 10;
  }
  CHECK(moved > 8'000'000);
  CHECK(moved < 12'000'000);
  CHECK(PullPace(0).wait_ms(now_ns) == 0);
}

TEST_CASE_METHOD(PullFixture, "a pull keeps to its bandwidth") {
  ScriptedServer server(honest());
  request.bytes_per_second_max = 200'000;  // so 105,000 bytes take at least 0.4 s, but for the first burst
  const std::int64_t began_ns = loop->clock().monotonic_ns();
  CHECK(pull(server.url()).ok());
  CHECK(loop->clock().monotonic_ns() - began_ns >= 300'000'000);
  CHECK(read(file()) == content);
}

TEST_CASE_METHOD(PullFixture, "several pulls of one source fetch each part once, also from two agents") {
  ScriptedServer server(honest());
  const std::string other = temp.file("other");
  fs::create_directories(other + "/work");
  const auto here = puller(), there = puller(other);
  std::vector<Together<Pulled>> pulls(3);
  for (std::size_t i = 0; i < pulls.size(); ++i)
    pulls[i].start = [&, i](CancelToken cancel) {
      PullOrder one = order(server.url());
      one.request.path = "copy" + std::to_string(i);
      return Puller::pull(i == 2 ? there : here, std::move(one), {}, std::move(cancel));
    };
  const auto done = wait(together(*loop, std::move(pulls), 0, {}));
  std::int64_t moved_bytes = 0;
  for (const auto& one : done) {
    if (!one) FAIL(one.error().summary());
    moved_bytes += one->moved_bytes;
  }
  CHECK(moved_bytes == 105'000);
  CHECK(server.count() == 11);
  CHECK(read(file("copy0")) == content);
  CHECK(read(file("copy1")) == content);
  CHECK(read(other + "/work/copy2") == content);
  wait(finish(here));
  wait(finish(there));
}

TEST_CASE_METHOD(PullFixture, "many small files at once are in place, in the cache, and not fetched again") {
  ScriptedServer server([](const Request& r, Wire& w) {
    const std::string bytes = noise(100) + r.target;
    w.answer(206, bytes,
             "ETag: \"v1\"\r\nContent-Range: bytes 0-" + std::to_string(bytes.size() - 1) + "/" +
                 std::to_string(bytes.size()) + "\r\n");
  });
  const auto by = puller();
  const auto pull_all = [&](const std::string& folder, std::size_t count) {
    std::vector<Together<Pulled>> pulls(count);
    for (std::size_t i = 0; i < count; ++i)
      pulls[i].start = [&, i](CancelToken cancel) {
        PullOrder one = order(server.url("/" + std::to_string(i)));
        one.request.key = "source" + std::to_string(i), one.request.size_bytes = -1;
        one.request.path = folder + std::to_string(i % 5) + "/" + std::to_string(i);
        return Puller::pull(by, std::move(one), {}, std::move(cancel));
      };
    return wait(together(*loop, std::move(pulls), 0, {}));
  };
  write(file("bad3"), "a file where the folder is to be");
  const auto done = pull_all("bad", 40);
  for (std::size_t i = 0; i < done.size(); ++i) {
    INFO(i);
    CHECK(done[i].ok() == (i % 5 != 3));  // one that fails stops no other
    if (done[i])
      CHECK(read(file("bad" + std::to_string(i % 5) + "/" + std::to_string(i))) ==
            noise(100) + "/" + std::to_string(i));
  }
  CHECK(server.count() == 32);
  for (const auto& one : pull_all("good", 40)) CHECK((one && one->moved_bytes <= 104));
  CHECK(server.count() == 40);
  CHECK(read(file("good4/39")) == noise(100) + "/39");
  CHECK_FALSE(left_over());
  wait(finish(by));
}

TEST_CASE_METHOD(PullFixture, "a damaged file of the cache is fetched again, and a cache of others is not used") {
  ScriptedServer server(honest());
  const auto by = puller();
  CHECK(wait(Puller::pull(by, order(server.url()), {}, {})).ok());
  request.path = "second";  // waits for the cache
  CHECK(wait(Puller::pull(by, order(server.url()), {}, {})).value().moved_bytes == 0);
  const std::string cache = temp.file(".rille-cache-" + std::to_string(::geteuid()));
  CHECK((fs::status(cache).permissions() & fs::perms::all) == fs::perms::owner_all);
  write(cache + "/sha256/" + sha(), "damaged");
  request.path = "third";
  CHECK(pull(server.url()).value().moved_bytes == 105'000);
  CHECK(read(file("third")) == content);
  fs::permissions(cache, fs::perms::all);
  request.path = "fourth";
  CHECK(pull(server.url()).value().moved_bytes == 105'000);
}

TEST_CASE_METHOD(PullFixture, "a copy of the cache has no note of an older part file beside it") {
  int answers = 0;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (++answers == 4) w.answer(404, "");
    else serve(r, w);
  });
  const std::string name(256, 'n');  // too long for a file, but not its part file's: all but the rename succeeds
  request.parallel = 1, request.path = name;
  REQUIRE(pull(server.url()).error().kind == ErrorKind::invalid);
  REQUIRE_FALSE(note_path().empty());
  content = std::string(105'000, 'z'), etag = request.version = "\"v2\"", request.path = "other";
  const auto by = puller();
  REQUIRE(wait(Puller::pull(by, order(server.url()), {}, {})).ok());
  const std::size_t asked = server.count();
  request.path = name;  // waits for the cache
  const auto copied = wait(Puller::pull(by, order(server.url()), {}, {}));
  REQUIRE_FALSE(copied.ok());
  CHECK(copied.error().kind == ErrorKind::io);
  CHECK(server.count() == asked);
  CHECK(left_over());
  CHECK(note_path().empty());
}

TEST_CASE_METHOD(PullFixture, "prune removes what is not kept, and follows no link") {
  fs::create_directories(file("set/sub/deep"));
  for (const char* name : {"a", "b", "sub/c", "sub/deep/d", ".a.pull-0123"})
    write(file(std::string("set/") + name), "x");
  write(file("outside"), "x");
  fs::create_symlink(file("outside"), file("set/link"));
  fs::create_directory_symlink(directory, file("set/up"));
  FileServer server(directory + "/work");
  Value header;
  header.set("path", "set");
  REQUIRE(server.handle("prune", header, std::string("\0\0a\0sub/c\0", 10)).ok());
  std::set<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(file("set")))
    left.insert(entry.path().string().substr(file("set").size() + 1));
  CHECK(left == std::set<std::string>{"a", "sub", "sub/c"});
  CHECK(fs::exists(file("outside")));
  for (const char* bad : {".", "..", "/tmp", ""}) {
    header.set("path", bad);
    CHECK(server.handle("prune", header, std::string(2, '\0')).error().kind == ErrorKind::invalid);
  }
  header.set("path", "missing");
  CHECK(server.handle("prune", header, std::string(2, '\0')).ok());
  header.set("path", "set");
  for (const std::string& body : {std::string(), std::string(1, '\0'), std::string("\0\0cut", 5)})
    CHECK(server.handle("prune", header, body).error().kind == ErrorKind::invalid);
  CHECK(fs::exists(file("set/a")));
}
