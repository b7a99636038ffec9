// Replaces a lease's machine: the lease's name, scope and expiry stay, its generation is incremented. The row's column
// `replacing` is set before the old machine ends and cleared when the new one is live, so that after a crash a runner
// can continue the replacement, and a release or the reaper can end what exists.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/money.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/lease/budget.hpp"
#include "runtime/workflow/lease/expiry.hpp"
#include "runtime/workflow/lease/refused.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/lease/volumes.hpp"
#include "runtime/workflow/provider/clocked.hpp"
#include "runtime/workflow/provider/rearm.hpp"

namespace rille::lease {

namespace {

constexpr const char* asked_for = "asked for";  // the reason if the script replaces a healthy machine
constexpr int brief_max = 5;                    // most machines in a row that may be lost soon after their creation
constexpr std::int64_t brief_us = 120'000'000;  // a machine lost before this age counts as lost soon
constexpr int never_used_max = 3;               // most older machines in a row that may end without an answer

Error not_replaceable(const Lease& l) {
  return make_error(ErrorKind::state, fmt::format("lease '{}' is {}", l.name, l.state),
                    "rent again under another name");
}

// Fails if the lease's last machines were lost at once or never became usable: another machine would only cost money.
// Machines whose replacement the script asked for may simply never have been used.
Result<> worth_another(const Lease& l) {
  int n = 0, never_used = 0;
  for (auto t = l.tenures.rbegin(); t != l.tenures.rend() && t->to_us; ++t, ++n) {
    if (t->to_us - t->from_us < brief_us) continue;
    if (t->ready_us || l.replacing == asked_for) break;
    ++never_used;
  }
  std::string why;
  if (never_used >= never_used_max)
    why = fmt::format("none of {} machines in a row could be used; the last: {}", never_used, l.replacing);
  else if (n >= brief_max && !never_used)
    why = fmt::format("{} machines in a row were lost within {}", brief_max, format_duration_ms(brief_us / 1000));
  else if (n >= brief_max)
    why = fmt::format("{} machines in a row were lost at once or could not be used; the last: {}", n, l.replacing);
  if (why.empty()) return {};
  return make_error(ErrorKind::state, fmt::format("'{}' gets no other machine: {}", l.name, why),
                    never_used ? "check that this machine can connect to the provider's machines (firewall, port 22) "
                                 "and that their image starts an SSH server; then rent under another name"
                               : "see why with `rille logs`; rent under another name to try again");
}

}  // namespace

bool Manager::replaces(const Lease& lease) {
  Result<Terms> terms = read_terms(lease.options);
  return terms && terms->replace;
}

std::int64_t Manager::look_every_ms(const Lease& lease) const {
  Result<provider::Provider*> provider = registry_.find(lease.provider);
  return provider ? (*provider)->traits().look_every_ms : 0;
}

Async<Lease> Manager::replace(Replace request, Event event, CancelToken token) {
  const auto renting = std::make_unique<Renting>();
  renting->event = std::move(event);
  renting->token = std::move(token);
  RILLE_CO_CHECK(co_await renew(*renting, std::move(request)));
  co_return std::move(*renting->lease);
}

Async<> Manager::renew(Renting& renting, Replace request) {
  RILLE_CO_TRY(const Shared lease, known(request.id));
  if (!lease)
    co_return make_error(ErrorKind::invalid, fmt::format("there is no lease '{}'", request.id),
                         "list them with `rille leases --all`");
  renting.lease = lease;
  if (lease->state == "live" && lease->generation > request.generation) co_return success();  // it was replaced already
  if (lease->state != "live" && lease->replacing.empty()) co_return not_replaceable(*lease);
  const bool ever_lived = lease->ever_lived();  // false for the lease of a forked run, which had no machine yet
  if (ever_lived && now_us() >= lease->expires_us) co_return ttl_over(*lease);
  Acquire& again = renting.request;
  again.options = lease->options;
  if (const Value::Object* other = request.options.as_object(); other && !other->empty()) {
    for (const auto& [key, value] : *other) again.options.set(key, value);
    // Check the options before the machine is ended.
    RILLE_CO_CHECK(mounts_of(journal_.reader(), again.options));
    RILLE_CO_TRY(const Value options, placed(journal_.reader(), again.options));
    RILLE_CO_TRY(const Wish wish, queries_.wish_of(options));
    for (const std::string& name : wish->query.providers) RILLE_CO_CHECK(registry_.find(name));
  }
  if (lease->state == "live") {
    lease->replacing = request.why.empty() ? asked_for : request.why;
    lease->state = "releasing";
    RILLE_CO_CHECK(co_await save(lease, request.fence));
    renting.event("replacing", lease->to_value(now_us()));
  }
  if (lease->state == "releasing") RILLE_CO_CHECK(co_await end_for_another(lease, request.fence));
  RILLE_CO_CHECK(worth_another(*lease));
  again.name = lease->name;
  again.scope = lease->scope;
  again.fence = request.fence;
  again.most = request.most;
  if (lease->state == "released" || lease->state == "intent") {
    if (ever_lived) {  // the region and the offer of the lost machine are tried late
      renting.refused.regions.emplace(lease->provider, lease->request.offer.region);
      renting.refused.last.emplace(lease->provider, lease->request.offer.id);
      if (!request.options.as_object() || request.options.as_object()->empty())
        renting.refused.first_micros = std::max<Micros>(0, lease->price_micros_per_hour);
    }
    RILLE_CO_CHECK(co_await plan(renting));
    renting.event("replace", renting.lease->to_value(now_us()));
  }
  co_return co_await create(renting);
}

// Ends the machine of a lease that is `releasing` and will get another one.
Async<> Manager::end_for_another(Shared lease, store::Fence fence) {
  const Result<std::string> gone = co_await end_machine(lease);
  if (!gone) {
    lease->error = gone.error().message;
    RILLE_CO_CHECK(co_await save(lease, fence));
    co_return release_failed(*lease).with_cause(gone.error()).with_retry();
  }
  lease->state = "released";
  lease->error.clear();
  lease->released_us = now_us();
  RILLE_CO_CHECK(co_await save(lease, fence));
  // Read the tenures again: they now include the end that was just written.
  RILLE_CO_TRY(lease->tenures, read_tenures(journal_.reader(), lease->number));
  co_return success();
}

// Makes the home the owner of a run's lease, so that the lease outlives the run. The lease can only end sooner than its
// expiry, because the reserved money and the time at which the provider ends the machine are set for the expiry. If the
// lease is detached twice, the earlier end counts. If the provider can change the time at which it ends the machine,
// that time is set to the new end and stored in the request, and `rille leases` shows it.
Async<Lease> Manager::detach(std::string id, std::int64_t ttl_ms, store::Fence fence) {
  RILLE_CO_TRY(const Shared lease, known(id));
  if (!lease)
    co_return make_error(ErrorKind::invalid, fmt::format("there is no lease '{}'", id),
                         "list them with `rille leases --all`");
  if (lease->state != "live") co_return not_replaceable(*lease);
  if (ttl_ms > (lease->expires_us - lease->created_us) / 1000 && !lease->detached) {
    Error e = make_error(ErrorKind::invalid,
                         fmt::format("'{}' cannot be detached for {}: it was rented until {}", lease->name,
                                     format_duration_ms(ttl_ms), format_utc(lease->expires_us)),
                         "rent it with a longer ttl, or detach it for less");
    co_return e;
  }
  for (const provider::Mount& m : provider::mounts_in(lease->request)) {
    RILLE_CO_TRY(const Shared volume, known(m.lease));
    if (volume && !is_kept(*volume))
      co_return make_error(ErrorKind::invalid,
                           fmt::format("'{}' cannot be detached: its volume '{}' ends with a scope of the run",
                                       lease->name, volume->name),
                           "make that volume without keep = false");
  }
  lease->detached = true;
  lease->expires_us = std::min(lease->expires_us, now_us() + ttl_ms * 1000);
  RILLE_CO_CHECK(co_await save(lease, fence));
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease->provider));
  const std::int64_t end_us = lease->expires_us + provider::skew_of(provider);
  auto* const armed = dynamic_cast<provider::Rearmed*>(provider);
  if (!armed || end_us >= lease->request.expires_wall_us) co_return std::move(*lease);
  const Result<> set = co_await armed->set_end(lease->machine_id, end_us, {});
  if (!set) co_return std::move(*lease);  // the provider still ends the machine at the old expiry
  lease->request.expires_wall_us = end_us;
  store::Journal::Write write = [lease](store::Db& db) { return write_switch(db, *lease); };
  RILLE_CO_CHECK(co_await journal_.commit(std::move(write), std::move(fence)));
  co_return std::move(*lease);
}

}  // namespace rille::lease
