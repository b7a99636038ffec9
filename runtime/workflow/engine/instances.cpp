// The durable operations on instances: each is first looked up in the record (admit), and recorded when it is done.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/entries.hpp"
#include "runtime/workflow/engine/lease_errors.hpp"
#include "runtime/workflow/engine/measuring.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/lease/volumes.hpp"
#include "runtime/workflow/provider/catalogue/workload.hpp"

namespace rille::engine {

Error no_leases(const RunConfig& config) {
  if (config.home == in_memory_home)
    return make_error(ErrorKind::state, "this run can rent nothing: its host program keeps all state in memory",
                      "open the runtime with a folder as its home: the record of a machine must outlive the program");
  return make_error(ErrorKind::state, "code inside box:call cannot rent or call other machines",
                    "rent and call machines in the workflow, outside box:call");
}

namespace {
using Live = std::function<Async<Value>(CancelToken)>;

// The instance's lease with this name that the fiber's scopes hold. A name is in use until its lease ends.
std::optional<lease::Lease> held_as(const lease::Manager& leases, const FiberRecord& f, const std::string& name) {
  for (const ScopeRecord* s = f.scope; s && s->owner == f.id; s = s->parent)
    for (const std::string& id : s->leases) {
      Result<std::optional<lease::Lease>> row = leases.find(id);
      if (row && *row && (*row)->name == name && (*row)->billable() && !(*row)->detached && !lease::is_volume(**row))
        return **row;
    }
  return std::nullopt;
}

// The error for a name that is in use. It shows the source line of the first rent, if the record has it.
Error name_taken(store::Db& journal, std::int64_t run, const lease::Lease& held) {
  std::string where;
  (void)journal.query("SELECT source FROM entries WHERE id>=? AND id<? AND kind='rent' AND instr(value,?)>0",
                      {entry_id(run, 0), entry_id(run + 1, 0), held.id},
                      [&](const store::Row& row) { where = ", at " + row.text(0); });
  Error e =
      make_error(ErrorKind::state, fmt::format("'{}' is rented already{}", held.name, where),
                 "choose another name, or release that instance first with box:release(); rille.cluster rents several");
  e.code = "name_taken";
  return e;
}

}  // namespace

Error unsettled(Error rent, Error release) {
  rent.message += fmt::format("; and what became of it could not be settled: {}", release.message);
  if (!release.hint.empty()) rent.hint += (rent.hint.empty() ? "" : "; ") + release.hint;
  if (rent.resource.empty()) rent.resource = release.resource;
  if (!rent.cause) rent.cause = std::make_shared<const Error>(std::move(release));
  return rent;
}

namespace {
bool is_offered(const Value& row) { return !row["id"].is_null(); }
}  // namespace

Async<Value> RunImpl::offers(FiberId id, Value query, std::string source) {
  if (!leases_) co_return no_leases(config_);
  Operation op{"offers", "offers", query, std::move(source)};
  connector_->adapt_offers(query);
  Live live = [this, query](CancelToken token) { return list_offers(query, std::move(token)); };
  co_return co_await recorded(id, std::move(op), std::move(live));
}

// Lists offers, ranked by local measurements if the query names a workload. If a query finds no offer, the hint is
// given once per run, because a script may repeat the query.
Async<Value> RunImpl::list_offers(Value query, CancelToken token) {
  RILLE_CO_TRY(const provider::Workload workload, provider::Workload::resolve(home_of(config_.home), query));
  RILLE_CO_TRY(Value list, co_await leases_->queries().offers(query, token));
  const Value::Array& rows = *list.as_array();
  if (std::none_of(rows.begin(), rows.end(), is_offered) && hinted_.insert(query.to_json()).second) {
    const Result<std::string> hint = co_await leases_->queries().offers_hint(query, std::move(token));
    if (hint && !hint->empty())
      event("warning", Value().set("what", "rille.offers finds nothing for " + query.to_json()).set("message", *hint));
  }
  workload.mark(list);
  co_return list;
}

Async<Value> RunImpl::price_history(FiberId id, Value query, std::string source) {
  if (!leases_) co_return no_leases(config_);
  Operation op{"price_history", "price_history", query, std::move(source)};
  connector_->adapt_query(query);
  Live live = [this, query](CancelToken token) { return leases_->queries().price_history(query, token); };
  co_return co_await recorded(id, std::move(op), std::move(live));
}

Async<Value> RunImpl::quotas(FiberId id, Value query, std::string source) {
  if (!leases_) co_return no_leases(config_);
  Operation op{"quotas", "quotas", query, std::move(source)};
  connector_->adapt_query(query);
  Live live = [this, query](CancelToken token) { return leases_->queries().quotas(query, token); };
  co_return co_await recorded(id, std::move(op), std::move(live));
}

// Returns the id of the row that stands for a recorded lease. The record of a fork has the lease ids of the run that it
// was copied from. If the fork rents a lease anew, it has its own row `own`; other leases keep the copied run's rows.
Result<std::string> RunImpl::of_fork(const std::string& own, const std::string& recorded) {
  if (recorded.empty() || recorded == own) return own;
  RILLE_TRY(std::optional<lease::Lease> row, leases_->find(own));
  if (!row) return recorded;
  recorded_as_[own] = recorded;
  return own;
}

std::string RunImpl::recorded_as(const std::string& lease_id) const {
  auto it = recorded_as_.find(lease_id);
  return it == recorded_as_.end() ? lease_id : it->second;
}

Async<LeaseView> RunImpl::rent(FiberId id, std::string name, Value options, std::string source) {
  if (!leases_) co_return no_leases(config_);
  FiberRecord& f = fiber(id);
  std::string lease_id = lease::Manager::lease_id(config_.id, next_key(f, name));
  Operation asked{"rent", name, options, std::move(source)};
  // The cluster's name is not part of the arguments' identity; older records of clusters lack it.
  if (Value::Object* said = asked.args.as_object()) said->erase("cluster");
  Result<Admitted> admitted = co_await admit(id, std::move(asked));
  if (!admitted) {
    // A fiber cancelled while it waits for the end of the replay may have begun this rent in an earlier process.
    if (cancelled(id)) owner(f).leases.push_back(lease_id);
    co_return admitted.error();
  }
  Admitted slot = std::move(*admitted);
  Admitted end = ending(f, -2 - 2 * slot.pos, "end of rent " + name, slot.operation.source);
  if (slot.recorded && slot.recorded->ok()) {
    RILLE_CO_TRY(lease_id, of_fork(lease_id, (*slot.recorded)->text("lease")));
  }
  // `own` is false for a lease of the run that this fork was copied from: that run ends the lease.
  const bool own = lease_id == lease::Manager::lease_id(config_.id, slot.key);
  const bool wakes = own && !options["idle_after"].is_null();
  if (slot.recorded && slot.recorded->ok() && (*slot.recorded)->boolean("adopted") && !own) {
    RILLE_CO_TRY(const std::optional<lease::Lease> used, leases_->find(lease_id));
    if (used) calls_->borrow(*used);
    co_return lease(lease_id);
  }
  if (!slot.recorded) {
    Result<std::optional<lease::Lease>> found = calls_->adoptable(lease_id, name, options);
    if (!found || *found) co_return co_await adopt(std::move(slot), std::move(found));
  }
  std::optional<lease::Lease> twin;
  if (!slot.recorded) twin = held_as(*leases_, f, name);
  // The scope holds the lease from here on, so that an interrupted rent is cleaned up too.
  owner(f).leases.push_back(lease_id);
  Result<Value> outcome = Value();
  if (slot.recorded) {
    outcome = std::move(*slot.recorded);
  } else if (twin) {
    record_start(slot);
    Result<Value> taken = name_taken(journal_->reader(), config_.number, *twin);
    outcome = co_await complete(std::move(slot), std::move(taken));
    if (const Error* why = cancelled(id)) co_return *why;
  } else {
    record_start(slot);
    count_row(options.to_json().size());
    lease::LeaseLimit most(limits_.leases_max, limits_.leases_of);
    Result<lease::Lease> made =
        co_await calls_->rent(slot.key, std::move(name), owner(f).name, std::move(options), std::move(most), token(f));
    if (made) outcome = Value().set("lease", made->id), alert_budgets();
    else if (const Error* why = cancelled(id)) co_return *why;
    else outcome = made.error();
    outcome = co_await complete(std::move(slot), std::move(outcome));
    if (const Error* why = cancelled(id)) co_return *why;
  }
  if (!outcome) {
    // A rent whose outcome is unknown is released like a lease; a refused rent has nothing to release. If the release
    // fails, the scope keeps the lease and tries again at the scope's end.
    Error e = outcome.error();
    std::vector<std::string> one(1, lease_id);
    Result<> settled = co_await release_all(f, std::move(one), std::move(end));
    if (settled) std::erase(owner(f).leases, lease_id);
    else e = unsettled(std::move(e), settled.error()), calls_->end_by(lease_id, 0);
    if (const Error* why = cancelled(id)) co_return *why;  // the fiber may have been cancelled during the release
    co_return e;
  }
  if (wakes) loop_.spawn(calls_->wake(lease_id));
  Result<LeaseView> rented = lease(lease_id);
  if (own && rented && rented->state != "released") calls_->end_by(lease_id, rented->expires_wall_us);
  co_return rented;
}

// Makes the operation for the releases at the end of a scope or after a failed rent. These releases get an entry in the
// record, although the script calls nothing, because other fibers run meanwhile and can observe the end. The entry's
// position is negative, outside the fiber's sequence, because the entry may be missing.
Admitted RunImpl::ending(FiberRecord& f, std::int64_t pos, std::string name, std::string source) const {
  Admitted slot;
  slot.fiber = f.shared_from_this();
  slot.pos = pos;
  slot.occurrence = (1 - pos) / 2;
  slot.started_us = now_us();
  slot.args_sha256 = std::string(no_args_sha256);
  slot.operation = {"released", std::move(name), Value(), std::move(source)};
  if (const Entry* e = replay_.empty() ? nullptr : replay_.find(f.path, pos)) {
    slot.begun = true;
    slot.started_us = e->started_us;
    if (e->completed()) slot.recorded.emplace(e->error ? Result<Value>(*e->error) : Result<Value>(Value()));
    else row_of(slot).written = true;
  }
  return slot;
}

// Releases the leases in the given order; continues after a failure, and returns the first error. If the record
// continues past this place although a lease is not released, its release failed in the earlier process.
Async<> RunImpl::release_all(FiberRecord& f, std::vector<std::string> ids, Admitted slot) {
  if (!leases_) co_return success();
  if (slot.recorded) {
    const std::int64_t seq = replay_.find(f.path, slot.pos)->seq;
    if (!replay_.over() && seq >= replay_.next()) RILLE_CO_CHECK(co_await wait_turn(f, seq));
    if (!*slot.recorded) co_return slot.recorded->error();
  } else if (slot.begun) {
    RILLE_CO_TRY(const bool live, co_await release_gate(f));
    if (divergence_) co_return *divergence_;
    if (!live) slot.begun = false;
  }
  std::optional<Error> first;
  for (const std::string& id : ids) {
    Result<std::optional<lease::Lease>> row = leases_->find(id);
    if (!row && !first) first = row.error();
    if (!row || !*row || (*row)->detached) continue;
    const bool has_volumes = (*row)->between_machines() && !provider::mounts_in((*row)->request).empty();
    if ((*row)->state == "released" && !has_volumes) continue;
    RILLE_CO_TRY(bool live, co_await release_gate(f));
    if (divergence_) co_return *divergence_;
    if (!live) {
      if (!first) first = lease::Manager::release_failed(**row);
      continue;
    }
    if (!slot.begun) record_start(slot);
    slot.begun = true;
    if (Result<> r = co_await calls_->release(id); !r && !first) first = r.error();
  }
  if (slot.begun && !slot.recorded) {
    Result<Value> outcome = Value();
    if (first) outcome = *first;
    outcome = co_await complete(std::move(slot), std::move(outcome));
    if (!outcome) co_return outcome.error();
  }
  if (first) co_return *first;
  co_return success();
}

Async<> RunImpl::release(FiberId id, std::string lease_id, std::string source) {
  if (!leases_) co_return no_leases(config_);
  RILLE_CO_TRY(Admitted slot, co_await admit(id, Operation{"release", "release", Value(), std::move(source)}));
  FiberRecord& f = fiber(id);
  Result<Value> outcome = Value();
  if (slot.recorded) {
    outcome = std::move(*slot.recorded);
  } else {
    Result<> r = calls_->check_own(lease_id, "box:release", true);
    if (r) r = co_await calls_->release(lease_id);
    if (!r) outcome = r.error();
    outcome = co_await complete(std::move(slot), std::move(outcome));
  }
  if (!outcome) co_return outcome.error();
  for (ScopeRecord* s = f.scope; s; s = s->parent) std::erase(s->leases, lease_id);
  co_return success();
}

Async<> RunImpl::detach(FiberId id, std::string lease_id, std::int64_t ttl_ms, std::string source) {
  if (!leases_) co_return no_leases(config_);
  Value identity;
  identity.set("lease", recorded_as(lease_id)).set("ttl_ms", ttl_ms);
  Operation op{"detach", "detach", std::move(identity), std::move(source)};
  Live live = [=, this](CancelToken) -> Async<Value> {
    RILLE_CO_CHECK(calls_->check_own(lease_id, "box:detach", true));
    RILLE_CO_TRY(lease::Lease now, co_await leases_->detach(lease_id, ttl_ms, fence()));
    event("detached", now.to_value(now_us()));
    calls_->forget_detached();
    if (!calls_->borrowed(lease_id)) calls_->end_by(lease_id, now.expires_us);
    co_return Value();
  };
  Result<Value> done = co_await recorded(id, std::move(op), std::move(live));
  if (!done) co_return done.error();
  co_return success();
}

Result<LeaseView> RunImpl::lease(const std::string& lease_id) const {
  if (!leases_) return no_leases(config_);
  return calls_->view(lease_id);
}

Async<Value> RunImpl::call(FiberId id, std::string lease_id, CallSpec spec, std::string source) {
  if (!leases_) co_return no_leases(config_);
  Value identity;
  identity.set("lease", recorded_as(lease_id)).set("what", spec.identity);
  FiberRecord& f = fiber(id);
  std::string key = next_key(f, spec.name);
  const Entry* before = replay_.find(f.path, f.next_pos);
  bool begun = before && !before->completed();  // an earlier process began this call and did not complete it
  Result<Admitted> admitted = co_await admit(
      id, Operation{spec.kind == "exec" ? "exec" : "call", spec.name, std::move(identity), std::move(source)});
  if (!admitted) {
    // Tell the agent to drop the call even if the record does not show it as begun: the begin is recorded slightly
    // after the call starts.
    if (const Error* why = cancelled(id)) calls_->forget(lease_id, key, why->message, begun);
    co_return admitted.error();
  }
  Admitted slot = std::move(*admitted);
  if (slot.recorded) {
    calls_->forget(lease_id, key, "recorded", false);
    co_return std::move(*slot.recorded);
  }
  event("call", Value().set("call", spec.name).set("lease", lease_id));
  Calls::Postponed postponed{slot.next_us, [this, &slot](std::int64_t until_us) {
                               slot.next_us = until_us;
                               ++slot.attempt;
                               record_start(slot);
                             }};
  record_start(slot);
  CancelToken cancel = token(*slot.fiber);
  Value setup = spec.setup ? Calls::setup_of(spec) : Value();
  const bool program = spec.kind == "exec";
  std::int64_t ran_on = 0;
  Result<Value> outcome = co_await calls_->call(lease_id, key, std::move(spec), std::move(postponed), cancel, ran_on);
  if (!outcome)
    if (const Error* why = cancelled(id)) co_return *why;
  bool ended_well = outcome.ok();
  store::Journal::Write write;
  bool well = ended_well && (!program || (!outcome->integer("code") && !outcome->integer("signal")));
  if (well && !setup.is_null() && !calls_->borrowed(lease_id)) write = calls_->setup_write(lease_id, setup, ran_on);
  outcome = co_await complete_setup(std::move(slot), std::move(outcome), std::move(write));
  // The agent keeps the result until the journal has it.
  if (outcome.ok() == ended_well) calls_->forget(lease_id, key, "recorded", false);
  co_return outcome;
}

// Moves files (stage, get). The entry's arguments are the lease, source, destination and options.
Async<Value> RunImpl::transfer(FiberId id, const char* verb, Transfer how, std::string lease_id, std::string from,
                               std::string to, Value options, std::string source) {
  if (!leases_) co_return no_leases(config_);
  Value identity;
  Value plain = options;
  if (plain.as_object()) plain.as_object()->erase("sim");
  identity.set("lease", recorded_as(lease_id)).set("from", from).set("to", to).set("options", std::move(plain));
  Operation op{verb, to, std::move(identity), std::move(source)};
  RILLE_CO_TRY(Admitted slot, co_await admit(id, std::move(op)));
  if (slot.recorded) co_return std::move(*slot.recorded);
  record_start(slot);
  Result<Value> outcome = co_await (calls_.get()->*how)(lease_id, from, to, options, token(*slot.fiber));
  if (!outcome)
    if (const Error* why = cancelled(id)) co_return *why;
  store::Journal::Write setup;
  if (outcome && how == &Calls::stage) {  // the staged files are needed on the lease's next machine too
    if (!calls_->borrowed(lease_id))
      setup = calls_->setup_write(lease_id, Calls::setup_of(from, to, options), outcome->integer("generation"));
    outcome->as_object()->erase("generation");
  }
  co_return co_await complete_setup(std::move(slot), std::move(outcome), std::move(setup));
}

// Records the outcome and the setup row in one transaction. A session has no record: only the setup row is written.
Async<Value> RunImpl::complete_setup(Admitted slot, Result<Value> outcome, store::Journal::Write setup) {
  if (setup && config_.mode != Mode::durable) RILLE_CO_CHECK(co_await journal_->commit(std::move(setup), fence()));
  co_return co_await complete(std::move(slot), std::move(outcome), std::move(setup));
}

Async<Value> RunImpl::replace(FiberId id, std::string lease_id, Value options, std::string source) {
  if (!leases_) co_return no_leases(config_);
  Value identity;
  identity.set("lease", recorded_as(lease_id)).set("options", options);
  Operation op{"replace", "replace", std::move(identity), std::move(source)};
  Live live = [=, this](CancelToken token) -> Async<Value> {
    RILLE_CO_CHECK(calls_->check_own(lease_id, "box:replace"));
    RILLE_CO_TRY(LeaseView now, co_await calls_->replace(lease_id, options, "asked for", token));
    co_return Value().set("generation", now.generation);
  };
  co_return co_await recorded(id, std::move(op), std::move(live));
}

Async<Value> RunImpl::resize(FiberId id, std::string lease_id, Value options, std::string source) {
  if (!leases_) co_return no_leases(config_);
  Value identity;
  identity.set("lease", recorded_as(lease_id)).set("options", options);
  Operation op{"resize", "resize", std::move(identity), std::move(source)};
  Live live = [=, this](CancelToken token) -> Async<Value> {
    RILLE_CO_CHECK(calls_->check_own(lease_id, "box:resize"));
    RILLE_CO_TRY(LeaseView now, co_await calls_->resize(lease_id, options, token));
    co_return Value().set("machine", now.machine_id);
  };
  co_return co_await recorded(id, std::move(op), std::move(live));
}

Async<Value> RunImpl::preempting(FiberId id, std::string lease_id, std::string source) {
  if (!leases_) co_return no_leases(config_);
  Operation op{"preempting", "preempting", Value().set("lease", recorded_as(lease_id)), std::move(source)};
  Live live = [=, this](CancelToken token) { return calls_->preempting(lease_id, token); };
  co_return co_await recorded(id, std::move(op), std::move(live));
}

// The leases, and after them the volumes of those that are instances: a volume must not end before its instance. If a
// row cannot be read, the release of its volumes fails, as they are in use.
std::vector<std::string> RunImpl::with_volumes(std::vector<std::string> leases) const {
  for (std::size_t i = leases_ ? leases.size() : 0; i-- > 0;) {
    const Result<std::optional<lease::Lease>> row = leases_->find(leases[i]);
    if (!row || !*row) continue;
    for (const provider::Mount& m : provider::mounts_in((*row)->request)) leases.push_back(m.lease);
  }
  return leases;
}

void RunImpl::keep_lease(FiberId id, const std::string& lease_id, ScopeId keeper) {
  ScopeRecord* to = nullptr;
  for (ScopeRecord* s = fiber(id).scope; s; s = s->parent)
    if (s->id == keeper && !s->shielded) to = s;
  if (!to) return;
  std::vector<std::string> moving = with_volumes(std::vector<std::string>(1, lease_id));
  std::reverse(moving.begin(), moving.end());  // volumes first, as they are released last
  for (const std::string& lease : moving)
    for (ScopeRecord* s = fiber(id).scope; s != to; s = s->parent)
      if (std::erase(s->leases, lease) > 0) to->leases.push_back(lease);
}

Result<Value> RunImpl::standing(const std::string& lease_id) const {
  if (!leases_) return no_leases(config_);
  return calls_->standing(lease_id);
}

Async<Value> RunImpl::telemetry(FiberId id, std::vector<std::string> lease_ids, std::string source) {
  if (!leases_) co_return no_leases(config_);
  Value::Array identity;
  for (const std::string& lease : lease_ids) identity.push_back(recorded_as(lease));
  Operation op{"telemetry", "telemetry", Value(std::move(identity)), std::move(source)};
  Live live = [=, this](CancelToken token) { return calls_->telemetry(lease_ids, token); };
  co_return co_await recorded(id, std::move(op), std::move(live));
}

Async<Value> RunImpl::stage(FiberId id, std::string lease_id, std::string from, std::string to, Value options,
                            std::string source) {
  return transfer(id, "stage", &Calls::stage, std::move(lease_id), std::move(from), std::move(to), std::move(options),
                  std::move(source));
}

Async<Value> RunImpl::get(FiberId id, std::string lease_id, std::string from, std::string to, Value options,
                          std::string source) {
  return transfer(id, "get", &Calls::get, std::move(lease_id), std::move(from), std::move(to), std::move(options),
                  std::move(source));
}

}  // namespace rille::engine
