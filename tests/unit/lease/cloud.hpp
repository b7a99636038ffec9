// A cloud in memory with a clock of its own, whose faults are chosen by the test: replies that are lost, machines that
// show late, terminates that fail, lie or take their time. And a process that can die at any place: a manager whose
// coroutines are abandoned where they stand, while the journal and the cloud go on.
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <random>

#include "runtime/core/base/send_by.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/reaper.hpp"
#include "runtime/workflow/provider/addressed.hpp"
#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/lifetime.hpp"
#include "runtime/workflow/provider/outcome.hpp"

namespace rille::lease::test {

constexpr std::int64_t second_us = 1'000'000, hour_us = 3'600 * second_us;

struct FakeClock final : Clock {
  std::int64_t us = 1'800'000'000'000'000;
  std::int64_t wall_us() const override { return us; }
  std::int64_t monotonic_ns() const override { return us * 1000; }
};

struct TempDir {
  std::string path;
  TempDir() {
    char name[] = "/dev/shm/rille-lease-XXXXXX", other[] = "/tmp/rille-lease-XXXXXX";
    const char* made = mkdtemp(name);
    path = made ? made : mkdtemp(other);
  }
  ~TempDir() { std::filesystem::remove_all(path); }
};

struct Cloud {
  struct Box {
    std::string tag, token;
    std::int64_t made_us = 0, shown_us = 0, gone_us = 0;  // gone_us: when a terminate takes effect; 0: none
    std::string type;
    bool stopped = false;
    struct Stint {  // to_us 0: it goes on
      std::string type;
      std::int64_t from_us = 0, to_us = 0;
    };
    std::vector<Stint> stints;
  };
  provider::Traits traits;
  Cloud() { traits.dead_man = provider::DeadMan::provider; }
  std::map<std::string, Box> boxes;
  std::map<std::string, int> made;  // machines by tag, that is by lease and generation
  int next = 0, creates = 0, terminates = 0;
  Micros price_micros_per_hour = 1'000'000;
  provider::Billing billing;
  std::string currency = "USD";
  bool spot = false;
  std::string rdma;        // of its offers
  std::string large_gpu;   // the GPU of the type `large`; "": none
  Micros told_price = -1;  // reported by each machine, as of now; -1: not reported
  std::int64_t disk_bytes_max = 0;
  Micros disk_micros_per_gb_hour = 0;
  Micros address_micros_per_hour = 0;
  bool tells_running = false;                 // since when a machine runs, by the second
  bool tells_end = false;                     // when a machine has ended that is gone; forgets is false then
  std::map<std::string, std::int64_t> disks;  // that outlive their machines, by these, until then
  std::map<std::string, Micros> bills;        // of machines that are over

  // Faults. Those with a number happen so often.
  int lose_replies = 0, refuse = 0, fail_creates = 0, fail_terminates = 0, fail_lists = 0;
  std::int64_t land_late_us = 0;  // of machines whose reply was lost
  std::int64_t shutdown_us = 0;
  bool resizable = true;
  int resizes = 0, refuse_resizes = 0, strand_resizes = 0, lose_resizes = 0;  // strand: it is stopped, and stays so
  std::function<void(std::int64_t us)> pass;                                  // time, while a machine stops and starts
  bool forgets = true;                     // a gone machine is unknown to describe (else: known, with its tag)
  std::function<Async<>()> before_offers;  // what happens while they are asked for
  int hold_ups = 0;                        // so often create is ready to send only after that time: keys, a name server
  std::int64_t hold_up_us = 0;
  std::function<void()> before_create;  // what happens elsewhere while the call is on its way

  bool alive(const std::string& id, std::int64_t now) const {
    auto it = boxes.find(id);
    return it != boxes.end() && (!it->second.gone_us || now < it->second.gone_us);
  }
  int billable(std::int64_t now) const {
    int n = 0;
    for (const auto& [id, box] : boxes) n += alive(id, now);
    return n;
  }
  std::string put(const std::string& tag, const std::string& token, std::int64_t now, std::int64_t shown) {
    std::string id = "m-" + std::to_string(++next);
    boxes[id] = {tag, token, now, shown, 0};
    ++made[tag];
    return id;
  }
  Micros price_of(const std::string& type) const { return price_micros_per_hour * (type == "large" ? 2 : 1); }
  void stop(Box& box, std::int64_t now) {
    box.stopped = true;
    box.stints.back().to_us = now;
  }
  void start(Box& box, const std::string& type, std::int64_t now) {
    box.stopped = false;
    box.type = type;
    box.stints.push_back({type, now, 0});
  }
  // By the second, each stint as a machine of its own.
  Micros bill(const std::string& id, std::int64_t now) const {
    const Box& box = boxes.at(id);
    Micros sum = 0;
    for (const Box::Stint& s : box.stints) {
      std::int64_t to = s.to_us ? s.to_us : now;
      if (box.gone_us) to = std::min(to, box.gone_us);
      const std::int64_t unit_us = billing.unit_s * 1'000'000, us = std::max<std::int64_t>(0, to - s.from_us);
      const std::int64_t billed_us = std::max((us + unit_us - 1) / unit_us * unit_us, billing.minimum_s * 1'000'000);
      sum += cost_micros(price_of(s.type), billed_us / 1000);
    }
    return sum;
  }
};

class CloudProvider final : public provider::Provider, public provider::Addressed {
 public:
  using Place = std::function<Async<>()>;
  CloudProvider(Loop& loop, Cloud& cloud, Place place) : loop_(loop), cloud_(cloud), place_(std::move(place)) {}
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return cloud_.traits; }

