// What the lease layer adds to a provider: N rentals at once from a cloud in C++ each of whose calls takes 50 ms, then
// their releases. The floor is the calls of one after another, the fsync of each of its commits, and no work in
// between: offers, create and two commits; terminate, describe, list and two. The cloud makes its list of 20 offers
// once, so that its own work stays out of what is measured.
// usage: bench_rentals [N=1000] [FOLDER] [DOLLARS] [apart]; prints one line of JSON. The journal is written as ever
// (WAL, synchronous=FULL), in FOLDER. With DOLLARS above 0 the run has that budget, which each rent is held against.
// apart: each rent has a price cap of its own, so that each asks for offers; else those that ask the same ask once.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "runtime/core/base/id.hpp"
#include "runtime/core/store/sqlite_memory.hpp"
#include "runtime/workflow/lease/manager.hpp"

using namespace rille;

namespace {

constexpr std::int64_t latency_ms = 50;

class SlowCloud final : public provider::Provider {
 public:
  explicit SlowCloud(Loop& loop) : loop_(loop) {
    traits_.dead_man = provider::DeadMan::provider;
    for (int i = 0; i < 20; ++i) {
      provider::Offer o;
      o.provider = name_;
      o.id = "type-" + std::to_string(i);
      o.gpu = "A100 80GB";
      o.gpu_count = 1;
      o.price_micros_per_hour = 1'000'000 + i;
      offers_.push_back(std::move(o));
    }
  }
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return traits_; }

  Async<std::vector<provider::Offer>> offers(provider::OfferQuery, CancelToken token) override {
    RILLE_CO_CHECK(co_await sleep_for(loop_, latency_ms, token));
    ++asked_;
    co_return offers_;
  }
  Async<provider::Machine> create(provider::CreateRequest request, CancelToken token) override {
    RILLE_CO_CHECK(co_await sleep_for(loop_, latency_ms, token));
    provider::Machine m;
    m.id = "m-" + std::to_string(++made_);
    m.tag = request.tag;
    m.state = provider::MachineState::live;
    tags_[m.id] = request.tag;
    most_ = std::max(most_, tags_.size());
    co_return m;
  }
  Async<provider::Machine> describe(std::string id, CancelToken token) override {
    RILLE_CO_CHECK(co_await sleep_for(loop_, latency_ms, token));
    provider::Machine m;
    m.id = id;
    m.tag = ended_[id];
    if (tags_.contains(id)) m.tag = tags_[id], m.state = provider::MachineState::live;
    co_return m;
  }
  Async<std::vector<provider::Machine>> list(std::string tag, CancelToken token) override {
    RILLE_CO_CHECK(co_await sleep_for(loop_, latency_ms, token));
    (void)tag;  // each tag has one machine, and it was described before
    co_return std::vector<provider::Machine>();
  }
  Async<> terminate(std::string id, CancelToken token) override {
    RILLE_CO_CHECK(co_await sleep_for(loop_, latency_ms, token));
    if (auto node = tags_.extract(id)) ended_.insert(std::move(node));
    co_return success();
  }
  std::size_t alive() const { return tags_.size(); }
  std::size_t most() const { return most_; }
  int asked() const { return asked_; }

 private:
  Loop& loop_;
  std::string name_ = "slow";
  provider::Traits traits_;
  std::map<std::string, std::string> tags_, ended_;
  std::vector<provider::Offer> offers_;
  int made_ = 0, asked_ = 0;
  std::size_t most_ = 0;
};

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of one page, the median: what a commit cannot do without.
double fsync_ms(const std::string& path) {
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  const std::string page(4096, 'x');
  std::vector<double> took;
  for (int i = 0; i < 31 && write(fd, page.data(), page.size()) > 0; ++i) {
    const double begin = now_ms();
    (void)fdatasync(fd);
    took.push_back(now_ms() - begin);
  }
  close(fd);
  std::sort(took.begin(), took.end());
  return took.empty() ? 0 : took[took.size() / 2];
}

