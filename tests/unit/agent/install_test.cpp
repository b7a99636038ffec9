// On a host that other users share: no program that they could have put there is executed. tests/unit/agent/
// signed_bundle_test.cpp has what is unpacked there.
#include "runtime/workflow/agent/install.hpp"

#include <sys/stat.h>

#include "tests/unit/agent/fixture.hpp"
#include "tests/unit/agent/test_bundle.hpp"

using namespace rille;
using namespace rille::agent;
namespace fs = std::filesystem;

namespace {

struct SharedHost : AgentFixture {
  std::string folder = temp.file("shared"), program = folder + "/rille", mark = temp.file("executed");
  std::string home = temp.file("home");
  std::string first;  // what the host's shell does before each command

  SharedHost() {
    fs::create_directories(folder);
    fs::create_directories(home);
    write(program, "#!/bin/sh\n: >" + mark + "\necho build-1\n");
    mode(program, 0755);
  }
  static void mode(const std::string& path, mode_t bits) { REQUIRE(::chmod(path.c_str(), bits) == 0); }

  Result<std::vector<std::string>> try_install(const std::string& archive = "") {
    fs::remove(mark);
    InstallOptions options;
    options.self_exe = program;
    options.identity = "build-1";
    options.archive = archive;
    std::vector<std::string> host{"env", "-u", "XDG_CACHE_HOME", "HOME=" + home};
    if (!first.empty()) host.insert(host.end(), {"sh", "-c", first + "; exec \"$@\"", "sh"});
    const ChannelSpec channel{host, directory};
    return wait(install(*loop, channel, std::move(options)));
  }
};

}  // namespace

TEST_CASE_METHOD(SharedHost, "a program that only its user can change is asked for its build") {
  const auto words = try_install();
  REQUIRE(words.ok());
  CHECK(words->front() == program);
  CHECK(fs::exists(mark));
}

TEST_CASE_METHOD(SharedHost, "a program that another user could change is not executed") {
  SECTION("its file is writable for all") { mode(program, 0777); }
  SECTION("its file is writable for a group of others") {
    mode(program, 0775);
    if (::geteuid() != 0 || ::chown(program.c_str(), 0, 12345) != 0) return;
  }
  SECTION("its folder is writable for all") { mode(folder, 0777); }
  SECTION("its file belongs to another user") {
    if (::geteuid() != 0 || ::chown(program.c_str(), 12345, 12345) != 0) return;
  }
  SECTION("it is a link to such a file") {
    fs::rename(program, folder + "/real");
    mode(folder + "/real", 0777);
    fs::create_symlink(folder + "/real", program);
  }
  const auto words = try_install();
  REQUIRE_FALSE(words.ok());
  CHECK(words.error().kind == ErrorKind::config);
  CHECK_FALSE(fs::exists(mark));
}

TEST_CASE_METHOD(SharedHost, "a program that is not the runner's own, byte for byte, is not executed") {
  write(temp.file("foreign"), read(program) + "\n");
  SECTION("the host has another one in its place") { first = "cat " + temp.file("foreign") + " >" + program; }
  SECTION("the host has no sha256sum") {
    write(temp.file("sha256sum"), "#!/bin/sh\nexit 127\n");
    mode(temp.file("sha256sum"), 0755);
    first = "PATH=" + temp.path.string() + ":$PATH";
  }
  const auto words = try_install();
  REQUIRE_FALSE(words.ok());
  CHECK(words.error().kind == ErrorKind::config);
  CHECK_FALSE(fs::exists(mark));
}

TEST_CASE_METHOD(SharedHost, "a sticky folder like /tmp protects a program of this user") {
  mode(folder, 01777);
  CHECK(try_install().ok());
}

TEST_CASE_METHOD(SharedHost, "nothing is unpacked where another user could change it") {
  fs::remove(program);
  mode(home, 0777);
  TestBundle bundle(temp.file("bundle"), "build-1", mark);
  const auto words = try_install(bundle.pack());
  REQUIRE_FALSE(words.ok());
  CHECK(words.error().kind == ErrorKind::config);
  CHECK(words.error().message.find("other users can change") != std::string::npos);
  CHECK_FALSE(fs::exists(mark));
}
