#include "runtime/workflow/lease/manager.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/money.hpp"
#include "runtime/core/base/object_value.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/lease/budget.hpp"
#include "runtime/workflow/lease/owner.hpp"
#include "runtime/workflow/lease/reaper.hpp"
#include "runtime/workflow/lease/refused.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/lease/tag.hpp"
#include "runtime/workflow/lease/terms.hpp"
#include "runtime/workflow/lease/volumes.hpp"
#include "runtime/workflow/provider/clocked.hpp"
#include "runtime/workflow/provider/lifetime.hpp"
#include "runtime/workflow/provider/type_of.hpp"

namespace rille::lease {

namespace {
// No bill is queried for a machine that ended longer ago than this.
constexpr std::int64_t bills_settle_us = 40LL * 86'400'000'000;

using provider::Machine;
using provider::MachineState;

}  // namespace

Micros Lease::spent_micros(std::int64_t now_us) const {
  Micros sum = 0;
  for (const Tenure& t : tenures) sum += t.cost(now_us);
  return sum;
}

Amounts Lease::costs(std::int64_t now_us) const {
  Amounts sum;
  for (const Tenure& t : tenures) add_to(sum, t.costs(now_us));
  return sum;
}

// The lease's row has the price in dollars; of a volume, that of its disk. If it is unknown, the ledger has the price
// in the provider's currency, or, before the machine exists, the offer has it.
Price Lease::price() const {
  if (is_volume(*this))
    return counted(disk_micros_per_hour,
                   request.offer.disk_micros_per_gb_hour > 0 ? request.offer.disk_micros(request.disk_bytes)
                                                             : provider::price_unknown,
                   request.offer);
  if (price_micros_per_hour >= 0) return {price_micros_per_hour, "USD"};
  for (auto t = tenures.rbegin(); t != tenures.rend(); ++t)
    if (t->generation == generation && t->machine_id == machine_id && !t->reconciled()) return t->price();
  return counted(price_micros_per_hour, request.offer.price_micros_per_hour, request.offer);
}

Micros Lease::committed_micros(std::int64_t now_us) const {
  if (!billable()) return spent_micros(now_us);
  Micros before = 0, now = 0;
  for (const Tenure& t : tenures) (t.generation == generation ? now : before) += t.cost(now_us);
  return before + std::max(now, reserved_micros);  // a machine past its expiry may have cost more
}

Value Lease::to_value(std::int64_t now_us) const {
  ObjectValue v;
  Micros address = 0;
  if (!tenures.empty())
    for (const Segment& s : tenures.back().segments)
      if (s.part == "address" && s.micros_per_hour > 0) address = s.micros_per_hour;
  if (address) v.set("address_price_per_hour", static_cast<double>(address) / 1e6);
  if (state == "resizing" && change) v.set("becomes", provider::type_of(change->offer));
  const Amounts all = costs(now_us);
  if (!only_dollars(all)) v.set("costs", lease::to_value(all));
  v.set("created", format_utc(created_us));
  const Price hour = price();
  if (hour.currency != "USD") v.set("currency", hour.currency);
  if (detached) v.set("detached", true);
  if (disk_micros_per_hour > 0) v.set("disk_price_per_hour", static_cast<double>(disk_micros_per_hour) / 1e6);
  if (!error.empty()) v.set("error", error);
  v.set("expires", format_utc(expires_us)).set("generation", generation).set("id", id).set("machine", machine_id);
  Value::Array held;
  for (const Tenure& t : tenures) {
    held.push_back(t.to_value(now_us));
    if (is_volume(*this))  // which neither starts nor is idle
      for (const char* key : {"starting_seconds", "idle_seconds"}) held.back().as_object()->erase(key);
  }
  if (!held.empty()) v.set("machines", std::move(held));
  v.set("name", name);
  if (taken_us > now_us && state == "live") v.set("preempting", format_utc(taken_us));
  if (hour.micros >= 0) v.set("price_per_hour", static_cast<double>(hour.micros) / 1e6);
  v.set("provider", provider);
  if (released_us) v.set("released", format_utc(released_us));
  if (!replacing.empty()) v.set("replacing", replacing);
  v.set("reserved", static_cast<double>(billable() ? reserved_micros : 0) / 1e6).set("run", run);
  if (is_volume(*this)) v.set("size", request.disk_bytes);
  v.set("spent", static_cast<double>(spent_micros(now_us)) / 1e6).set("state", state);
  if (!run_tag.empty()) v.set("tag", run_tag);
  if (is_volume(*this)) v.set("volume", request.extra["volume"]);
  return std::move(v).take();
}

Manager::Manager(Loop& loop, store::Journal& journal, provider::Registry& registry, std::string install, Hooks hooks)
    : loop_(loop), journal_(journal), registry_(registry), install_(std::move(install)), hooks_(std::move(hooks)),
      queries_(loop, registry), recent_(std::make_shared<Recent>()), search_(std::make_shared<Search>()),
      reaper_(std::make_unique<Reaper>(*this, loop, journal, registry, install_)) {}

Manager::~Manager() = default;

std::string Manager::lease_id(const std::string& run, const std::string& key) {
  return "l-" + derive_hex({"lease", run, key}, 12);
}

Result<std::optional<Lease>> Manager::find(const std::string& id) const {
  RILLE_TRY(auto rows, read_leases(journal_.reader(), "WHERE id=?", {id}));
  if (rows.empty()) return std::optional<Lease>();
  return std::optional<Lease>(std::move(rows.front()));
}

Result<Manager::Shared> Manager::known(const std::string& id) const {
  RILLE_TRY(auto rows, read_leases(journal_.reader(), "WHERE id=?", {id}));
  if (rows.empty()) return Shared();
  return std::make_shared<Lease>(std::move(rows.front()));
}

Result<std::vector<Lease>> Manager::of_run(const std::string& run) const {
  return read_leases(journal_.reader(), "WHERE run=? ORDER BY created_us", {run});
}

Result<std::vector<Lease>> Manager::all(bool with_released) const {
  return read_leases(journal_.reader(),
                     with_released ? "ORDER BY created_us" : "WHERE open IS NOT NULL ORDER BY created_us", {});
}

Result<std::optional<Lease>> Manager::volume(const std::string& name) const {
  return open_volume(journal_.reader(), name);
}

Result<std::vector<Money>> Manager::money(const std::string& run) const {
  return count_money(journal_.reader(), run, "", loop_.clock().wall_us());
}

Result<std::vector<Money>> Manager::budgets() const { return count_home(journal_.reader(), loop_.clock().wall_us()); }

// The lease of a bill for a machine that no row has seen: the answer to its create call was lost, and it ended unseen.
// The bill's tag names the lease.
Result<std::optional<Lease>> Manager::unseen(const std::string& provider, const provider::Bill& bill) const {
  std::optional<Tag> tag = read_tag(install_, bill.tag);
  if (!tag) return std::optional<Lease>();
  RILLE_TRY(std::optional<Lease> lease, find(tag->lease));
  if (!lease || lease->machine_id == bill.machine_id) return std::optional<Lease>();
  lease->provider = provider;
  lease->generation = tag->generation;
  lease->machine_id = bill.machine_id;
  lease->tag = bill.tag;
  lease->live_us = bill.from_us;
  return lease;
}

Async<std::int64_t> Manager::reconcile(CancelToken token) {
  RILLE_CO_TRY(auto open, unbilled(journal_.reader()));
  auto settled = std::make_shared<std::int64_t>(0);
  for (provider::Provider* p : registry_.all()) {
    provider::BillQuery query;
    for (const auto& [provider, machine] : open)
      if (provider == p->name()) query.machines.push_back(machine);
    query.tag = tag_prefix(install_);
    query.since_us = now_us() - bills_settle_us;
    RILLE_CO_TRY(std::vector<provider::Bill> bills, co_await p->bill(std::move(query), token));
    std::erase_if(bills, [](const provider::Bill& b) { return !b.final; });
    if (bills.empty()) continue;
    std::vector<std::optional<Lease>> strays;
    for (const provider::Bill& b : bills) {
      RILLE_CO_TRY(std::optional<Lease> stray, unseen(p->name(), b));
      strays.push_back(std::move(stray));
    }
    store::Journal::Write write = [bills, strays, settled, name = p->name()](store::Db& db) -> Result<> {
      std::int64_t news = 0;
      for (std::size_t i = 0; i < bills.size(); ++i) {
        if (strays[i]) RILLE_CHECK(record_stray(db, *strays[i], bills[i].to_us));
        RILLE_CHECK(record_bill(db, name, bills[i], news));
      }
      *settled += news;
      return {};
    };
    RILLE_CO_CHECK(co_await journal_.commit(std::move(write)));
    if (hooks_.written) RILLE_CO_CHECK(co_await hooks_.written());
  }
  co_return *settled;
}

Result<bool> Manager::any_open() const {
  bool open = false;
  RILLE_CHECK(journal_.reader().query(
      "SELECT 1 FROM leases WHERE open IS NOT NULL AND NOT (detached AND state='live' AND "
      "(SELECT json_type(request,'$.extra.volume') FROM requests WHERE requests.lease=leases.number) IS NOT NULL) "
      "LIMIT 1",
      {}, [&](const store::Row&) { open = true; }));
  return open;
}

std::set<Manager::Place> Manager::take_places(const std::string& run) {
  const auto asked = search_->places.extract(run);
  return asked ? std::move(asked.mapped()) : std::set<Place>();
}

Async<> Manager::pause(std::int64_t ms, CancelToken token) {
  if (hooks_.pause) co_return co_await hooks_.pause(ms, token);
  co_return co_await sleep_for(loop_, ms, token);
}

// Writes the lease's row if it has not changed since it was read (see write_lease in rows.hpp). Until this returns,
// only the journal's thread may use the lease. unused_volume: the lease is a volume, and the write fails with the code
// volume_in_use if a lease has it.
Async<> Manager::save(Shared lease, store::Fence fence, bool unused_volume) {
  const bool fenced = covers(fence, *lease);
  Ending ending;  // for a released lease: when its costs ended, as its release found
  if (lease->state == "released")
    if (auto at = search_->endings.extract(lease->id)) ending = at.mapped();
  store::Journal::Write write = [lease, fenced, ending, texts = texts_of(*lease), unused_volume,
                                 at = now_us()](store::Db& db) -> Result<> {
    if (unused_volume) RILLE_CHECK(check_unused(db, *lease, at));
    return write_lease(db, *lease, texts, fenced, ending);
  };
  RILLE_CO_CHECK(co_await journal_.commit(std::move(write), std::move(fence)));
  lease->seen.state = lease->state;
  lease->seen.generation = lease->generation;
  if (hooks_.written) RILLE_CO_CHECK(co_await hooks_.written());
  co_return success();
}

Async<Machine> Manager::describe(const Lease& lease, CancelToken token) {
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  RILLE_CO_TRY(Machine machine, co_await provider->describe(lease.machine_id, token));
  bool unknown = machine.state == MachineState::gone && machine.tag != lease.tag;
  const std::int64_t proof_us = absence_proven_us(lease, provider->traits());
  if (unknown && lease.machine && !search_->proofs.of(loop_.clock(), lease.id, proof_us).holds(loop_.clock())) {
    machine = *lease.machine;  // the machine may not be visible yet: return the answer to the create call
    machine.state = MachineState::pending;
    provider::mark_unseen(machine);
  } else if (unknown) {
    const auto asked = std::make_shared<const Lease>(lease);
    RILLE_CO_CHECK(co_await check_owner(journal_.reader(), provider, asked, token));
  }
  book_price(lease, machine);
  if (const std::int64_t since_us = provider::running_since_us(machine))
    provider::tell_running(machine, since_us - provider::skew_of(provider));
  co_return machine;
}

}  // namespace rille::lease
