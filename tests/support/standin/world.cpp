#include "world.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace rille::test::standin {

namespace {
constexpr int fresh_byte = 0xff, freed_byte = 0xfb;  // as f32: NaN, and -2.6e36
}

World& world() {
  static auto* const w = [] {  // outlives the plug-in's static objects
    auto* const made = new World;
    Options& o = made->options;
    if (const char* cards = std::getenv("RILLE_STANDIN_CARDS")) o.cards = std::atoi(cards);
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {  // as many GPUs as it names, whichever they are
      const std::string words = visible;
      o.cards = words.empty() ? 0 : std::min(o.cards, 1 + int(std::count(words.begin(), words.end(), ',')));
    }
    if (const char* version = std::getenv("RILLE_STANDIN_VERSION")) o.version = std::atoi(version);
    static char function[64] = {};
    const char* fail = std::getenv("RILLE_STANDIN_FAIL");
    if (fail && std::sscanf(fail, "%63[^:]:%d:%d", function, &o.fail_at, &o.fail_code) == 3) o.fail_function = function;
    return made;
  }();
  return *w;
}

void World::reset(const Options& o) {
  const std::lock_guard lock(mutex);
  options = o;
  report = {};
  losses.clear();
  random.seed(o.seed);
  for (auto* s : streams) delete s;
  for (auto* e : events) delete e;
  streams.clear();
  events.clear();
  memory.clear();
  freed.clear();
  pinned.clear();
  calls.clear();
  streams_made = 0;
  ran = 0;
}

void World::wrong(const std::string& what) {
  if (!report.wrong[0]) std::snprintf(report.wrong, sizeof report.wrong, "%s", what.c_str());
}

char* World::allocate(std::size_t bytes, int card) {
  if (report.live_bytes + std::int64_t(bytes) > std::int64_t(options.memory_bytes)) return nullptr;
  Range range{std::make_unique<char[]>(bytes + 256), bytes, false, card};
  std::memset(range.bytes.get(), fresh_byte, bytes + 256);
  char* const at = range.bytes.get() + (256 - reinterpret_cast<std::uintptr_t>(range.bytes.get()) % 256);
  memory[reinterpret_cast<std::uintptr_t>(at)] = std::move(range);
  report.live_bytes += std::int64_t(bytes);
  return at;
}

bool World::free(std::uintptr_t at) {
  const auto found = memory.find(at);
  if (found == memory.end() || found->second.freed) return false;
  found->second.freed = true;
  std::memset(reinterpret_cast<void*>(at), freed_byte, found->second.size);
  freed.emplace_back(at, found->second.size);
  report.live_bytes -= std::int64_t(found->second.size);
  return true;
}

void World::spoil_freed() {
  for (const auto& [at, bytes] : freed) std::memset(reinterpret_cast<void*>(at), freed_byte, bytes);
}

bool World::inside(std::uintptr_t at, std::size_t bytes) const {
  auto found = memory.upper_bound(at);
  if (found == memory.begin()) return false;
  --found;
  return !found->second.freed && at + bytes <= found->first + found->second.size;
}

int World::card_of(std::uintptr_t at) const {
  auto found = memory.upper_bound(at);
  if (found == memory.begin()) return -1;
  --found;
  return at < found->first + found->second.size ? found->second.card : -1;
}

bool World::is_pinned(const void* p, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  auto found = pinned.upper_bound(at);
  if (found == pinned.begin()) return false;
  --found;
  return at + bytes <= found->first + found->second.size;
}

CUresult World::add(Stream& stream, std::function<void()> run, bool always) {
  if (stream.capturing) stream.captured.push_back(std::move(run));
  else stream.tasks.push_back({std::move(run), nullptr, always, {}});
  return cu::success;
}

CUresult World::lost(int card) const {
  const auto found = losses.find(card);
  return found == losses.end() ? cu::success : found->second;
}

bool World::step(bool* gated) {
  std::vector<Stream*> ready;
  bool held = false;
  for (auto* s : streams) {
    if (s->tasks.empty()) continue;
    const Task& next = s->tasks.front();
    const bool free = !next.holds || next.holds();
    held = held || !free;
    if (free && (!next.waits_for || next.waits_for->done)) ready.push_back(s);
  }
  if (gated) *gated = held;
  if (ready.empty()) return false;
  unsigned sum = 0, drawn = 0;
  for (const auto* s : ready) sum += s->weight;
  std::size_t which = 0;
  for (drawn = unsigned(random() % sum); drawn >= ready[which]->weight; ++which) drawn -= ready[which]->weight;
  auto& tasks = ready[which]->tasks;
  const Task task = std::move(tasks.front());
  tasks.pop_front();
  ++ran;
  running = ready[which]->card;
  if (task.run && (task.always || lost(running) == cu::success)) task.run();
  return true;
}

bool World::run_until(const std::function<bool()>& done) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done()) {
    bool gated = false;
    if (step(&gated)) continue;
    // Another thread has yet to submit the other ranks' work.
    if (gated && std::chrono::steady_clock::now() < patience) {
      mutex.unlock();
      std::this_thread::yield();
      mutex.lock();
      continue;
    }
    wrong("everybody waits, and nobody can go on");
    return false;
  }
  return true;
}

}  // namespace rille::test::standin
