#include "runtime/core/base/id.hpp"
#include "runtime/workflow/agent/file_server.hpp"
#include "runtime/workflow/agent/frame.hpp"
#include "runtime/workflow/agent/paths.hpp"
#include "tests/unit/agent/fixture.hpp"
#include "tests/unit/net/scripted_server.hpp"

using namespace rille;
using namespace rille::agent;
namespace fs = std::filesystem;

namespace {
std::string noise(std::size_t size) {
  std::string out(size, '\0');
  std::uint64_t x = 88172645463325252ull;
  for (char& c : out) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    c = static_cast<char>(x);
  }
  return out;
}
std::string part_name(const std::string& name, const std::string& content) {
  return "." + name + ".part-" + sha256_hex(content).substr(0, 16);
}
}  // namespace

TEST_CASE("paths stay inside") {
  CHECK(inside("/w", "a/b").value() == "/w/a/b");
  CHECK(inside("/w", "./a//b/.").value() == "/w/a/b");
  CHECK(inside("/w", ".").value() == "/w");
  CHECK(inside("/w", "a..b").value() == "/w/a..b");
  for (std::string bad : {"", "/etc/passwd", "..", "a/../../b", "a/..", "../x"}) {
    INFO(bad);
    auto r = inside("/w", bad);
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == ErrorKind::invalid);
  }
  CHECK_FALSE(inside("/w", std::string("a\0b", 3)).ok());
  CHECK_FALSE(inside("/w", std::string(5000, 'a')).ok());
}

TEST_CASE_METHOD(AgentFixture, "files and directories go there and come back") {
  auto client = connect();
  std::string big = noise((5 << 20) + 17);
  fs::create_directories(temp.file("in/sub/empty"));
  write(temp.file("in/big"), big);
  write(temp.file("in/sub/small"), "hello");
  write(temp.file("in/none"), "");
  fs::permissions(temp.file("in/sub/small"), fs::perms::owner_all);
  std::int64_t last = 0, total = 0;
  auto sum = wait(client->put(temp.file("in"), "data/set", [&](std::int64_t d, std::int64_t t) {
               CHECK(d >= last);
               last = d;
               total = t;
             })).value();
  CHECK(sum.files == 3);
  CHECK(sum.moved_bytes == static_cast<std::int64_t>(big.size()) + 5);
  CHECK(last == total);
  CHECK(read(directory + "/work/data/set/big") == big);
  CHECK(fs::is_directory(directory + "/work/data/set/sub/empty"));
  CHECK((fs::status(directory + "/work/data/set/sub/small").permissions() & fs::perms::owner_exec) != fs::perms::none);
  CHECK(wait(client->put(temp.file("in"), "data/set"))->moved_bytes == 0);

  auto back = wait(client->get("data/set", temp.file("out"))).value();
  CHECK(back.files == 3);
  CHECK(read(temp.file("out/big")) == big);
  CHECK(read(temp.file("out/sub/small")) == "hello");
  CHECK(fs::exists(temp.file("out/none")));
  CHECK(fs::is_directory(temp.file("out/sub/empty")));
  CHECK(wait(client->get("data/set", temp.file("out")))->moved_bytes == 0);
  CHECK(wait(client->get("data/set/big", temp.file("alone")))->moved_bytes == static_cast<std::int64_t>(big.size()));

  auto entries = wait(client->list("data")).value();
  REQUIRE(entries.size() == 6);
  CHECK(entries[0].path == "set");
  CHECK(entries[0].directory);
  CHECK(wait(client->stat("data/set/big", true))->sha256 == sha256_hex(big));
  CHECK_FALSE(wait(client->get("data/missing", temp.file("x"))).ok());
  CHECK_FALSE(wait(client->put(temp.file("missing"), "x")).ok());
}

