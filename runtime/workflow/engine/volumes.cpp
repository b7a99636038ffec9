// rille.volume: a disk that outlives machines, as a durable operation. A kept volume becomes the home's once it is live
// (lease/volumes.hpp), and so no scope ends it; until then, and with keep = false, it is its scope's like a machine.
#include "runtime/workflow/lease/volumes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/lease_errors.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {
constexpr int busy_looks_max = 60;  // how often a volume that another fiber or process makes or deletes is looked at
constexpr std::int64_t busy_pause_ms = 1'000;

Error busy(const lease::Lease& known) {
  Error e =
      make_error(ErrorKind::state,
                 fmt::format("the volume '{}' ({}) of run {} is {}", known.name, known.id, known.run, known.state),
                 "try again when that is over: `rille volume ls`");
  e.code = "volume_busy";
  e.resource = known.id;
  return e;
}

// A volume with keep = false ends with the scope that made it, so no other scope and no other run gets it.
Error of_another_scope(const lease::Lease& known) {
  Error e = make_error(
      ErrorKind::state,
      fmt::format("the volume '{}' ({}) of run {} ends with the scope that made it", known.name, known.id, known.run),
      "use another name, or hand on the volume that rille.volume returned there");
  e.code = "name_taken";
  e.resource = known.id;
  return e;
}
// Whether the volume's deletion has failed or was interrupted. Its scope tries again only at the scope's end, and a
// script that asks for the name may be inside that scope, so rille.volume goes on with the deletion.
bool is_stuck(const lease::Lease& known, bool waited) {
  return known.state == "releasing" && (waited || !known.error.empty());
}
}  // namespace

// The end of the volume's scope could not delete it: ends the machines that could not be ended then, and deletes it.
Async<> Calls::end_left_volume(std::string id) {
  RILLE_CO_TRY(const std::vector<lease::User> users, lease::users_of(run_.journal_->reader(), id, run_.now_us()));
  for (const lease::User& user : users) {
    RILLE_CO_TRY(const std::optional<lease::Lease> row, leases_->find(user.lease));
    if (row && row->state == "releasing") RILLE_CO_CHECK(co_await release(user.lease));
  }
  co_return co_await release(std::move(id));
}

Async<lease::Lease> Calls::volume(std::string key, std::string name, std::string scope, Value options,
                                  lease::LeaseLimit most, HolderOf holder_of, CancelToken token) {
  connector_->adapt_volume(options);
  const std::string own = lease::Manager::lease_id(run_.id(), key);
  lease::Acquire request;
  request.key = std::move(key);
  request.name = name;
  request.scope = std::move(scope);
  request.options = options;
  request.fence = run_.fence();
  request.most = std::move(most);
  request.volume = true;
  const auto life = run_.life_.watch();
  for (int looks = 1;; ++looks) {
    RILLE_CO_TRY(std::optional<lease::Lease> known, leases_->volume(name));
    if (known && known->id == own && known->state == "live") RILLE_CO_CHECK(lease::check_same(*known, options));
    if (!known || known->id == own) {
      lease::Manager::Event event = [this](const std::string& e, Value data) { run_.event(e, std::move(data)); };
      lease::Acquire again = request;
      Result<lease::Lease> made = co_await leases_->acquire(std::move(again), std::move(event), token);
      if (made || made.error().code != "volume_exists" || life.ended()) co_return made;
      continue;  // another one was quicker
    }
    const Holder holder = known->run == run_.id() ? holder_of(known->id) : Holder::another;
    const bool mine = lease::is_kept(*known) || holder == Holder::asker;
    const bool left = !mine && holder == Holder::none && known->state == "live";
    if (known->state != "releasing" && !left) {  // what is being deleted need not be as the options ask
      RILLE_CO_CHECK(lease::check_same(*known, options));
      if (!mine) co_return of_another_scope(*known);
      if (known->state == "live") co_return std::move(*known);
    }
    const bool last = looks >= busy_looks_max;
    if (left || is_stuck(*known, last && known->run == run_.id())) {
      const Result<> deleted = co_await end_left_volume(known->id);
      if (!deleted) co_return busy(*known).with_cause(deleted.error());
      if (life.ended()) co_return busy(*known);
      continue;
    }
    if (last) co_return busy(*known);
    RILLE_CO_CHECK(co_await sleep_for(run_.loop(), busy_pause_ms, token));
    if (life.ended()) co_return busy(*known);
  }
}

