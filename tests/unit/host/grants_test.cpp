#include "bindings/host/grants.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "bindings/host/real_path.hpp"
#include "tests/unit/host/fake_run.hpp"

using namespace rille;
using namespace rille::host;
namespace fs = std::filesystem;

namespace {

Grants grants(const std::string& json) {
  auto value = Value::from_json(json);
  REQUIRE(value);
  auto parsed = Grants::parse(*value);
  REQUIRE(parsed);
  return *parsed;
}

std::string refusal(const std::string& json) {
  auto parsed = Grants::parse(*Value::from_json(json));
  return parsed ? "no error" : parsed.error().message;
}

template <class T>
std::string outcome(const Result<T>& r) {
  if (r) return "granted";
  return r.error().kind == ErrorKind::denied ? "denied: " + r.error().message : r.error().message;
}

// root/inside, which tests grant, and root/outside with a secret
struct Folders {
  fs::path root, inside, outside;
  Folders() {
    std::string name = "/tmp/rille-grants-XXXXXX";
    root = fs::canonical(mkdtemp(name.data()));
    inside = root / "inside", outside = root / "outside";
    fs::create_directories(inside / "deeper");
    fs::create_directories(outside);
    std::ofstream(outside / "secret") << "secret";
    std::ofstream(inside / "file") << "file";
  }
  ~Folders() { fs::remove_all(root); }
  Grants reads() const { return grants(R"({"read":[")" + inside.string() + R"("]})"); }
  Grants writes() const { return grants(R"({"write":[")" + inside.string() + R"("]})"); }
};

bool denied_to(const Result<std::string>& r) { return !r && r.error().kind == ErrorKind::denied; }

}  // namespace

TEST_CASE("nothing is granted unless it is said, and everything is one word") {
  const Grants none;
  CHECK(outcome(none.read("/etc/passwd")) == R"(denied: reading /etc/passwd needs the grant read = "/etc")");
  CHECK(outcome(none.write("/etc/x/../passwd")) == R"(denied: writing /etc/passwd needs the grant write = "/etc")");
  CHECK(outcome(none.read("/etc", Grants::Names::tree)) == R"(denied: reading /etc needs the grant read = "/etc")");
  CHECK(outcome(none.env("HOME")) == R"(denied: reading the environment variable HOME needs the grant env = "HOME")");
  CHECK(outcome(none.process("os.execute")) == "denied: os.execute needs the grant process = true");
  CHECK(outcome(none.kernels("dev:kernel")) == "denied: dev:kernel needs the grant kernels = true");
  CHECK(outcome(none.connect("box:stage", "10.0.0.1", "80")) ==
        R"(denied: box:stage at 10.0.0.1:80 needs the grant network = "10.0.0.1:80")");
  const Error e = none.read("/etc/passwd").error();
  CHECK(e.code == "read");
  CHECK(e.hint.find("--grant read=/etc") != std::string::npos);
  const Grants all = grants(R"({"all":true})");
  CHECK(all.is_everything());
  CHECK(all.read("relative/../x").value() == "relative/../x");  // unchanged
  CHECK(outcome(all.connect("x", "h", "1")) == "granted");
  CHECK(all.to_value().to_json() == R"({"all":true})");
}

TEST_CASE("grants are read strictly and written as they are read") {
  CHECK(refusal(R"({"raed":["/"]})") == "there is no grant 'raed'");
  CHECK(refusal(R"({"read":1})") == "the grant read = 1");
  CHECK(refusal(R"({"read":[1]})") == "the grant read = [1]");
  CHECK(refusal(R"({"read":[""]})") == R"(the grant read = [""])");
  CHECK(refusal(R"({"process":"yes"})") == R"(the grant process = "yes")");
  CHECK(refusal(R"(["read"])") == "grants are not an object");
  CHECK(refusal("[]") == "no error");  // an empty Lua table
  const std::string text =
      R"({"env":["A","B"],"kernels":true,"network":["h:1"],"providers":["aws"],"read":["/nowhere"]})";
  CHECK(grants(text).to_value().to_json() == text);
  CHECK(grants(R"({"read":true})").to_value().to_json() == R"({"read":true})");
  CHECK(Grants::from_words({"read=/a", "read=/b", "process", "env"})->to_value().to_json() ==
        R"({"env":true,"process":true,"read":["/a","/b"]})");
  CHECK(Grants::from_words({"raed=/a"}).error().hint == "did you mean 'read'?");
  CHECK(Grants::from_words({}).value().to_value().to_json() == "{}");
  CHECK(Grants::parse(*Value::from_json(R"({"read":["data"]})"), "/nowhere/scripts")->to_value().to_json() ==
        R"({"read":["/nowhere/scripts/data"]})");
}