TEST_CASE_METHOD(AgentFixture, "a machine sends a range of a file to an address, and no other file") {
  auto client = connect();
  write(directory + "/work/f", "0123456789");
  write(directory + "/secret", "not in the work directory");
  std::string taken;
  ScriptedServer server([&](const ScriptedServer::Request& r, ScriptedServer::Wire& w) {
    if (r.target != "/p?signed=1" || r.method != "PUT") return w.answer(403, "Request has expired");
    taken = r.header("x-kind") + r.body;
    w.answer(200, "", "ETag: \"e1\"\r\n");
  });
  const auto push = [&](const std::string& path, std::int64_t offset, std::int64_t bytes, const std::string& target) {
    PushRequest request;
    request.path = path;
    request.offset = offset;
    request.size_bytes = bytes;
    request.to.url = server.url(target);
    request.to.headers = {{"X-Kind", "k"}};
    return wait(client->push(std::move(request)));
  };
  CHECK(push("f", 3, 4, "/p?signed=1").value().mark == "\"e1\"");
  CHECK(server.quietly([&] { return taken; }) == "k3456");
  const Error refused = push("f", 0, 10, "/p?signed=0").error();
  CHECK(refused.http_status == 403);
  CHECK(refused.message.find("signed=0") == std::string::npos);
  const std::size_t asked = server.count();
  CHECK(push("f", 3, 8, "/p?signed=1").error().kind == ErrorKind::invalid);
  CHECK(push("f", -1, 1, "/p?signed=1").error().kind == ErrorKind::invalid);
  CHECK(push("../secret", 0, 3, "/p?signed=1").error().kind == ErrorKind::invalid);
  CHECK(push("none", 0, 0, "/p?signed=1").error().kind == ErrorKind::io);
  CHECK(server.count() == asked);
}

TEST_CASE_METHOD(AgentFixture, "a folder that is held can be fetched after it was removed") {
  auto client = connect();
  const std::string work = directory + "/work/";
  fs::create_directories(work + "saved/one/sub");
  write(work + "saved/one/a", "first"), write(work + "saved/one/sub/b", "deep");
  fs::create_symlink("/etc/passwd", work + "saved/one/link");
  const std::string held = wait(client->hold("saved/one", "0a")).value();
  CHECK(held == "saved/.held-0a");
  fs::remove_all(work + "saved/one");
  REQUIRE(wait(client->get(held, temp.file("back/"))).ok());
  CHECK(read(temp.file("back/a")) == "first");
  CHECK(read(temp.file("back/sub/b")) == "deep");
  CHECK_FALSE(fs::exists(temp.file("back/link")));
  CHECK(wait(client->list("saved")).value().empty());  // what is held is no file of the program

  fs::create_directories(work + "saved/two");
  write(work + "saved/two/c", "second");
  REQUIRE(wait(client->hold("./saved/two/", "0a")).value() == held);  // in place of the first
  CHECK_FALSE(fs::exists(work + held + "/a"));
  CHECK(read(work + held + "/c") == "second");
  REQUIRE(wait(client->remove(held)).ok());
  CHECK_FALSE(fs::exists(work + held));
  CHECK(read(work + "saved/two/c") == "second");

  CHECK(wait(client->hold("saved/none", "0a")).error().kind == ErrorKind::io);
  CHECK_FALSE(fs::exists(work + held));
  for (const char* bad : {".", "", "../saved", "/tmp"})
    CHECK(wait(client->hold(bad, "0a")).error().kind == ErrorKind::invalid);
  for (const char* bad : {"", "../x", "a/b", "A"})
    CHECK(wait(client->hold("saved/two", bad)).error().kind == ErrorKind::invalid);
}

TEST_CASE_METHOD(AgentFixture, "the room at a path is that of its disk, and what lies there") {
  auto client = connect();
  const std::int64_t free = wait(client->room("new/folder", false)).value();
  CHECK(free > 0);
  fs::create_directories(directory + "/work/there/sub");
  write(directory + "/work/there/a", noise(1 << 20));
  write(directory + "/work/there/sub/.b.pull-0123", noise(2 << 20));  // of a transfer that goes on
  const std::int64_t without = wait(client->room("there", false)).value();
  const std::int64_t with = wait(client->room("there", true)).value();
  CHECK(with - without > (2 << 20));  // other programs write meanwhile
  CHECK(wait(client->room("../x", false)).error().kind == ErrorKind::invalid);
}

TEST_CASE_METHOD(AgentFixture, "transfers go on where they stopped, both ways") {
  auto client = connect();
  std::string big = noise(3 << 20);
  write(temp.file("big"), big);
  write(directory + "/work/" + part_name("big", big), big.substr(0, 2 << 20));
  auto sum = wait(client->put(temp.file("big"), "big")).value();
  CHECK(sum.moved_bytes == (1 << 20));
  CHECK(read(directory + "/work/big") == big);
  CHECK_FALSE(fs::exists(directory + "/work/" + part_name("big", big)));

  write(temp.file("back.part-" + sha256_hex(big).substr(0, 16)), big.substr(0, 1 << 20));
  auto back = wait(client->get("big", temp.file("back"))).value();
  CHECK(back.moved_bytes == (2 << 20));
  CHECK(read(temp.file("back")) == big);
}

