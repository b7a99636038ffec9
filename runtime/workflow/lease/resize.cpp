// Changes a lease's machine to another type. Before the provider is asked, the new type (`change`, state `resizing`)
// and the money for it are written to the row, where they stay until the outcome is known. So after a crash the next
// process can ask again (a machine that already has the type is not changed). docs/design/leases.md
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/budget.hpp"
#include "runtime/workflow/lease/refused.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/clocked.hpp"
#include "runtime/workflow/provider/lifetime.hpp"
#include "runtime/workflow/provider/type_of.hpp"

namespace rille::lease {

namespace {

constexpr int attempts_max = 5, looks_max = 5;

using provider::Machine;
using provider::MachineState;
using provider::Offer;

// Options that define the machine type; a resize replaces these options of the rent.
const std::vector<std::string>& shape() {
  static const std::vector<std::string> names = {"gpu",    "count",        "gpu_memory",   "gpu_vendor", "vcpus",
                                                 "memory", "interconnect", "network_gbps", "disk_kind"};
  return names;
}

Result<> check_options(const Value& asked) {
  std::vector<std::string> all = shape();
  all.insert(all.end(), {"type", "max_price", "price"});
  bool any = false;
  if (const Value::Object* o = asked.as_object())
    for (const auto& [key, value] : *o) {
      if (!among(all, key)) {
        const std::string near = did_you_mean(key, all);
        return make_error(
            ErrorKind::invalid, fmt::format("resize has no option '{}'", key),
            near.empty() ? fmt::format("options: {}", fmt::join(all, " ")) : fmt::format("did you mean {}?", near));
      }
      if (key == "type" && (!value.as_string() || value.as_string()->empty()))
        return make_error(ErrorKind::invalid,
                          fmt::format("type = {}: expected the name of a machine type", value.to_json()),
                          "use the provider's name of the type, as in type = \"p4d.24xlarge\"");
      any = any || (key != "max_price" && key != "price");
    }
  if (any) return {};
  return make_error(ErrorKind::invalid, "box:resize needs the new size of the machine",
                    "gpu = \"A100:8\", or type = \"p4d.24xlarge\"");
}

// The lease's options after a resize: the options of the rent, overridden by those of the resize.
Value merged(const Value& rented, const Value& asked) {
  Value out = Value::Object{};
  if (const Value::Object* o = rented.as_object())
    for (const auto& [key, value] : *o)
      if (!among(shape(), key) && key != "price") out.set(key, value);
  for (const auto& [key, value] : *asked.as_object())
    if (key != "type") out.set(key, value);
  return out;
}

// Restricts the query to the machine's place and market: the disk cannot move, and a spot machine stays spot.
Value here(Value options, const Lease& lease) {
  for (const char* name : {"regions", "providers"}) options.as_object()->erase(name);
  options.set("provider", lease.provider).set("spot", lease.request.offer.spot);
  if (lease.request.offer.region.empty()) options.as_object()->erase("region");
  else options.set("region", lease.request.offer.region);
  return options;
}

bool fits(const Offer& o, const provider::OfferQuery& query, const std::string& type, const Lease& lease) {
  return o.region == lease.request.offer.region && (type.empty() || provider::type_of(o) == type) && o.matches(query);
}

Error not_resizable(const Lease& l) {
  return make_error(ErrorKind::state, fmt::format("lease '{}' is {}", l.name, l.state),
                    "its scope has ended, or it was released elsewhere: rent again under another name");
}

Error machine_gone(const Lease& l) {
  Error e = make_error(ErrorKind::state, fmt::format("the machine of '{}' ({}) is gone", l.name, l.machine_id),
                       "it was ended outside this run, and what it held is lost; rent another one");
  e.code = "machine_lost";
  e.resource = l.id;
  return e;
}

Error no_such_type(const Lease& l, const provider::OfferQuery& query, const std::string& type,
                   const std::vector<std::string>& types) {
  const std::string cap =
      query.max_price_micros_per_hour ? ", max_price = " + format_dollars(*query.max_price_micros_per_hour) : "";
  std::string near = type.empty() ? "" : did_you_mean(type, types);
  std::string hint = "see what there is with `rille offers`, in the machine's region";
  if (!near.empty()) hint = fmt::format("did you mean type = \"{}\"?", near);
  else if (!type.empty())
    hint +=
        "; a provider with many types lists the smallest that fit: say gpu, vcpus or memory, "
        "too";
  const std::string gpu = query.count > 0 ? fmt::format("{}:{}", query.gpu, query.count) : query.gpu;
  return make_error(ErrorKind::capacity,
                    fmt::format("{} has no type for {} = \"{}\" in {}{} to which '{}' could be changed", l.provider,
                                type.empty() ? "gpu" : "type", type.empty() ? query.shown_gpu() : type,
                                l.request.offer.region.empty() ? "its region" : l.request.offer.region, cap, l.name),
                    hint);
}

}  // namespace

Value Change::to_value() const {
  Value v;
  v.set("offer", offer.to_value()).set("price_micros_per_hour", price_micros_per_hour);
  v.set("cap_micros_per_hour", cap_micros_per_hour).set("from_us", from_us).set("options", options);
  return v.set("reserved_before", reserved_before).set("reserved_after", reserved_after);
}

Result<Change> Change::from_value(const Value& v) {
  Change out;
  RILLE_TRY(out.offer, Offer::from_value(v["offer"]));
  out.price_micros_per_hour = v.integer("price_micros_per_hour", provider::price_unknown);
  out.cap_micros_per_hour = v.integer("cap_micros_per_hour", provider::price_unknown);
  out.from_us = v.integer("from_us");
  out.options = v["options"];
  out.reserved_before = v.integer("reserved_before");
  out.reserved_after = v.integer("reserved_after");
  return out;
}

Async<Lease> Manager::resize(Resize request, Event event, CancelToken token) {
  RILLE_CO_TRY(std::optional<Lease> found, find(request.id));
  if (!found)
    co_return make_error(ErrorKind::invalid, fmt::format("there is no lease '{}'", request.id),
                         "list them with `rille leases --all`");
  Lease lease = std::move(*found);
  if (lease.state == "resizing" && lease.change) {
    RILLE_CO_TRY(lease, co_await carry_out(std::move(lease), true, request.fence, event, token));
  } else if (lease.state != "live") {
    co_return not_resizable(lease);
  }
  if (request.options.is_null()) co_return lease;
  store::Fence fence = request.fence;
  RILLE_CO_TRY(lease, co_await plan_change(std::move(lease), std::move(request), token));
  if (lease.state != "resizing") co_return lease;
  event("resizing", lease.to_value(now_us()));
  co_return co_await carry_out(std::move(lease), false, std::move(fence), std::move(event), std::move(token));
}

// Saves the lease and the changes that `ledger` makes, in one transaction. If the lease was detached meanwhile, it
// stays detached.
Async<> Manager::save_with(Lease& lease, store::Fence fence, Ledger ledger) {
  auto row = std::make_shared<Lease>(lease), kept = std::make_shared<Lease>();
  store::Journal::Write write = [row, kept, ledger = std::move(ledger)](store::Db& db) -> Result<> {
    Lease l = *row;  // a fresh copy, because the journal may run this write twice
    RILLE_CHECK(
        db.query("SELECT detached,expires_us FROM leases WHERE number=?", {l.number}, [&l](const store::Row& now) {
          l.detached = now.integer(0) != 0;
          l.expires_us = now.integer(1);
        }));
    RILLE_TRY(l.tenures, read_tenures(db, l.number));
    RILLE_CHECK(ledger(db, l));
    RILLE_CHECK(write_lease(db, l));
    RILLE_TRY(l.tenures, read_tenures(db, l.number));
    *kept = std::move(l);
    return {};
  };
  RILLE_CO_CHECK(co_await journal_.commit(std::move(write), std::move(fence)));
  lease = std::move(*kept);
  lease.seen.state = lease.state;
  lease.seen.generation = lease.generation;
  if (hooks_.written) RILLE_CO_CHECK(co_await hooks_.written());
  co_return success();
}

// Returns the lease unchanged if its machine already fits the options; otherwise sets `change` and writes the row.
Async<Lease> Manager::plan_change(Lease lease, Resize request, CancelToken token) {
  RILLE_CO_CHECK(check_options(request.options));
  Value options = merged(lease.options, request.options);
  const std::string type = request.options.text("type");
  RILLE_CO_TRY(const Terms terms, queries_.terms_of(here(options, lease)));
  provider::OfferQuery any_price = terms.query;
  any_price.max_price_micros_per_hour.reset();
  if (fits(lease.request.offer, any_price, type, lease)) co_return lease;
  RILLE_CO_TRY(const Offer offer, co_await choose_type(lease, terms, type, token));
  if (std::optional<Error> why = queries_.gpu_unusable(terms, offer)) co_return std::move(*why);
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));

  if (options["gpu"].is_null()) options.set("gpu", offer.gpu.empty() ? "cpu" : offer.gpu);
  if (!type.empty() && offer.gpu_count > 0) options.set("count", offer.gpu_count);
  if (!type.empty() && offer.gpu_count == 0) options.set("vcpus", offer.vcpus).set("memory", offer.memory_bytes);
  if (request.may) RILLE_CO_CHECK(request.may());
  Change to;
  to.price_micros_per_hour = terms.price_of(offer);
  to.cap_micros_per_hour = terms.cap_of(offer, lease.disk_micros_per_hour);
  to.offer = offer;
  to.options = std::move(options);
  to.from_us = now_us();
  lease.change = std::move(to);
  lease.state = "resizing";
  const std::int64_t teardown_ms = provider->traits().teardown_ms, now = now_us();
  Ledger ledger = [teardown_ms, now](store::Db& db, Lease& l) -> Result<> {
    for (const Tenure& t : l.tenures)  // make from_us unique: it is part of the key of the table `segments`
      for (const Segment& s : t.segments) l.change->from_us = std::max(l.change->from_us, s.from_us + 1);
    RILLE_CHECK(reserve_change(db, l, teardown_ms, now));
    return record_change(db, l);
  };
  RILLE_CO_CHECK(co_await save_with(lease, std::move(request.fence), std::move(ledger)));
  co_return lease;
}