TEST_CASE_METHOD(Folders, "a path is judged by where it leads") {
  const Grants g = reads();
  CHECK(g.read(inside / "file").value() == (inside / "file").string());
  CHECK(g.read(inside / "deeper/../file").value() == (inside / "file").string());
  CHECK(outcome(g.read(inside / "not there")) == "granted");
  CHECK(denied_to(g.read(outside / "secret")));
  CHECK(denied_to(g.read(inside / "../outside/secret")));
  CHECK(denied_to(g.read(inside.string() + "2")));  // another folder whose name begins the same
  CHECK(denied_to(g.read(inside / "deeper/../../outside/secret")));
  CHECK(denied_to(g.write(inside / "file")));
  CHECK(outcome(g.read("")) == "a path is empty");
  CHECK(outcome(g.read(std::string("/etc\0", 5))) == "a path has a zero byte in it");
  CHECK(outcome(g.read(std::string(200'000, 'a'))).starts_with("a path has 200000 bytes, more than the system takes"));
}

TEST_CASE_METHOD(Folders, "links do not lead out") {
  fs::create_symlink(outside / "secret", inside / "link");
  fs::create_directory_symlink(outside, inside / "folder");
  fs::create_symlink("../outside/secret", inside / "relative");
  fs::create_symlink(outside / "new", inside / "dangling");
  fs::create_symlink("loop", inside / "loop");
  fs::create_symlink("file", inside / "good");
  const Grants g = reads(), w = writes();
  for (const char* name : {"link", "folder/secret", "relative", "folder/../outside/secret", "deeper/../link"})
    CHECK(denied_to(g.read(inside / name)));
  CHECK(denied_to(w.write(inside / "dangling")));  // fopen would create its target
  CHECK(denied_to(w.write(inside / "folder/new")));
  CHECK(g.read(inside / "loop").error().code.find("errno") == 0);
  CHECK(g.read(inside / "good").value() == (inside / "file").string());
  const std::string shown = g.read(inside / "link").error().message;
  CHECK(shown == "reading " + (inside / "link").string() + ", a link to " + (outside / "secret").string() +
                     ", needs the grant read = \"" + outside.string() + "\"");
  // the target of a link outside of the granted folders is not shown
  fs::create_symlink("/etc/hostname", outside / "away");
  CHECK(g.read(outside / "away").error().message.find("hostname") == std::string::npos);
  // removing and renaming work on the link itself
  CHECK(w.write(inside / "link", Grants::Names::entry).value() == (inside / "link").string());
  CHECK(denied_to(w.write(inside / "folder/secret", Grants::Names::entry)));
}

TEST_CASE_METHOD(Folders, "a tree with a link out of it is refused") {
  const Grants g = reads();
  fs::create_symlink("file", inside / "good");
  CHECK(outcome(g.read(inside, Grants::Names::tree)) == "granted");
  fs::create_symlink(outside / "secret", inside / "deeper/link");
  CHECK(denied_to(g.read(inside, Grants::Names::tree)));
  CHECK(outcome(g.read(inside / "file", Grants::Names::tree)) == "granted");
}

TEST_CASE_METHOD(Folders, "the folders of grants may be links themselves") {
  fs::create_directory_symlink(inside, root / "alias");
  const Grants g = grants(R"({"read":[")" + (root / "alias").string() + R"("]})");
  CHECK(outcome(g.read(inside / "file")) == "granted");
  CHECK(outcome(g.read(root / "alias/file")) == "granted");
  fs::remove(root / "alias");
  fs::create_directory_symlink(outside, root / "alias");  // followed once, when the grants were given
  CHECK(denied_to(g.read(root / "alias/secret")));
}

TEST_CASE_METHOD(Folders, "the mode of a file decides which grant it needs") {
  const Grants g = reads(), w = writes();
  const std::string file = inside / "file";
  for (const char* mode : {"r", "rb", ""}) CHECK(outcome(g.open(file, mode)) == "granted");
  for (const char* mode : {"w", "a", "wb", "r+", "w+", "a+b", "rb+"}) CHECK(denied_to(g.open(file, mode)));
  for (const char* mode : {"w", "a", "wb"}) CHECK(outcome(w.open(file, mode)) == "granted");
  for (const char* mode : {"r", "r+", "w+"}) CHECK(denied_to(w.open(file, mode)));
}

TEST_CASE_METHOD(Folders, "the run's own folder and the standard streams have names") {
  Grants g = grants(R"({"write":["rille.home","/dev/stdout"]})");
  CHECK(g.names_home());
  CHECK(denied_to(g.write(inside / "x")));  // it is not known yet
  g.set_home(inside);
  CHECK(outcome(g.write(inside / "x")) == "granted");
  CHECK(denied_to(g.write(outside / "x")));
  CHECK(g.to_value().to_json() == R"({"write":["rille.home","/dev/stdout"]})");
  CHECK(g.write("/dev/stdout").value() == "/dev/stdout");
  CHECK(denied_to(g.write("/dev/stderr")));
  CHECK(denied_to(g.read("/dev/stdin")));
  CHECK(denied_to(Grants(reads()).read("/proc/self/fd/0")));
}

TEST_CASE_METHOD(Folders, "code beside the script needs no grant") {
  const Grants none;
  CHECK(outcome(none.read_code(inside / "file", inside)) == "granted");
  CHECK(denied_to(none.read_code(outside / "secret", inside)));
  CHECK(denied_to(none.read_code(inside / "file", "")));
  fs::create_symlink(outside / "secret", inside / "link.lua");
  CHECK(denied_to(none.read_code(inside / "link.lua", inside)));
}

TEST_CASE("hosts are compared as names, with or without a port") {
  const Grants g = grants(R"({"network":["Example.org","10.0.0.1:29500","[::1]:80","::2"]})");
  CHECK(outcome(g.connect("x", "example.ORG", "443")) == "granted");
  CHECK(outcome(g.connect("x", "10.0.0.1", "29500")) == "granted");
  CHECK(outcome(g.connect("x", "::1", "80")) == "granted");
  CHECK(outcome(g.connect("x", "::2", "80")) == "granted");
  for (auto [host, port] : {std::pair{"example.org.evil", "443"}, std::pair{"sub.example.org", "443"},
                            std::pair{"10.0.0.1", "22"}, std::pair{"10.0.0.1", ""}, std::pair{"::1", "81"}})
    CHECK(outcome(g.connect("x", host, port)).starts_with("denied"));
  CHECK(outcome(g.connect_to_url("x", "https://example.org/a")) == "granted");
  CHECK(outcome(g.connect_to_url("x", "http://10.0.0.1:29500/a")) == "granted");
  CHECK(outcome(g.connect_to_url("x", "http://[::1]/a")) == "granted");
  CHECK(outcome(g.connect_to_url("x", "http://[::2]:81/a")) == "granted");
  for (const char* url : {"https://example.org@evil.org/", "http://10.0.0.1/", "http://evil.org/example.org"})
    CHECK(outcome(g.connect_to_url("x", url)).starts_with("denied"));
  CHECK(outcome(g.connect_to_url("x", "ftp://example.org/")).find("is not an http(s) URL") != std::string::npos);
}

TEST_CASE("a search without a provider is among those that are granted") {
  const Grants g = grants(R"({"providers":["aws","local"]})");
  Value query{Value::Object{}};
  CHECK(outcome(g.choose_providers("rille.offers", query, false)) == "granted");
  CHECK(query.to_json() == R"({"providers":["aws","local"]})");
  query = Value(Value::Object{});
  CHECK(outcome(g.choose_providers("rille.rent", query, true)) == "granted");
  CHECK(query.to_json() == R"({"providers":["aws"]})");  // this machine needs `process`, too
  query = Value().set("provider", "gcp");
  CHECK(outcome(g.choose_providers("rille.rent", query, true)) ==
        R"(denied: rille.rent from gcp needs the grant providers = "gcp")");
  query = Value().set("providers", Value::Array{"aws", "gcp"});
  CHECK(outcome(g.choose_providers("rille.rent", query, true)).starts_with("denied"));
  query = Value().set("provider", "local");
  CHECK(outcome(g.choose_providers("rille.rent", query, true)).find("process = true") != std::string::npos);
  CHECK(outcome(g.choose_providers("rille.offers", query, false)) == "granted");
  query = Value(Value::Object{});
  CHECK(outcome(grants(R"({"providers":true})").choose_providers("rille.rent", query, true)).find("process = true") !=
        std::string::npos);
  CHECK(outcome(Grants().choose_providers("rille.rent", query, true)).starts_with("denied"));
}

TEST_CASE("open rules give io, os and native libraries only as far as granted") {
  rille::test::Script script;
  script.options.rules = Rules::open;
  auto run = [&](const std::string& source) {
    Result<Value> r = script(source);
    return r ? r->to_json() : r.error().summary();
  };
  script.options.grants = Grants();
  CHECK(run("return io.open('/etc/passwd')").find("denied: reading /etc/passwd needs the grant read") == 0);
  CHECK(run("return os.getenv('HOME')").find("denied: ") == 0);
  CHECK(run("return os.execute('true')").find("denied: ") == 0);
  // a buffer's pointer reads all of the process's memory, as ffi does
  for (const char* name : {"ffi", "jit", "string.buffer"})
    CHECK(run("return require '" + std::string(name) + "'").find("needs the grant kernels = true") !=
          std::string::npos);
  CHECK(run("return type(os.time())") == "\"number\"");
  CHECK(run("return io.type(1) == nil") == "true");
  CHECK(run("return pcall(io.open)").find("denied") == std::string::npos);
  script.options.grants = grants(R"({"kernels":true})");
  CHECK(run("return type(require 'ffi')") == "\"table\"");
  script.options.grants = Grants::everything();
  CHECK(run("return io.open('/etc/passwd') ~= nil") == "true");
}
