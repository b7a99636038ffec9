#include "runtime/workflow/provider/cloud/first_boot.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/core/loop/subprocess.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

struct Folder {
  std::string path = std::filesystem::temp_directory_path() / ("rille-boot-" + random_hex(4));
  ~Folder() { std::filesystem::remove_all(path); }
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Whether a shell understands it, without running it.
bool parses(const std::string& script) {
  const auto loop = Loop::create().value();
  SubprocessOptions options;
  options.argv = {"sh", "-n", "-c", script};
  const auto shell = Subprocess::start(*loop, options);
  if (!shell) FAIL("no shell: " << shell.error().summary());
  const auto ended = run_blocking(*loop, (*shell)->wait());
  if (!ended) FAIL("the shell did not end: " << ended.error().summary());
  return ended->code == 0;
}

}  // namespace

TEST_CASE("first boot: what no shell understands is seen") { CHECK_FALSE(parses("if then")); }

TEST_CASE("first boot: the same request gives the same bytes; a container starts its own sshd") {
  const Folder folder;
  const cloud::Access access(cloud::SshKeys::open(folder.path).value());
  CreateRequest request;
  request.tag = "rille-0123456789ab-it's-g1";
  request.expires_wall_us = 1'900'000'000'000'000;
  const std::string machine = access.script(request, false, 1 << 14).value();
  const std::string container = access.script(request, true, 1 << 14).value();
  CHECK(access.script(request, true, 1 << 14).value() == container);
  CHECK(to_base64(machine) == access.user_data(request, false, 1 << 14).value());
  const std::string timed = from_base64(access.user_data(request, true, 1 << 14).value()).value();
  for (const std::string& script : {machine, container, timed}) {
    CHECK(parses(script));
    CHECK(contains(script, "OPENSSH PRIVATE KEY"));
    CHECK(contains(script, "authorized_keys"));
    CHECK(contains(script, "1900000000000000"));
  }
  CHECK(contains(machine, "systemctl restart ssh"));
  CHECK(contains(timed, "rille-end.service\"]"));  // the agent may end the machine, too
  CHECK_FALSE(contains(timed, "keeps_files"));
  CHECK(contains(timed, "[ \"$(date +%s)\" -lt 1900000000 ] || echo OnActiveSec=60"));
  CHECK(contains(timed, "-lt 1800 ] || exec systemctl --no-block start rille-end.service"));  // orphan_after
  CHECK(contains(timed, "rille-look.timer"));
  CHECK_FALSE(contains(machine, "rille-end"));
  CHECK_FALSE(contains(machine, "rille-look"));
  CHECK(contains(machine, R"("keeps_files":true)"));  // the bill goes on: so do the files
  CHECK(contains(machine, "PermitRootLogin prohibit-password"));
  CHECK_FALSE(contains(machine, "apt-get"));
  CHECK(contains(container, "openssh-server"));
  CHECK_FALSE(contains(container, "systemctl"));
  CHECK_FALSE(access.script(request, true, 100));
}

TEST_CASE("first boot: our key waits for the disks, however late they come") {
  cloud::FirstBoot boot;
  boot.tag = "t";
  boot.authorized_key = "ssh-ed25519 AAAA rille";
  boot.disks = {{"data", "/dev/disk/by-id/one"}};
  const std::string script = cloud::first_boot_script(boot);
  CHECK(parses(script));
  const std::size_t waits = script.find("while set -- /dev/disk/by-id/one\n");
  REQUIRE(waits != std::string::npos);
  CHECK(waits < script.find("mount \"$1\" /mnt/rille/data"));
  CHECK(script.find("mount \"$1\" /mnt/rille/data") < script.find(boot.authorized_key));
  CHECK(script.find("ln -sfn /mnt/rille/data") < script.find(boot.authorized_key));
}

TEST_CASE("first boot: a volume that the provider mounts is linked only") {
  cloud::FirstBoot boot;
  boot.tag = "t";
  boot.authorized_key = "ssh-ed25519 AAAA rille";
  boot.container = true;
  boot.disks = {{"data", ""}};
  const std::string script = cloud::first_boot_script(boot);
  CHECK(parses(script));
  CHECK(contains(script, "ln -sfn /mnt/rille/data /var/lib/rille/instance/work/data\n"));
  CHECK_FALSE(contains(script, "mkfs"));
  CHECK_FALSE(contains(script, "sleep 1"));
}

TEST_CASE("first boot: a spot machine gets the address of its cloud's interruption notice; other machines get none") {
  const Folder folder;
  const cloud::Access access(cloud::SshKeys::open(folder.path).value(), "aws", "http://169.254.169.254");
  CreateRequest request;
  request.tag = "rille-0123456789ab-a-g1";
  CHECK_FALSE(contains(access.script(request, false, 1 << 14).value(), "notice"));
  request.offer.spot = true;
  const std::string script = access.script(request, false, 1 << 14).value();
  CHECK(parses(script));
  CHECK(contains(script, R"("url":"http://169.254.169.254/latest/meta-data/spot/instance-action")"));
  CHECK(contains(script, R"("token_url":"http://169.254.169.254/latest/api/token")"));
  const cloud::Access silent(cloud::SshKeys::open(folder.path).value(), "aws", "");
  CHECK_FALSE(contains(silent.script(request, false, 1 << 14).value(), "notice"));
  const cloud::Access other(cloud::SshKeys::open(folder.path).value(), "runpod", "http://169.254.169.254");
  CHECK_FALSE(contains(other.script(request, false, 1 << 14).value(), "notice"));
}