// Returns the best type that the provider can change this machine to. If there is none, asks the provider to resize the
// machine to its current type, so that a provider that cannot resize at all reports that.
Async<Offer> Manager::choose_type(Lease lease, Terms terms, std::string type, CancelToken token) {
  RILLE_CO_TRY(const std::vector<ProviderQueries::Asked> answers, co_await queries_.ask(terms.query, token));
  std::vector<Offer> found;
  std::vector<std::string> types;
  for (const ProviderQueries::Asked& asked : answers) {
    if (!asked.offers) co_return asked.offers.error();
    for (const Offer& o : *asked.offers) {
      types.push_back(provider::type_of(o));
      if (fits(o, terms.query, type, lease)) found.push_back(o);
    }
  }
  if (!found.empty()) {
    provider::sort_by_rank(found, terms.query);
    co_return found.front();
  }
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  RILLE_CO_TRY(const Machine now, co_await provider->describe(lease.machine_id, token));
  const std::string is = now.details.text("type", provider::type_of(lease.request.offer));
  const Result<Machine> left = co_await provider->resize(lease.machine_id, is, token);
  if (!left && provider::is_lack(left.error())) co_return left.error();
  co_return no_such_type(lease, terms.query, type, types);
}

// Asks the provider for the change until it answers or the attempts are used up. unanswered: the provider may have been
// asked before.
Async<Lease> Manager::carry_out(Lease lease, bool unanswered, store::Fence fence, Event event, CancelToken token) {
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  const std::string type = provider::type_of(lease.change->offer);
  for (int attempt = 1;; ++attempt) {
    Result<Machine> made = co_await provider->resize(lease.machine_id, type, token);
    if (const std::int64_t since_us = made ? provider::running_since_us(*made) : 0)
      provider::tell_running(*made, since_us - provider::skew_of(provider));  // converts to our clock, like describe()
    if (made && made->state != MachineState::gone)
      co_return co_await changed(std::move(lease), std::move(*made), std::move(fence), std::move(event));
    Error why = made ? machine_gone(lease) : made.error();
    const bool settled = made || is_definitive(why) || why.http_status == 404;
    unanswered = unanswered || !settled;
    if (settled || token.cancelled() || attempt >= attempts_max)
      co_return co_await look_after(std::move(lease), std::move(why), unanswered, std::move(fence), std::move(event));
    (void)co_await pause(std::clamp<std::int64_t>(why.retry_after_ms, 500LL << attempt, 30'000), token);
  }
}

// The change was refused or its outcome is unknown: finds out what the machine is now. Ignores cancellation. A stopped
// machine is started with its old type; if that fails, the row stays `resizing` with the error.
Async<Lease> Manager::look_after(Lease lease, Error why, bool unanswered, store::Fence fence, Event event) {
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  const std::string becomes = provider::type_of(lease.change->offer), was = provider::type_of(lease.request.offer);
  // Wait, because the provider's view of the machine may be older than the request.
  if (unanswered) RILLE_CO_CHECK(co_await pause(provider->traits().visibility_lag_ms));
  std::optional<Error> trouble;
  for (int look = 1; look <= looks_max; ++look) {
    if (look > 1) RILLE_CO_CHECK(co_await pause(std::min<std::int64_t>(500LL << look, 10'000)));
    Result<Machine> now = co_await describe(lease, {});
    if (!now) {
      trouble = now.error();
      continue;
    }
    const Error lost = machine_gone(lease);
    if (now->state == MachineState::gone)
      co_return co_await vanished(std::move(lease), lost, unanswered, std::move(fence), std::move(event));
    const bool runs = now->state == MachineState::live || now->state == MachineState::pending;
    if (runs && now->details.text("type") == becomes)
      co_return co_await changed(std::move(lease), std::move(*now), std::move(fence), std::move(event));
    if (runs) co_return co_await unchanged(std::move(lease), std::move(why), std::move(fence), std::move(event));
    // The machine is stopped or stopping: this starts it again with its old type.
    Result<Machine> back = co_await provider->resize(lease.machine_id, was, {});
    if (back && back->state != MachineState::gone)
      co_return co_await unchanged(std::move(lease), std::move(why), std::move(fence), std::move(event));
    if (!back) trouble = back.error();
    if (!back && back.error().http_status == 404)
      co_return co_await vanished(std::move(lease), lost, unanswered, std::move(fence), std::move(event));
  }
  lease.error =
      fmt::format("the change to {} failed, and the machine's present type is not known: {}", becomes, why.message);
  Ledger as_it_is = [](store::Db&, Lease&) -> Result<> { return {}; };
  RILLE_CO_CHECK(co_await save_with(lease, std::move(fence), std::move(as_it_is)));
  Error e = make_error(
      ErrorKind::state, fmt::format("the machine of '{}' ({}): {}", lease.name, lease.machine_id, lease.error),
      fmt::format(
          "the machine may be stopped but costs money; its next use tries again, and `rille release {}` ends it",
          lease.id));
  e.resource = lease.id;
  e.provider = lease.provider;
  co_return std::move(e).with_cause(trouble ? std::move(*trouble) : std::move(why));
}

Async<Lease> Manager::changed(Lease lease, Machine machine, store::Fence fence, Event event) {
  const Change to = std::move(*lease.change);
  const std::string was = provider::type_of(lease.request.offer);
  lease.change.reset();
  lease.state = "live";
  lease.error.clear();
  lease.request.offer = to.offer;
  lease.price_micros_per_hour = to.price_micros_per_hour;
  lease.cap_micros_per_hour = to.cap_micros_per_hour;
  lease.reserved_micros = to.reserved_after;
  lease.options = to.options;
  // If the provider reports the restart time (in seconds), the old type had stopped by then.
  std::int64_t since_us = provider::running_since_us(machine);
  if (since_us < to.from_us || since_us > now_us()) since_us = 0;
  const std::int64_t until_us = since_us ? std::min(now_us(), since_us + 1'000'000) : now_us();
  lease.machine = std::move(machine);
  Ledger ledger = [from = to.from_us, until_us, since_us](store::Db& db, Lease& l) -> Result<> {
    RILLE_CHECK(record_changed(db, l, from, until_us));
    return since_us ? record_restarted(db, l, from, since_us) : success();
  };
  RILLE_CO_CHECK(co_await save_with(lease, std::move(fence), std::move(ledger)));
  event("resized", lease.to_value(now_us()).set("was", was).set("type", provider::type_of(to.offer)));
  co_return lease;
}

// The machine is gone. If it is unknown whether its type had changed before, both prices count until its end.
Async<Lease> Manager::vanished(Lease lease, Error why, bool unanswered, store::Fence fence, Event event) {
  if (!unanswered) co_return co_await unchanged(std::move(lease), std::move(why), std::move(fence), std::move(event));
  lease.reserved_micros = std::max(lease.change->reserved_before, lease.change->reserved_after);
  lease.change.reset();
  lease.state = "live";
  lease.error.clear();
  Ledger as_it_is = [](store::Db&, Lease&) -> Result<> { return {}; };
  RILLE_CO_CHECK(co_await save_with(lease, std::move(fence), std::move(as_it_is)));
  event("not_resized", lease.to_value(now_us()).set("why", why.message));
  co_return why;
}

Async<Lease> Manager::unchanged(Lease lease, Error why, store::Fence fence, Event event) {
  const Change to = std::move(*lease.change);
  lease.change.reset();
  lease.state = "live";
  lease.error.clear();
  lease.reserved_micros = to.reserved_before;
  Ledger ledger = [from = to.from_us](store::Db& db, Lease& l) { return record_unchanged(db, l, from); };
  RILLE_CO_CHECK(co_await save_with(lease, std::move(fence), std::move(ledger)));
  event("not_resized", lease.to_value(now_us()).set("why", why.message));
  co_return why;
}

}  // namespace rille::lease
