#include <catch2/catch.hpp>

#include "runtime/workflow/provider/ssh/answers.hpp"

using namespace rille;
using namespace rille::provider;

TEST_CASE("ssh: what a host says of itself") {
  const SshProbe probe =
      read_ssh_probe("cpus 64\nmemory 1024\nlive 1\ngpu 81920, NVIDIA A100-SXM4-80GB\ngpu 81920, B\n");
  CHECK(probe.cpus == 64);
  CHECK(probe.memory_bytes == 1 << 20);
  CHECK(probe.live == 1);
  CHECK(probe.gpu_count == 2);
  CHECK(probe.gpu_memory_bytes == 80LL << 30);
}

TEST_CASE("ssh: numbers that no host has") {
  const SshProbe probe = read_ssh_probe("cpus 9223372036854775807\nmemory 9223372036854775807\nlive -1\ngpu -5, x\n");
  CHECK(probe.cpus > 0);
  CHECK(probe.memory_bytes > 0);
  CHECK(probe.live == 0);
  CHECK(probe.gpu_memory_bytes == 0);
  CHECK(read_ssh_probe("motd: welcome\n\ncpus\ngpu\n").gpu_count == 1);
}

TEST_CASE("ssh: machines and their notices; damage is refused") {
  SshHost host;
  host.name = host.address = "gpu1";
  const auto all =
      read_ssh_machines(host,
                        "/d/i-1\n{\"id\":\"gpu1/i-1\",\"expires_wall_us\":-1}\n\n{\"deadline_wall_us\":5}\n/d/"
                        "i-2\n{\"id\":\"gpu1/i-2\"}\n");
  REQUIRE(all.ok());
  REQUIRE(all->size() == 2);
  CHECK((*all)[0].notice_wall_us == 5);
  CHECK((*all)[0].expires_wall_us == 0);
  CHECK((*all)[1].channel.directory == "/d/i-2");
  CHECK_FALSE(read_ssh_machines(host, "bash: warning: no locale\n").ok());
}

TEST_CASE("ssh: a machine that says it is another one is left out, since that one would be ended for it") {
  SshHost host;
  host.name = "gpu1";
  for (const char* id : {"gpu2/i-1", "gpu1/i-2", "i-1", ""}) {
    const std::string other = std::string("/d/i-1\n{\"id\":\"") + id + "\"}\n\n{\"deadline_wall_us\":5}\n";
    const auto all = read_ssh_machines(host, other + "/d/i-3\n{\"id\":\"gpu1/i-3\"}\n");
    REQUIRE(all.ok());
    REQUIRE(all->size() == 1);
    CHECK((*all)[0].id == "gpu1/i-3");
    CHECK((*all)[0].notice_wall_us == 0);
  }
  CHECK(read_ssh_machines(host, "{\"id\":\"gpu1/i-1\"}\n").value().empty());
}