Result<VolumeView> Calls::volume_view(const std::string& lease_id) const {
  RILLE_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
  if (!l || !lease::is_volume(*l))
    return make_error(ErrorKind::invalid, fmt::format("there is no volume '{}'", lease_id),
                      "list them with `rille volume ls`");
  RILLE_TRY(const std::vector<lease::User> users, lease::users_of(run_.journal_->reader(), l->id, run_.now_us()));
  return VolumeView::of(*l, users.empty() ? "" : users.front().name, run_.now_us());
}

VolumeView VolumeView::of(const lease::Lease& l, std::string user, std::int64_t now_us) {
  const provider::VolumeTraits traits = provider::volume_in(l.request);
  VolumeView v;
  v.id = l.id;
  v.name = l.name;
  v.provider = l.provider;
  v.region = l.request.offer.region;
  v.volume = l.machine_id;
  v.kind = traits.kind;
  v.user = std::move(user);
  v.state = l.state == "live"        ? v.user.empty() ? "ready" : "attached"
            : l.state == "releasing" ? "deleting"
            : l.state == "released"  ? "deleted"
                                     : l.state;
  v.keep = traits.keep;
  v.shared = traits.shared;
  v.size_bytes = l.request.disk_bytes;
  const lease::Price price = l.price();
  if (price.currency == "USD") v.price_micros_per_hour = price.micros;
  v.shown_price = price.shown();
  v.spent_micros = l.spent_micros(now_us);
  return v;
}

Value VolumeView::to_value() const {
  Value v;
  v.set("id", id).set("name", name).set("provider", provider).set("region", region).set("volume", volume);
  v.set("kind", kind).set("state", state).set("keep", keep).set("shared", shared).set("size", size_bytes);
  if (!user.empty()) v.set("attached_to", user);
  if (price_micros_per_hour >= 0) v.set("price_per_hour", static_cast<double>(price_micros_per_hour) / 1e6);
  return v.set("spent", static_cast<double>(spent_micros) / 1e6);
}

// As rent() in instances.cpp: until the outcome is in the record, the scope holds the lease.
Async<VolumeView> RunImpl::volume(FiberId id, std::string name, Value options, std::string source) {
  if (!leases_) co_return no_leases(config_);
  FiberRecord& f = fiber(id);
  const std::string own = lease::Manager::lease_id(config_.id, next_key(f, name));
  Operation asked{"volume", name, options, std::move(source)};
  Result<Admitted> admitted = co_await admit(id, std::move(asked));
  if (!admitted) {
    if (cancelled(id)) owner(f).leases.push_back(own);
    co_return admitted.error();
  }
  Admitted slot = std::move(*admitted);
  Admitted end = ending(f, -2 - 2 * slot.pos, "end of volume " + name, slot.operation.source);
  owner(f).leases.push_back(own);
  Result<Value> outcome = Value();
  if (slot.recorded) {
    outcome = std::move(*slot.recorded);
  } else {
    record_start(slot);
    count_row(options.to_json().size());
    lease::LeaseLimit most(limits_.leases_max, limits_.leases_of);
    Calls::HolderOf holder = [this, &f](const std::string& lease) {
      const auto has = [&lease](const ScopeRecord& s) {
        return std::find(s.leases.begin(), s.leases.end(), lease) != s.leases.end();
      };
      if (has(owner(f))) return Calls::Holder::asker;
      const bool another = std::any_of(scopes_.begin(), scopes_.end(), [&](const auto& s) { return has(*s.second); });
      return another ? Calls::Holder::another : Calls::Holder::none;
    };
    Result<lease::Lease> made = co_await calls_->volume(slot.key, std::move(name), owner(f).name, std::move(options),
                                                        std::move(most), std::move(holder), token(f));
    if (made) outcome = Value().set("lease", made->id), alert_budgets();
    else if (const Error* why = cancelled(id)) co_return *why;
    else outcome = made.error();
    outcome = co_await complete(std::move(slot), std::move(outcome));
    if (const Error* why = cancelled(id)) co_return *why;
  }
  if (outcome) co_return calls_->volume_view(outcome->text("lease"));
  Error e = outcome.error();
  std::vector<std::string> one(1, own);
  Result<> settled = co_await release_all(f, std::move(one), std::move(end));
  if (settled) std::erase(owner(f).leases, own);
  else e = unsettled(std::move(e), settled.error());
  if (const Error* why = cancelled(id)) co_return *why;
  co_return e;
}

Result<VolumeView> RunImpl::volume_view(const std::string& lease_id) const {
  if (!leases_) return no_leases(config_);
  return calls_->volume_view(lease_id);
}

}  // namespace rille::engine