TEST_CASE_METHOD(AgentFixture, "what arrives damaged is an integrity error and leaves nothing") {
  auto client = connect();
  std::string big = noise(3 << 20);
  write(temp.file("big"), big);
  std::string part = directory + "/work/" + part_name("big", big);
  write(part, std::string(2 << 20, 'x'));
  auto put = wait(client->put(temp.file("big"), "big"));
  REQUIRE_FALSE(put.ok());
  CHECK(put.error().kind == ErrorKind::integrity);
  CHECK(put.error().retryable);
  CHECK_FALSE(fs::exists(part));
  CHECK_FALSE(fs::exists(directory + "/work/big"));
  CHECK(wait(client->put(temp.file("big"), "big")).ok());

  std::string here = temp.file("back.part-" + sha256_hex(big).substr(0, 16));
  write(here, std::string(1 << 20, 'x'));
  auto get = wait(client->get("big", temp.file("back")));
  REQUIRE_FALSE(get.ok());
  CHECK(get.error().kind == ErrorKind::integrity);
  CHECK_FALSE(fs::exists(here));
  CHECK_FALSE(fs::exists(temp.file("back")));
}

TEST_CASE_METHOD(AgentFixture, "an archive is unpacked on the instance") {
  auto client = connect();
  fs::create_directories(temp.file("in/sub"));
  write(temp.file("in/sub/a"), "hello");
  write(temp.file("in/b"), "12");
  REQUIRE(std::system(("tar -C " + temp.file("in") + " -czf " + temp.file("a.tar.gz") + " .").c_str()) == 0);
  REQUIRE(wait(client->put(temp.file("a.tar.gz"), "a.tar.gz")).ok());
  const auto sum = wait(client->unpack("a.tar.gz", "data/set")).value();
  CHECK(sum.files == 2);
  CHECK(sum.size_bytes == 7);
  CHECK(read(directory + "/work/data/set/sub/a") == "hello");
  write(directory + "/work/text", "no archive");
  CHECK(wait(client->unpack("text", "data")).error().kind == ErrorKind::invalid);
  CHECK(wait(client->unpack("../agent.log", "data")).error().kind == ErrorKind::invalid);
  CHECK(wait(client->unpack("a.tar.gz", "../out")).error().kind == ErrorKind::invalid);
  CHECK_FALSE(fs::exists(directory + "/out"));
}

TEST_CASE_METHOD(AgentFixture, "paths that lead out are refused at the agent") {
  auto client = connect();
  write(temp.file("f"), "x");
  for (std::string bad : {"../out", "/tmp/rille-out", "a/../../out"}) {
    auto put = wait(client->put(temp.file("f"), bad));
    REQUIRE_FALSE(put.ok());
    CHECK(put.error().kind == ErrorKind::invalid);
    CHECK_FALSE(wait(client->get(bad, temp.file("g"))).ok());
    CHECK_FALSE(wait(client->list(bad)).ok());
  }
  CHECK_FALSE(fs::exists(directory + "/out"));
}

TEST_CASE("a chunk out of place is refused, and the first one starts afresh") {
  TempDir temp;
  FileServer server(temp.path);
  Value header;
  header.set("path", "f").set("size", 6).set("sha256", sha256_hex("abcdef")).set("offset", 3);
  auto early = server.handle("put", header, "def");
  REQUIRE_FALSE(early.ok());
  CHECK(early.error().kind == ErrorKind::state);
  header.set("offset", 0);
  REQUIRE(server.handle("put", header, "abc").ok());
  REQUIRE(server.handle("put", header, "abc").ok());
  CHECK(server.handle("put_begin", header, "")->value.number("offset") == 3);
  header.set("offset", 3);
  CHECK_FALSE(server.handle("put", header, "defg").ok());
  REQUIRE(server.handle("put", header, "def").ok());
  CHECK(server.handle("put_begin", header, "")->value.boolean("have"));
  CHECK(AgentFixture::read(temp.file("f")) == "abcdef");
  header.set("length", static_cast<std::int64_t>(chunk_bytes + 1));
  CHECK_FALSE(server.handle("get", header, "").ok());
}