double resident_kb() {
  std::ifstream file("/proc/self/statm");
  long whole = 0, resident = 0;
  file >> whole >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

double cpu_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

Task<void> rent(lease::Manager& manager, lease::Acquire wanted, std::vector<std::string>& ids, int& failed,
                int& ended) {
  lease::Manager::Event quiet = [](const std::string&, Value) {};
  const Result<lease::Lease> got = co_await manager.acquire(std::move(wanted), quiet, {});
  if (got) ids.push_back(got->id);
  else ++failed, std::fprintf(stderr, "%s\n", got.error().summary().c_str());
  ++ended;
}

Task<void> release(lease::Manager& manager, std::string id, int& failed, int& ended) {
  lease::Manager::Event quiet = [](const std::string&, Value) {};
  const Result<> done = co_await manager.release(std::move(id), quiet);
  if (!done) ++failed, std::fprintf(stderr, "%s\n", done.error().summary().c_str());
  ++ended;
}

}  // namespace

int main(int argc, char** argv) {
  store::count_no_memory();
  const int n = argc > 1 ? std::atoi(argv[1]) : 1000;
  const std::string folder = (argc > 2 ? argv[2] : "/tmp") + std::string("/rille-rentals-") + random_hex(4);
  std::filesystem::create_directories(folder);
  const std::unique_ptr<Loop> loop = Loop::create().value();
  const std::unique_ptr<store::Journal> journal = store::Journal::open(*loop, folder + "/journal.db").value();
  const std::string budget =
      argc > 3 && std::atoll(argv[3]) > 0 ? std::to_string(std::atoll(argv[3]) * 1'000'000) : "NULL";
  const bool apart = argc > 4 && std::string_view(argv[4]) == "apart";
  store::Journal::Write run = [&budget](store::Db& db) {
    return db.script(("INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid,budget_micros) "
                      "VALUES('r','t','durable','running',1,'{}',0,0,'h',1," +
                      budget + ")")
                         .c_str());
  };
  if (!run_blocking(*loop, journal->commit(run))) return 1;
  provider::Registry registry;
  auto owned = std::make_unique<SlowCloud>(*loop);
  SlowCloud& cloud = *owned;
  (void)registry.add(std::move(owned));
  lease::Manager manager(*loop, *journal, registry, "0123456789ab");

  std::vector<std::string> ids;
  int failed = 0, ended = 0;
  const auto wanted = [apart](int i) {
    lease::Acquire a;
    a.name = "box" + std::to_string(i);
    a.key = "main/" + a.name + "#1";
    a.options = Value().set("gpu", "A100");
    if (apart) a.options.set("max_price", 100 + i);
    a.fence = store::Fence("r", 1);
    return a;
  };
  loop->spawn(rent(manager, wanted(0), ids, failed, ended));  // warm: statements, pages
  loop->run_until([&] { return ended == 1; });
  const double kb = resident_kb(), cpu = cpu_ms(), begin = now_ms();
  for (int i = 1; i <= n; ++i) loop->spawn(rent(manager, wanted(i), ids, failed, ended));
  loop->run_until([&] { return ended == n + 1; });
  const double rented = now_ms(), used = resident_kb(), rent_cpu = cpu_ms() - cpu;
  ended = 0;
  for (const std::string& id : ids) loop->spawn(release(manager, id, failed, ended));
  loop->run_until([&] { return ended == static_cast<int>(ids.size()); });
  const double over = now_ms(), fsync = fsync_ms(folder + "/page");
  const double rent_floor = 2 * latency_ms + 2 * fsync, release_floor = 3 * latency_ms + 2 * fsync;
  const double release_cpu = cpu_ms() - cpu - rent_cpu;
  std::printf(
      "{\"rentals\": %d, \"failed\": %d, \"alive_at_most\": %zu, \"alive_after\": %zu, \"asked\": %d, "
      "\"rent_ms\": %.1f, \"rent_floor_ms\": %.1f, \"rent_cpu_ms\": %.1f, \"release_ms\": %.1f, "
      "\"release_floor_ms\": %.1f, \"release_cpu_ms\": %.1f, \"fsync_ms\": %.2f, \"ratio\": %.3f, "
      "\"kb_each\": %.1f}\n",
      n, failed, cloud.most(), cloud.alive(), cloud.asked(), rented - begin, rent_floor, rent_cpu, over - rented,
      release_floor, release_cpu, fsync, (over - begin) / (rent_floor + release_floor), (used - kb) / n);
  std::filesystem::remove_all(folder);
  return failed == 0 && cloud.alive() == 0 ? 0 : 1;
}
