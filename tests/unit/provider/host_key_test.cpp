// The replacement of a machine's host key, on a stand-in for ssh: it accepts a connection only if the file of known
// hosts has the key that its sshd uses, and runs the command with /etc/ssh in a temporary folder and without its
// SIGHUP.
#include "runtime/workflow/provider/cloud/host_key.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "runtime/workflow/provider/cloud/ssh_keys.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::provider;
namespace fs = std::filesystem;

namespace {

// $HOST/in-use: what sshd uses. HOST/deaf: it does not read its keys again. HOST/calls counts; the connection with the
// number in HOST/lost ends before its command, the one in HOST/cut after it.
constexpr const char* fake_ssh = R"sh(#!/bin/sh
host=$1; shift
for word in "$@"; do
  case $word in UserKnownHostsFile=*) known=${word#*=} ;; esac
  command=$word
done
echo >>$host/calls
call=$(wc -l <$host/calls)
[ "$call" != "$(cat $host/lost 2>/dev/null)" ] || exit 255
grep -qF "rille-i $(cat $host/in-use)" $known || { echo 'Host key verification failed.' >&2; exit 255; }
sh -c "$(printf %s "$command" | sed "s,/etc/ssh/,$host/ssh/,g; s/kill -HUP/true/")"
code=$?
[ -e $host/deaf ] || cut -d ' ' -f 1,2 $host/ssh/ssh_host_ed25519_key.pub >$host/in-use
[ "$call" != "$(cat $host/cut 2>/dev/null)" ] || exit 255
exit $code
)sh";

struct HostKeyFixture {
  TempDir temp;
  std::unique_ptr<Loop> loop = Loop::create().value();
  std::string host = temp.file("host"), folder = temp.file("keys"), known, given;
  ChannelSpec channel;

  HostKeyFixture() {
    const cloud::SshKeys keys = cloud::SshKeys::open(folder).value();
    const std::string line = keys.host_key("tag").public_line;
    given = line.substr(0, line.rfind(' '));
    known = keys.known_hosts("tag", "rille-i").value();
    fs::create_directories(host + "/ssh");
    write(host + "/ssh/ssh_host_ed25519_key", keys.host_key("tag").private_text);
    write(host + "/ssh/ssh_host_ed25519_key.pub", line + "\n");
    write(host + "/in-use", given + "\n");
    write(temp.file("ssh"), fake_ssh);
    fs::permissions(temp.file("ssh"), fs::perms::owner_all);
    channel.argv_prefix = {temp.file("ssh"), host, "-o", "UserKnownHostsFile=" + known, "-o", "HostKeyAlias=rille-i"};
    channel.quoted = true;
  }
  static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Result<> renew() { return run_blocking(*loop, cloud::renew_host_key(*loop, channel, folder, {})); }
  std::string in_use() const { return read(host + "/in-use"); }
  std::size_t calls() const { return read(host + "/calls").size(); }
  bool reachable() const { return read(known).find("rille-i " + in_use()) != std::string::npos; }
  void is_renewed() const {
    CHECK(in_use() != given + "\n");
    CHECK(read(known) == "# rotated\nrille-i " + in_use());
    CHECK_FALSE(fs::exists(known + ".new"));
    CHECK_FALSE(fs::exists(host + "/ssh/ssh_host_ed25519_key.rille"));
  }
};

}  // namespace

TEST_CASE_METHOD(HostKeyFixture, "a host key from user data is replaced once, and only the new one is accepted") {
  REQUIRE(renew().ok());
  is_renewed();
  const std::size_t before = calls();
  REQUIRE(renew().ok());
  CHECK(calls() == before);
}

TEST_CASE_METHOD(HostKeyFixture, "wherever the replacement is cut off, the machine stays reachable, and it goes on") {
  const std::string call = GENERATE("1", "2", "3");
  const std::string how = GENERATE("/lost", "/cut");
  INFO(how << " " << call);
  write(host + how, call);
  (void)renew();
  CHECK(reachable());
  REQUIRE(renew().ok());
  is_renewed();
}

TEST_CASE_METHOD(HostKeyFixture, "a machine that is not to replace its key, or cannot, keeps it") {
  write(host + "/ssh/rille_keeps_host_key", "");
  REQUIRE(renew().ok());
  CHECK(in_use() == given + "\n");
  CHECK(read(known) == "# not rotated\nrille-i " + given + "\n");
  const std::size_t before = calls();
  REQUIRE(renew().ok());
  CHECK(calls() == before);
}

TEST_CASE_METHOD(HostKeyFixture, "a sshd that does not read its keys again stays reachable, also when it has") {
  write(host + "/deaf", "");
  REQUIRE(renew().ok());
  CHECK(in_use() == given + "\n");
  CHECK(reachable());
  write(host + "/in-use", read(host + "/ssh/ssh_host_ed25519_key.pub").substr(0, given.size()) + "\n");
  CHECK(in_use() != given + "\n");
  CHECK(reachable());
}

TEST_CASE_METHOD(HostKeyFixture, "what a machine prints instead of a key is not pinned") {
  const std::string before = read(known);
  for (const char* lie : {"", "ssh-ed25519 x", "ssh-rsa AAAA", "ssh-ed25519 AAAA\\n* ssh-ed25519 AAAA"}) {
    write(temp.file("ssh"), std::string("#!/bin/sh\nprintf '") + lie + "'\n");
    CHECK_FALSE(renew().ok());
    CHECK(read(known) == before);
  }
}

TEST_CASE_METHOD(HostKeyFixture, "a channel to a host of the user's own is left alone") {
  channel.argv_prefix[3] = "UserKnownHostsFile=" + temp.file("mine");
  REQUIRE(renew().ok());
  CHECK_FALSE(fs::exists(host + "/calls"));
}
