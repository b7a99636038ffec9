// Leases that a script uses without having rented them: rille.rent with the option `adopt`. Such a lease is borrowed:
// its run, or for a detached lease the home, ends it, replaces its machine and pays for it. Calls on it have the epoch
// of the lease's own run, so that neither runner fences the other.
#include <fmt/format.h>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/lease/terms.hpp"
#include "runtime/workflow/lease/volumes.hpp"
#include "runtime/workflow/provider/type_of.hpp"

namespace rille::engine {

namespace {

// A script may rent thousands of machines in a row; the names of detached leases are read again after this time.
constexpr std::int64_t names_hold_ns = 1'000'000'000;

std::string machine_of(const lease::Lease& l) {
  return fmt::format("{} {} at {} per hour", l.provider, l.machine_id, l.price().shown());
}

Error name_detached(const lease::Lease& l) {
  Error e =
      make_error(ErrorKind::state,
                 fmt::format("'{}' is rented already: run {} has detached it until {} ({})", l.name, l.run,
                             format_utc(l.expires_us), machine_of(l)),
                 fmt::format("use it with rille.rent(\"{0}\", {{ adopt = true }}), end it with `rille release {1}`, "
                             "or choose another name",
                             l.name, l.id))
          .with_resource(l.id);
  e.code = "name_detached";
  return e;
}

Error several(const std::string& name, const std::vector<lease::Lease>& all) {
  std::string list;
  for (const lease::Lease& l : all) list += fmt::format("{}{} of run {}", list.empty() ? "" : ", ", l.id, l.run);
  return make_error(ErrorKind::state, fmt::format("{} leases are called '{}': {}", all.size(), name, list),
                    fmt::format("name one by its id: adopt = \"{}\"", all.front().id));
}

// Whether the lease's machine is one that the options ask for. Its price and place in time were settled when it was
// rented.
Result<> check_fits(const lease::Lease& l, const Value& options) {
  RILLE_TRY(lease::Terms terms, lease::read_terms(options));
  terms.query.max_price_micros_per_hour.reset();
  const provider::Offer& offer = l.request.offer;
  if (terms.query.accepts_provider(offer.provider) && offer.matches(terms.query)) return {};
  Error e =
      make_error(
          ErrorKind::state,
          fmt::format("'{}' of run {} is {} in {} ({}), which does not fit the options of the rent", l.name, l.run,
                      provider::type_of(offer), offer.region.empty() ? "one place" : offer.region, machine_of(l)),
          fmt::format("leave those options out, choose another name, or end it with `rille release {}`", l.id))
          .with_resource(l.id);
  e.code = "adopt_differs";
  return e;
}

}  // namespace

Result<> Calls::none_detached(const std::string& name) {
  const std::int64_t now_ns = run_.loop().clock().monotonic_ns();
  if (detached_read_ns_ < 0 || now_ns - detached_read_ns_ >= names_hold_ns) {
    RILLE_TRY(const std::vector<lease::Lease> all,
              lease::read_leases(run_.journal_->reader(), "WHERE open IS NOT NULL AND detached<>0", {}));
    detached_.clear();
    for (const lease::Lease& l : all)
      if (!lease::is_volume(l)) detached_.insert_or_assign(l.name, l.id);
    detached_read_ns_ = now_ns;
  }
  const auto known = detached_.find(name);
  if (known == detached_.end()) return {};
  RILLE_TRY(const std::optional<lease::Lease> l, leases_->find(known->second));
  if (!l || l->state != "live" || l->expires_us <= run_.now_us()) return {};
  return name_detached(*l);
}

Result<std::optional<lease::Lease>> Calls::adoptable(const std::string& own_id, const std::string& name,
                                                     const Value& options) {
  const std::optional<lease::Lease> nothing;
  RILLE_TRY(const std::optional<lease::Lease> begun, leases_->find(own_id));
  if (begun) return nothing;  // an earlier process began to rent
  const Value& adopt = options["adopt"];
  const std::string* id = adopt.as_string();
  if (!adopt.is_null())
    if (const Result<lease::Terms> terms = lease::read_terms(options); !terms) return terms.error();
  if (!id && !(adopt.as_bool() && *adopt.as_bool())) {
    RILLE_CHECK(none_detached(name));
    return nothing;
  }
  RILLE_TRY(std::vector<lease::Lease> all,
            lease::read_leases(run_.journal_->reader(), "WHERE open IS NOT NULL AND name=? ORDER BY id", {name}));
  std::erase_if(all, [&](const lease::Lease& l) {
    return lease::is_volume(l) || l.state != "live" || l.expires_us <= run_.now_us() || (id && l.id != *id);
  });
  if (id && all.empty())
    return make_error(ErrorKind::state, fmt::format("no live lease '{}' has the id {}", name, *id),
                      "list the leases with `rille leases`");
  if (all.empty()) return nothing;
  if (all.size() > 1) return several(name, all);
  if (connector_->real_time()) RILLE_CHECK(check_fits(all.front(), options));
  return std::optional<lease::Lease>(std::move(all.front()));
}

void Calls::borrow(const lease::Lease& l) {
  if (l.run != run_.id()) borrowed_.insert(l.id);
}

std::int64_t Calls::epoch_for(const lease::Lease& l) const {
  return borrowed(l.id) ? l.seen.epoch : run_.fence().epoch;
}

Result<> Calls::check_own(const std::string& lease_id, const char* verb, bool detached_too) const {
  if (!borrowed(lease_id)) return {};
  RILLE_TRY(const std::optional<lease::Lease> l, leases_->find(lease_id));
  if (!l || (l->detached && detached_too)) return {};
  Error e = make_error(ErrorKind::state,
                       fmt::format("{}: '{}' belongs to run {}, and is only used here", verb, l->name, l->run),
                       fmt::format("do that in its own run; `rille release {}` ends it", l->id))
                .with_resource(l->id);
  e.code = "borrowed";
  return e;
}

// Records what a rent found under its name: the lease that the script uses, or the error.
Async<LeaseView> RunImpl::adopt(Admitted slot, Result<std::optional<lease::Lease>> found) {
  const FiberId id = slot.fiber->id;
  record_start(slot);
  Result<Value> outcome = Value();
  if (!found) {
    outcome = found.error();
  } else {
    const lease::Lease& l = **found;
    calls_->borrow(l);
    event("adopted", l.to_value(now_us()));
    outcome = Value().set("lease", l.id).set("adopted", true);
  }
  outcome = co_await complete(std::move(slot), std::move(outcome));
  if (const Error* why = cancelled(id)) co_return *why;
  if (!outcome) co_return outcome.error();
  co_return lease(outcome->text("lease"));
}

}  // namespace rille::engine
