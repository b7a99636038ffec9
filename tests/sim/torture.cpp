// sim_torture: runs scripts in seeded worlds and checks what must hold in each of them. docs/testing.md has the words.
//   sim_torture --seeds 10000 [--first 1]     many worlds, on one core
//   sim_torture --seed 4711                   one, with its events; the same each time, bit for bit
#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "tests/sim/cpp_script.hpp"

using namespace rille;
using namespace rille::torture;

namespace {

struct Wanted {
  std::uint64_t first = 1, seeds = 10'000;
  bool one = false;
};

std::optional<Wanted> read(int argc, char** argv) {
  Wanted w;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::uint64_t n = std::strtoull(argv[i + 1], nullptr, 10);
    if (!std::strcmp(argv[i], "--seeds")) w.seeds = n;
    else if (!std::strcmp(argv[i], "--first")) w.first = n;
    else if (!std::strcmp(argv[i], "--seed")) w.first = n, w.seeds = 1, w.one = true;
    else return {};
  }
  return argc % 2 ? std::optional(w) : std::nullopt;
}

constexpr int deaths_max = 12;

// Deaths, and the events while no process runs, drawn from the seed.
std::unique_ptr<World> seeded(std::uint64_t seed, bool trace) {
  Dice dice = Dice(seed).of("torture");
  constexpr double rates[] = {0, 1.0 / 12, 1.0 / 40, 1.0 / 120};
  const double rate = rates[dice.bits("death rate") % 4];
  auto deaths = std::make_shared<int>(0);
  Conditions c;
  c.cloud = provider::sim::Options::hostile(seed);
  c.trace = trace;
  c.home = scratch_path(fmt::format("torture-{}", seed));
  c.dies = [=](const Place& place) {
    if (*deaths >= deaths_max || !dice.chance(rate, "die", static_cast<std::uint64_t>(place.total))) return false;
    ++*deaths;
    return true;
  };
  auto number = std::make_shared<std::uint64_t>(0);
  c.meanwhile = [=](World& w, int) {
    constexpr std::int64_t downtimes_ms[] = {0, 1'000, 90'000, 3'600'000};
    const std::uint64_t n = (*number)++;
    w.time.pass(downtimes_ms[dice.bits("down", n) % 4]);
    if (dice.chance(0.1, "clock", n)) w.time.set_wall_back(dice.between(1, 5'000, "clock back", n));
    if (dice.chance(0.2, "gc", n)) (void)w.reap(dice.chance(0.5, "background", n));
  };
  return std::make_unique<World>(std::move(c));
}

const char* const must_have_happened[] = {"died before a transaction",
                                          "died after a transaction",
                                          "died before a provider call",
                                          "died after a provider call",
                                          "died before a request to an agent",
                                          "died after a request to an agent",
                                          "resumed",
                                          "step tried again",
                                          "step answered by the record",
                                          "second generation",
                                          "call lost its machine",
                                          "failed over",
                                          "event replace",
                                          "event call_moved",
                                          "event set_up_again",
                                          "event replace_waits",
                                          "a moved call found its machine set up",
                                          "event preempting",
                                          "event call_left",
                                          "a notice brought a checkpoint of its own",
                                          "moved before the machine was lost",
                                          "a call was done between the notice and the end",
                                          "event checkpoint_restored",
                                          "race won by 1",
                                          "race won by 2",
                                          "inner scope failed and was caught",
                                          "stopped by the budget",
                                          "a child was cancelled at work",
                                          "rent failed: capacity",
                                          "rent failed: network",
                                          "release failed",
                                          "scope could not release",
                                          "reaped a lease",
                                          "reaper met a machine that should be gone",
                                          "token found its machine",
                                          "preempted",
                                          "landed late",
                                          "reply lost",
                                          "throttled",
                                          "server error",
                                          "refused",
                                          "stillborn",
                                          "terminate lied",
                                          "terminate was slow",
                                          "terminate of what did not show yet",
                                          "stale view",
                                          "the ledger was the bill",
                                          "so was the estimate",
                                          "a machine came and went unseen"};

void count_cloud(World& w) {
  const provider::sim::Counts& c = w.sim->cloud.counts;
  const std::pair<const char*, int> counted[] = {{"token found its machine", c.token_hits},
                                                 {"preempted", w.sim->cloud.preempted()},
                                                 {"landed late", c.late},
                                                 {"reply lost", c.lost_replies},
                                                 {"throttled", c.throttled},
                                                 {"server error", c.errors},
                                                 {"refused", c.refused},
                                                 {"stillborn", c.stillborn},
                                                 {"terminate lied", c.lies},
                                                 {"terminate was slow", c.slow},
                                                 {"terminate of what did not show yet", c.unseen_terminates},
                                                 {"stale view", c.stale_views}};
  for (const auto& [what, n] : counted) w.seen[what] += n;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<Wanted> wanted = read(argc, argv);
  if (!wanted) {
    fmt::print(stderr, "usage: sim_torture [--seeds N] [--first N] | --seed N\n");
    return 2;
  }
  Sometimes seen;
  int failed = 0;
  double virtual_days = 0;
  auto began = std::chrono::steady_clock::now();
  for (std::uint64_t seed = wanted->first; seed < wanted->first + wanted->seeds && failed < 20; ++seed) {
    const Script& script = scripts()[seed % scripts().size()];
    std::unique_ptr<World> made = seeded(seed, wanted->one);
    World& world = *made;
    std::string wrong = world.live(script);
    count_cloud(world);
    if (wrong.empty() && seed % 97 == 0) {
      std::unique_ptr<World> again = seeded(seed, false);
      (void)again->live(script);
      if (again->digest() != world.digest()) wrong = "not the same the second time";
    }
    for (const auto& [what, n] : world.seen) seen[what] += n;
    virtual_days += static_cast<double>(world.time.monotonic_ns()) / 86'400e9;
    if (wanted->one) fmt::print("digest {}\n", world.digest());
    if (wrong.empty()) continue;
    ++failed;
    fmt::print("seed {} ({}): {}\n  replay it: {} --seed {}\n", seed, script.name, wrong, argv[0], seed);
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  for (const auto& [what, n] : seen) fmt::print("{:>10}  {}\n", n, what);
  if (!wanted->one && wanted->seeds >= 5'000)
    for (const char* what : must_have_happened)
      if (!seen[what]) ++failed, fmt::print("never happened: {}\n", what);
  fmt::print("{} seeds, {} wrong, {:.0f} virtual days in {:.1f} s\n", wanted->seeds, failed, virtual_days, seconds);
  return failed ? 1 : 0;
}
