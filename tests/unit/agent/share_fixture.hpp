// Several machines of a run on the loopback, each with a folder and a cache of its own, that pull one object; and a
// runner that tells all of them the digests that the first one to know tells.
#pragma once

#include "runtime/workflow/agent/peers.hpp"
#include "tests/unit/agent/pull_fixture.hpp"

struct ShareFixture : PullFixture {
  struct Machine {
    std::string directory;
    std::shared_ptr<rille::agent::Puller> puller;
    std::shared_ptr<rille::agent::Peers> peers;
    std::shared_ptr<rille::agent::Share> share;
    std::vector<std::string> addresses;
    std::vector<rille::Value> told;  // to the runner
    rille::CancelSource stop;
    std::optional<rille::Result<rille::agent::Pulled>> pulled;
  };
  std::vector<std::unique_ptr<Machine>> machines;
  rille::agent::PartDigests digests;
  rille::agent::PeerLimits limits;
  std::string id = std::string(32, 'a'), key = std::string(64, 'b');

  Machine& machine() {
    auto made = std::make_unique<Machine>();
    made->directory = temp.file("m" + std::to_string(machines.size()) + "/instance");
    std::filesystem::create_directories(made->directory + "/work");
    rille::net::Retry once;
    once.attempts = 1, once.base_ms = 1;
    made->puller = std::make_shared<rille::agent::Puller>(*loop, made->directory, once, limits);
    made->peers = std::make_shared<rille::agent::Peers>(*loop, std::vector<std::string>{"127.0.0.1"});
    made->addresses = rille::agent::Peers::open(made->peers);
    made->share = std::make_shared<rille::agent::Share>(*loop, id, key, part_bytes);
    made->share->to_runner = [this, at = made.get()](rille::Value value) { hear(*at, std::move(value)); };
    made->share->tell(digests);  // what the runner knows already
    made->peers->add(made->share);
    machines.push_back(std::move(made));
    return *machines.back();
  }
  void hear(Machine& from, rille::Value value) {
    from.told.push_back(value);
    const std::string hex = value.text("sha256");
    if (hex.empty()) return;
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    const auto [known, is_new] = digests.emplace(static_cast<std::size_t>(value.integer("part")), bytes);
    for (const auto& m : machines) {
      if (is_new) m->share->tell({*known});
      else if (known->second != bytes) m->share->dispute();
    }
  }
  // Begins a pull on `m` that asks the machines with these addresses first.
  void begin(Machine& m, const std::string& url, std::vector<std::vector<std::string>> ask) {
    rille::agent::PullOrder wanted = order(url);
    wanted.share = m.share, wanted.machines = std::move(ask);
    auto run = [](Machine& at, rille::agent::PullOrder o) -> rille::Task<void> {
      at.pulled.emplace(co_await rille::agent::Puller::pull(at.puller, std::move(o), {}, at.stop.token()));
    };
    loop->spawn(run(m, std::move(wanted)));
  }
  void pull_on(Machine& m, const std::string& url, std::vector<std::vector<std::string>> ask) {
    m.pulled.reset();
    begin(m, url, std::move(ask));
    finish(m);
  }
  void finish(Machine& m) {
    REQUIRE(eventually([&] { return m.pulled.has_value(); }));
    if (!*m.pulled) FAIL(m.pulled->error().summary());
  }
  static std::string file_of(const Machine& m) { return m.directory + "/work/data/file"; }
};
