#include "runtime/workflow/engine/pools.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/workflow/engine/engine.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t pool_look_again_ms = 250;  // poll interval: a release by another process gives no signal

struct Holder {
  std::string run;
  std::int64_t epoch = 0;
};

}  // namespace

Value PoolSpec::to_value() const { return Value().set("slots", slots).set("rate", rate).set("per_ms", per_ms); }

// A fiber's place in the pool's queue, from its first attempt until it has the permit.
struct Pools::Waiter {
  Waiter(Pools& p, std::string n) : pools(p), name(std::move(n)) { pools.waiting_[name].push_back(this); }
  ~Waiter() {
    auto& line = pools.waiting_[name];
    line.erase(std::find(line.begin(), line.end(), this));
    if (line.empty()) pools.waiting_.erase(name);
    else pools.wake_next(name);
  }
  Waiter(const Waiter&) = delete;
  bool first() const { return pools.waiting_.at(name).front() == this; }
  Pools& pools;
  std::string name;
  std::optional<CancelSource> rest;  // set while the fiber pauses between tries; cancelling it ends the pause
};

void Pools::wake_next(const std::string& pool) {
  auto it = waiting_.find(pool);
  if (it == waiting_.end() || !it->second.front()->rest) return;
  it->second.front()->rest->cancel(make_error(ErrorKind::cancelled, "a permit may be free"));
}

Async<> Pools::acquire(PoolSpec pool, std::string key, store::Fence run, CancelToken token) {
  Waiter waiter(*this, pool.name);
  while (true) {
    if (token.cancelled()) co_return token.reason();
    std::int64_t pause_ms = pool_look_again_ms;
    if (waiter.first()) {
      RILLE_CO_TRY(Answer answer, co_await attempt(pool, key, run));
      if (answer.granted) co_return success();
      if (answer.not_before_us)
        pause_ms = std::max<std::int64_t>(1, (answer.not_before_us - loop_.clock().wall_us() + 999) / 1000);
    }
    waiter.rest.emplace(token);
    (void)co_await sleep_for(loop_, pause_ms, waiter.rest->token());
    waiter.rest.reset();
  }
}

Async<Pools::Answer> Pools::attempt(PoolSpec pool, std::string key, store::Fence run) {
  std::vector<Holder> dead;
  RILLE_CO_CHECK(journal_.reader().query("SELECT DISTINCT run,epoch FROM permits WHERE pool=? AND run<>?",
                                         {pool.name, run.run}, [&](const store::Row& row) {
                                           if (!alive_(row.text(0))) dead.push_back({row.text(0), row.integer(1)});
                                         }));
  auto answer = std::make_shared<Answer>();
  const std::int64_t now = loop_.clock().wall_us();
  store::Journal::Write write = [pool, key, run, dead, answer, now](store::Db& db) -> Result<> {
    *answer = {};
    for (const Holder& h : dead)
      RILLE_CHECK(db.run("DELETE FROM permits WHERE pool=? AND run=? AND epoch=?", {pool.name, h.run, h.epoch}));
    std::int64_t held = 0, mine = 0, next_us = 0;
    RILLE_CHECK(db.query("SELECT count(*), sum(run=? AND key=?) FROM permits WHERE pool=?", {run.run, key, pool.name},
                         [&](const store::Row& row) { held = row.integer(0), mine = row.integer(1); }));
    if (mine) return answer->granted = true, success();
    if (pool.slots && held >= pool.slots) return {};
    if (pool.rate) {
      RILLE_CHECK(db.query("SELECT next_us FROM rates WHERE pool=?", {pool.name},
                           [&](const store::Row& row) { next_us = row.integer(0); }));
      std::int64_t each = std::max<std::int64_t>(1, pool.per_ms * 1000 / pool.rate), ahead = each * (pool.rate - 1);
      // If the wall clock was set back, the pool grants no permit for at most one period.
      next_us = std::clamp(next_us, now, now + pool.per_ms * 1000);
      if (next_us - now > ahead) return answer->not_before_us = next_us - ahead, success();
      RILLE_CHECK(db.run("INSERT INTO rates(pool,next_us) VALUES(?1,?2) ON CONFLICT(pool) DO UPDATE SET next_us=?2",
                         {pool.name, next_us + each}));
    }
    answer->granted = true;
    return db.run("INSERT INTO permits(pool,run,key,epoch,taken_us) VALUES(?,?,?,?,?)",
                  {pool.name, run.run, key, run.epoch, now});
  };
  RILLE_CO_CHECK(co_await journal_.commit(std::move(write), run));
  co_return *answer;
}

void Pools::release(const std::string& pool, const std::string& key, const store::Fence& run) {
  store::Journal::Write write = [pool, key, run](store::Db& db) {
    return db.run("DELETE FROM permits WHERE pool=? AND run=? AND key=? AND epoch=?", {pool, run.run, key, run.epoch});
  };
  journal_.commit_then(std::move(write), nullptr, [this, pool](const Result<>&) { wake_next(pool); });
}

// A permit is recorded twice: as an entry of the run, so that fibers enter in the same order on replay, and as a row of
// the pool. If the replay ends while the fiber is inside the pool, the resumed run takes the permit again (take_owed).
Async<std::string> RunImpl::pool_enter(FiberId id, PoolSpec pool, std::string source) {
  if (!config_.engine)
    co_return make_error(ErrorKind::state, "rille.pool cannot be called inside box:call",
                         "take the pool's permit in the workflow, around box:call");
  Operation op{"pool", pool.name, pool.to_value(), std::move(source)};
  RILLE_CO_TRY(Admitted slot, co_await admit(id, std::move(op)));
  std::string key = slot.key;
  std::shared_ptr<FiberRecord> f = slot.fiber;
  if (slot.recorded) {
    if (!*slot.recorded) co_return slot.recorded->error();
    f->owed.push_back({std::move(pool), key});
    co_return key;
  }
  count_row(pool.name.size());
  Result<> taken = co_await config_.engine->pools().acquire(pool, key, fence(), token(*f));
  if (!taken && of_journal(taken.error())) taken = co_await not_recorded(f, taken.error());
  if (!taken) co_return taken.error();
  Result<Value> recorded = co_await complete(std::move(slot), Value());
  if (!recorded) {
    config_.engine->pools().release(pool.name, key, fence());
    co_return recorded.error();
  }
  co_return key;
}

void RunImpl::pool_leave(FiberId id, const std::string& pool, const std::string& key) {
  auto& owed = fiber(id).owed;
  auto it = std::find_if(owed.begin(), owed.end(), [&](const OwedPermit& o) { return o.key == key; });
  if (it != owed.end()) return void(owed.erase(it));
  config_.engine->pools().release(pool, key, fence());
}

// Takes again the permits of the pools that the fiber entered in an earlier process and has not left.
Async<> RunImpl::take_owed(std::shared_ptr<FiberRecord> f) {
  while (!f->owed.empty()) {
    OwedPermit next = f->owed.front();
    Result<> taken = co_await config_.engine->pools().acquire(next.pool, next.key, fence(), token(*f));
    if (!taken && of_journal(taken.error())) taken = co_await not_recorded(f, taken.error());
    if (!taken) co_return taken.error();
    if (!f->owed.empty() && f->owed.front().key == next.key) f->owed.erase(f->owed.begin());
  }
  co_return success();
}

}  // namespace rille::engine