  Micros address_micros_per_hour(const provider::Offer&) const override { return cloud_.address_micros_per_hour; }
  void set_address_price(Micros micros_per_hour) override { cloud_.address_micros_per_hour = micros_per_hour; }

  Async<std::vector<provider::Offer>> offers(provider::OfferQuery, CancelToken) override {
    if (cloud_.before_offers) RILLE_CO_CHECK(co_await cloud_.before_offers());
    std::vector<provider::Offer> out;
    for (const char* id : {"small", "large"}) {
      provider::Offer o;
      o.provider = name_;
      o.id = id;
      o.price_micros_per_hour = cloud_.price_micros_per_hour;
      if (!out.empty() && o.price_micros_per_hour > 0) o.price_micros_per_hour *= 2;
      o.billing = cloud_.billing;
      o.currency = cloud_.currency;
      o.spot = cloud_.spot;
      o.rdma = cloud_.rdma;
      if (!out.empty() && !cloud_.large_gpu.empty()) o.gpu = cloud_.large_gpu, o.gpu_count = 1;
      o.disk_bytes_max = cloud_.disk_bytes_max;
      o.disk_micros_per_gb_hour = cloud_.disk_micros_per_gb_hour;
      out.push_back(o);
    }
    co_return out;
  }

  Async<provider::Machine> create(provider::CreateRequest request, CancelToken) override {
    RILLE_CO_CHECK(co_await place_());
    if (cloud_.hold_ups > 0 && cloud_.hold_ups--) cloud_.pass(cloud_.hold_up_us);
    RILLE_CO_CHECK(check_send_by(request.send_by_wall_us, now_us()));
    ++cloud_.creates;
    if (cloud_.before_create) cloud_.before_create();
    if (cloud_.refuse > 0 && cloud_.refuse--) co_return make_error(ErrorKind::capacity, "none left");
    if (cloud_.fail_creates > 0 && cloud_.fail_creates--) co_return lost();
    std::string id;
    for (const auto& [known, box] : cloud_.boxes)
      if (cloud_.traits.token_lifetime_ms > 0 && box.token == request.token) id = known;
    bool lose = cloud_.lose_replies > 0 && cloud_.lose_replies--;
    std::int64_t now = now_us(), at = now + (lose ? cloud_.land_late_us : 0);
    if (id.empty()) {
      id = cloud_.put(request.tag, request.token, at, at + cloud_.traits.visibility_lag_ms * 1000);
      cloud_.start(cloud_.boxes[id], request.offer.id, at);
    }
    Cloud::Box& box = cloud_.boxes[id];  // one that was on its way has landed when the cloud names it
    box.made_us = std::min(box.made_us, at);
    box.shown_us = std::min(box.shown_us, at + cloud_.traits.visibility_lag_ms * 1000);
    RILLE_CO_CHECK(co_await place_());
    if (lose) co_return lost();
    co_return machine(id);
  }

  Async<provider::Machine> describe(std::string id, CancelToken) override {
    RILLE_CO_CHECK(co_await place_());
    auto it = cloud_.boxes.find(id);
    if (it == cloud_.boxes.end() || now_us() < it->second.shown_us) co_return unknown(id);
    co_return machine(id);
  }

  Async<std::vector<provider::Machine>> list(std::string tag, CancelToken) override {
    RILLE_CO_CHECK(co_await place_());
    if (cloud_.fail_lists > 0 && cloud_.fail_lists--) co_return lost();
    std::vector<provider::Machine> out;
    for (const auto& [id, box] : cloud_.boxes)
      if (box.tag.starts_with(tag) && now_us() >= box.shown_us && cloud_.alive(id, now_us()))
        out.push_back(machine(id));
    for (const auto& [id, until_us] : cloud_.disks)
      if (now_us() < until_us) out.push_back(provider::left_over("disk-" + id, cloud_.boxes.at(id).tag));
    co_return out;
  }

