#include "runtime/workflow/provider/local/local.hpp"

#include "runtime/core/store/instance_dir.hpp"
#include "tests/unit/agent/fixture.hpp"

using namespace rille;
using namespace rille::provider;
namespace fs = std::filesystem;

namespace {
struct LocalFixture : AgentFixture {
  std::unique_ptr<Provider> provider = make_local_provider(*loop, {temp.path, 250'000, 1000});

  CreateRequest order(const std::string& key, const std::string& tag = "rille-test-1") {
    CreateRequest request;
    request.offer.provider = "local";
    request.offer.id = "cpu";
    request.tag = tag;
    request.token = key;
    request.expires_wall_us = 1'900'000'000'000'000;
    return request;
  }
  Machine create(const std::string& key) { return wait(provider->create(order(key), {})).value(); }
  std::size_t listed(const std::string& tags = "rille-") { return wait(provider->list(tags, {})).value().size(); }
};
}  // namespace

TEST_CASE_METHOD(LocalFixture, "the offer is this machine") {
  auto offers = wait(provider->offers({}, {})).value();
  REQUIRE(offers.size() == 1);
  CHECK(offers[0].price_micros_per_hour == 250'000);
  CHECK(offers[0].view().number("price_per_hour") == 0.25);
  CHECK(offers[0].vcpus >= 1);
  OfferQuery a100;
  a100.gpu = "A100";
  CHECK(wait(provider->offers(a100, {})).value().empty());
}

TEST_CASE_METHOD(LocalFixture, "one token makes one machine, whole and tagged") {
  Machine first = create("token"), again = create("token"), other = create("other");
  CHECK(first.id == again.id);
  CHECK(first.id != other.id);
  CHECK(first.state == MachineState::live);
  CHECK(first.tag == "rille-test-1");
  CHECK(first.expires_wall_us == 1'900'000'000'000'000);
  CHECK(fs::is_directory(first.channel.directory + "/work"));
  CHECK(listed() == 2);
  CHECK(listed("rille-other") == 0);
  CHECK(wait(provider->describe(first.id, {})).value().state == MachineState::live);
  CHECK(wait(provider->describe("i-0123", {})).value().state == MachineState::gone);
  CHECK(wait(provider->describe("../../etc", {})).value().state == MachineState::gone);
}

TEST_CASE_METHOD(LocalFixture, "terminate removes, may be repeated, and finishes an interrupted one") {
  Machine machine = create("token");
  // As a killed terminate leaves it: marked, half removed.
  REQUIRE(store::mark_terminating(machine.channel.directory).ok());
  fs::remove_all(machine.channel.directory + "/work");
  CHECK(wait(provider->describe(machine.id, {})).value().state == MachineState::terminating);
  CHECK(listed() == 1);
  CHECK(wait(provider->terminate(machine.id, {})).ok());
  CHECK(wait(provider->describe(machine.id, {})).value().state == MachineState::gone);
  CHECK_FALSE(fs::exists(machine.channel.directory));
  CHECK(wait(provider->terminate(machine.id, {})).ok());
  CHECK(wait(provider->terminate("i-0123", {})).ok());
  CHECK(wait(provider->terminate("../..", {})).ok());
  CHECK(listed() == 0);
  // As a terminate that was killed just before its last act: an empty directory is no machine, and no obstacle.
  fs::create_directories(machine.channel.directory);
  CHECK(listed() == 0);
  CHECK(create("token").state == MachineState::live);
}

TEST_CASE_METHOD(LocalFixture, "a machine that is a link, as a foreign home may have, removes nothing where it leads") {
  Machine machine = create("token");
  const std::string link = machine.channel.directory, elsewhere = temp.file("elsewhere");
  fs::rename(link, elsewhere);
  fs::create_directory_symlink(elsewhere, link);
  Result<> refused = wait(provider->terminate(machine.id, {}));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::integrity);
  CHECK(refused.error().message.find(link) != std::string::npos);
  CHECK(fs::is_directory(elsewhere + "/work"));
  CHECK(wait(provider->describe(machine.id, {})).value().state == MachineState::live);  // nor is it marked
}

TEST_CASE_METHOD(LocalFixture, "what a killed create left is no machine, and a later create is not disturbed") {
  fs::create_directories(temp.file("instances/.new-i-00ff-aaaa/work"));
  CHECK(listed() == 0);
  CHECK(create("token").state == MachineState::live);
}

TEST_CASE_METHOD(LocalFixture, "terminate leaves no process, wherever it hid") {
  Machine machine = create("token");
  directory = machine.channel.directory;
  auto client = connect();
  // A worker, a program with a child in a session of its own, and one that also forgets its environment.
  REQUIRE(wait(client->start(request("lua", hold()))).ok());
  REQUIRE(wait(client->start(request("exec", R"({"kind":"exec","argv":["sh","-c",)"
                                             R"("setsid sh -c 'echo $$ > orphan; exec sleep 1000' & )"
                                             R"(env -i setsid sh -c 'echo $$ > bare; exec sleep 1000' & )"
                                             R"(echo $$ > direct; exec sleep 1000"]})")))
              .ok());
  std::vector<std::int64_t> pids{client->info().pid};
  for (const char* name : {"orphan", "bare", "direct"}) {
    std::string path = directory + "/work/" + name;
    REQUIRE(eventually([&] { return read(path).find('\n') != std::string::npos; }));
    pids.push_back(std::stoll(read(path)));
  }
  for (std::int64_t pid : pids) CHECK(alive(pid));
  bool stopped = GENERATE(false, true);  // an agent that does not answer is ended all the same
  if (stopped) kill(static_cast<pid_t>(pids[0]), SIGSTOP);
  REQUIRE(wait(provider->terminate(machine.id, {})).ok());
  for (std::int64_t pid : pids) CHECK_FALSE(alive(pid));
  CHECK(processes().empty());
  CHECK_FALSE(fs::exists(directory));
  auto late = try_connect();
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().kind == ErrorKind::state);
}

TEST_CASE_METHOD(LocalFixture, "no agent starts on a machine that is terminating") {
  Machine machine = create("token");
  directory = machine.channel.directory;
  REQUIRE(store::mark_terminating(directory).ok());
  auto client = try_connect();
  REQUIRE_FALSE(client.ok());
  CHECK(client.error().kind == ErrorKind::state);
  CHECK(client.error().message.find("terminated") != std::string::npos);
}