  Async<std::vector<provider::Bill>> bill(provider::BillQuery query, CancelToken) override {
    RILLE_CO_CHECK(co_await place_());
    std::vector<provider::Bill> out;
    for (const auto& [id, micros] : cloud_.bills) {
      auto box = cloud_.boxes.find(id);
      std::string tag = box == cloud_.boxes.end() ? "" : box->second.tag;
      bool named = std::find(query.machines.begin(), query.machines.end(), id) != query.machines.end();
      if (!named && (tag.empty() || !tag.starts_with(query.tag))) continue;
      provider::Bill bill;
      bill.machine_id = id;
      bill.tag = tag;
      bill.from_us = bill.to_us = now_us();
      bill.micros = micros;
      bill.final = !cloud_.alive(id, now_us());
      out.push_back(std::move(bill));
    }
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken) override {
    RILLE_CO_CHECK(co_await place_());
    ++cloud_.terminates;
    if (cloud_.fail_terminates > 0 && cloud_.fail_terminates--) co_return lost();
    auto it = cloud_.boxes.find(id);
    // Before it shows, the cloud takes it for one that never was, and says so politely.
    if (it != cloud_.boxes.end() && now_us() >= it->second.shown_us && !it->second.gone_us)
      it->second.gone_us = now_us() + cloud_.shutdown_us;
    RILLE_CO_CHECK(co_await place_());
    co_return success();
  }

  // A process that dies while it is stopped leaves it so.
  Async<provider::Machine> resize(std::string id, std::string type, CancelToken) override {
    RILLE_CO_CHECK(co_await place_());
    if (!cloud_.resizable) co_return provider::lacks(name_, "way to make a machine another type");
    ++cloud_.resizes;
    if (!cloud_.alive(id, now_us())) {
      Error e = make_error(ErrorKind::state, "there is no such machine any more");
      e.http_status = 404;
      co_return e;
    }
    Cloud::Box& box = cloud_.boxes[id];
    bool refused = false;
    if (box.stopped || box.type != type) {
      if (!box.stopped) cloud_.stop(box, now_us());
      if (cloud_.pass) cloud_.pass(20'000'000);
      RILLE_CO_CHECK(co_await place_());
      if (cloud_.strand_resizes > 0 && cloud_.strand_resizes--) co_return lost();
      refused = type != box.type && cloud_.refuse_resizes > 0 && cloud_.refuse_resizes--;
      cloud_.start(box, refused ? box.type : type, now_us());
      if (cloud_.pass) cloud_.pass(10'000'000);
      RILLE_CO_CHECK(co_await place_());
    }
    if (refused) co_return make_error(ErrorKind::capacity, "no room for it");
    if (cloud_.lose_resizes > 0 && cloud_.lose_resizes--) co_return lost();
    co_return machine(id);
  }

 private:
  static Error lost() { return make_error(ErrorKind::network, "connection reset by peer").with_retry(); }
  std::int64_t now_us() const { return loop_.clock().wall_us(); }
  provider::Machine unknown(const std::string& id) const {
    provider::Machine m;
    m.id = id;
    return m;
  }
  provider::Machine machine(const std::string& id) const {
    const Cloud::Box& box = cloud_.boxes.at(id);
    provider::Machine m = unknown(id);
    if (!cloud_.alive(id, now_us()) && cloud_.forgets) return m;
    m.tag = box.tag;
    m.created_wall_us = box.made_us;
    if (box.gone_us && cloud_.tells_end) provider::tell_ended(m, box.gone_us);
    if (!box.gone_us && !box.stopped && cloud_.tells_running && !box.stints.empty())
      provider::tell_running(m, box.stints.back().from_us / 1'000'000 * 1'000'000);
    m.details.set("type", box.type);
    m.price_micros_per_hour = cloud_.told_price;
    m.state = !box.gone_us && !box.stopped ? provider::MachineState::live
              : cloud_.alive(id, now_us()) ? provider::MachineState::terminating
                                           : provider::MachineState::gone;
    return m;
  }
  Loop& loop_;
  Cloud& cloud_;
  Place place_;
  std::string name_ = "cloud";
};

// A journal, a cloud and a manager that may die.
struct World {
  TempDir dir;
  FakeClock clock;
  std::unique_ptr<Loop> loop = Loop::create(clock).value();
  std::unique_ptr<store::Journal> journal = store::Journal::open(*loop, dir.path + "/journal.db").value();
  Cloud cloud;
  provider::Registry registry;
  std::unique_ptr<Manager> manager;
  int places = 0, die_at = -1;
  bool in_turns = false;  // two tasks take turns in the journal's queue; only their reads may fall either way
  bool died = false;
  std::function<bool()> dead;  // e.g. because the power is gone
  std::function<bool(const std::string&)> alive = [](const std::string&) { return false; };

  World() {
    CloudProvider::Place place = [this] { return this->place(); };
    (void)registry.add(std::make_unique<CloudProvider>(*loop, cloud, place));
    restart();
  }

  // A place where the process may die. Does not return when it does.
  Async<> place() {
    if (++places == die_at || (dead && dead())) {
      died = true;
      Future<Result<>> never(*loop);
      co_return co_await never;
    }
    if (in_turns) co_return co_await turn();
    co_return success();
  }

  Async<> turn() {
    store::Journal::Write nothing = [](store::Db&) { return success(); };
    co_return co_await journal->commit(std::move(nothing));
  }

  Async<> pause(std::int64_t ms, CancelToken token) {
    clock.us += ms * 1000;
    RILLE_CO_CHECK(co_await turn());
    if (token.cancelled()) co_return token.reason();
    co_return success();
  }

  // What stood still is gone; the next process begins.
  void restart() {
    loop->abandon_tasks();
    Hooks hooks;
    hooks.pause = [this](std::int64_t ms, CancelToken token) { return pause(ms, token); };
    hooks.written = [this] { return place(); };
    manager = std::make_unique<Manager>(*loop, *journal, registry, "0123456789ab", hooks);
    died = false;
  }

  // Two at once, to their ends or their death.
  template <class A, class B>
  void drive_both(Task<A> a, Task<B> b) {
    in_turns = true;
    int ended = 0;
    auto whole = [](auto inner, int& n) -> Task<void> {
      (void)co_await std::move(inner);
      ++n;
    };
    loop->spawn(whole(std::move(a), ended));
    loop->spawn(whole(std::move(b), ended));
    loop->run_until([&] { return ended == 2 || died; });
    in_turns = false;
  }

  // The result, or nothing when the process died.
  template <class T>
  std::optional<T> drive(Task<T> task) {
    std::optional<T> out;
    loop->spawn([](Task<T> inner, std::optional<T>& result) -> Task<void> {
      result.emplace(co_await std::move(inner));
    }(std::move(task), out));
    loop->run_until([&] { return out.has_value() || died; });
    return out;
  }

  void sql(std::string text) {
    auto write = [text](store::Db& db) { return db.script(text.c_str()); };
    Result<> r = run_blocking(*loop, journal->commit(write));
    if (!r) FAIL(r.error().summary());
  }
  void run(const std::string& id, const std::string& state = "running", std::int64_t budget_micros = -1) {
    sql("INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid,budget_micros) VALUES('" + id +
        "','t','durable','" + state + "',1,'{}',0," + std::to_string(clock.us) + ",'h',1," +
        (budget_micros < 0 ? "NULL" : std::to_string(budget_micros)) + ")");
  }

  Acquire wanted(const std::string& run, const std::string& name, Value options = Value(Value::Object{}),
                 std::int64_t epoch = 1) const {
    Acquire a;
    a.key = "main/" + name + "#1";
    a.name = name;
    a.options = std::move(options);
    a.fence = store::Fence(run, epoch);
    return a;
  }
  std::optional<Result<Lease>> rent(Acquire a) {
    Manager::Event quiet = [](const std::string&, Value) {};
    return drive(manager->acquire(std::move(a), quiet, {}));
  }
  std::optional<Result<Lease>> resize(const std::string& id, Value options, std::int64_t epoch = 1) {
    Resize wanted;
    wanted.id = id;
    wanted.options = std::move(options);
    wanted.fence = store::Fence("r", epoch);
    Manager::Event quiet = [](const std::string&, Value) {};
    return drive(manager->resize(std::move(wanted), quiet, {}));
  }
  std::optional<Result<>> release(const std::string& id, store::Fence fence = {}) {
    Manager::Event quiet = [](const std::string&, Value) {};
    return drive(manager->release(id, quiet, std::move(fence)));
  }
  std::optional<Result<ReapReport>> reap(bool in_background = false, std::string now = "") {
    ReapRequest request;
    request.alive = alive;
    request.in_background = in_background;
    if (!now.empty()) request.now.insert(std::move(now));
    return drive(manager->reaper().reap(std::move(request)));
  }
  Lease row(const std::string& id) { return manager->find(id).value().value(); }
  int billable() const { return cloud.billable(clock.us); }
};

}  // namespace rille::lease::test
