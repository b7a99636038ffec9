#include "runtime/workflow/provider/sim/sim.hpp"

#include <fmt/format.h>

namespace rille::provider::sim {

namespace {

class Sim final : public Provider, public VolumeSeller {
 public:
  Sim(Loop& loop, Cloud& cloud, Gate gate) : loop_(loop), cloud_(cloud), gate_(std::move(gate)) {
    const Options& o = cloud.options();
    traits_.token_lifetime_ms = o.token_lifetime_ms;
    traits_.create_timeout_ms = o.create_timeout_ms;
    traits_.visibility_lag_ms = o.visibility_lag_ms;
    traits_.billing_unit_s = o.billing_unit_s;
    traits_.billing_minimum_s = o.billing_minimum_s;
    traits_.look_every_ms = o.look_every_ms;
    traits_.dead_man = DeadMan::provider;
    traits_.spot_notice_s = o.without_notice < 1 ? o.spot_notice_ms / 1000 : 0;
  }
  const std::string& name() const override { return name_; }
  const Traits& traits() const override { return traits_; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    RILLE_CO_TRY(std::uint64_t call, co_await arrive("offers", token));
    std::vector<Offer> found = cloud_.offers(query);
    RILLE_CO_CHECK(co_await answer("offers", call, token));
    co_return found;
  }

  const std::vector<VolumeKind>& volume_kinds() const override {
    static const std::vector<VolumeKind> kinds{{"ssd"}, {"shared", true}};
    return kinds;
  }
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken token) override {
    RILLE_CO_TRY(std::uint64_t call, co_await arrive("volume offers", token));
    std::vector<Offer> found = cloud_.volume_offers(wish);
    RILLE_CO_CHECK(co_await answer("volume offers", call, token));
    co_return found;
  }

  Async<Machine> create(CreateRequest request, CancelToken token) override {
    RILLE_CO_TRY(std::uint64_t call, co_await arrive("create", token));
    const Dice& dice = cloud_.dice();
    std::int64_t late_us = 0;
    if (loses(call) && dice.chance(cloud_.options().faults.late, "late", call)) {
      ++cloud_.counts.late;
      late_us = dice.between(0, cloud_.options().create_timeout_ms, "how late", call) * 1000;
    }
    Result<Machine> made = cloud_.create(request, late_us);
    RILLE_CO_CHECK(co_await answer("create", call, token));
    if (!made) co_return named(made.error(), "create");
    co_return made;
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    RILLE_CO_TRY(std::uint64_t call, co_await arrive("describe", token));
    Machine found = cloud_.describe(id);
    RILLE_CO_CHECK(co_await answer("describe", call, token));
    co_return found;
  }

  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    RILLE_CO_TRY(std::uint64_t call, co_await arrive("list", token));
    std::vector<Machine> found = cloud_.list(tag_prefix);
    RILLE_CO_CHECK(co_await answer("list", call, token));
    co_return found;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    RILLE_CO_TRY(std::uint64_t call, co_await arrive("terminate", token));
    Result<> ended = cloud_.terminate(id);
    RILLE_CO_CHECK(co_await answer("terminate", call, token));
    if (!ended) co_return named(ended.error(), "terminate");
    co_return success();
  }

  Async<Machine> resize(std::string id, std::string type, CancelToken token) override {
    RILLE_CO_TRY(std::uint64_t call, co_await arrive("resize", token));
    Result<Machine> changed = cloud_.resize(id, type);
    RILLE_CO_CHECK(co_await answer("resize", call, token));
    if (!changed) co_return named(changed.error(), "resize");
    co_return changed;
  }

  Async<std::vector<PricePoint>> price_history(OfferQuery query, std::int64_t since_us, CancelToken token) override {
    RILLE_CO_TRY(std::uint64_t call, co_await arrive("price history", token));
    std::vector<PricePoint> found = cloud_.price_history(query, since_us - loop_.clock().wall_us() + cloud_.now_us());
    for (PricePoint& p : found) p.from_wall_us += loop_.clock().wall_us() - cloud_.now_us();
    RILLE_CO_CHECK(co_await answer("price history", call, token));
    co_return found;
  }

  Async<std::vector<Bill>> bill(BillQuery query, CancelToken token) override {
    RILLE_CO_TRY(std::uint64_t call, co_await arrive("bill", token));
    std::vector<Bill> found = cloud_.bills(query);
    RILLE_CO_CHECK(co_await answer("bill", call, token));
    co_return found;
  }

 private:
  bool loses(std::uint64_t call) const {
    return cloud_.dice().chance(cloud_.options().faults.lost_reply, "lost", call);
  }
  std::int64_t way_ms(const char* way, std::uint64_t call) const {
    return static_cast<std::int64_t>(
        cloud_.dice().exponential(static_cast<double>(cloud_.options().latency_ms) / 2, way, call));
  }
  Async<> place(const char* operation, bool done) {
    if (!gate_ || gate_(operation, done)) co_return success();
    Future<Result<>> never(loop_);
    co_return co_await never;
  }

  // Waits for the request's latency, and fails with the faults that prevent the call's effect. Returns the call's
  // number.
  Async<std::uint64_t> arrive(const char* operation, CancelToken token) {
    RILLE_CO_CHECK(co_await place(operation, false));
    auto call = static_cast<std::uint64_t>(++cloud_.counts.calls);
    RILLE_CO_CHECK(co_await sleep_for(loop_, way_ms("there", call), token));
    const Dice& dice = cloud_.dice();
    const Faults& faults = cloud_.options().faults;
    if (dice.chance(faults.throttle, "throttle", call)) {
      ++cloud_.counts.throttled;
      Error e = make_error(ErrorKind::quota, fmt::format("{}: status 429: too many requests", operation),
                           "a fault that the simulation injects: tried again by itself");
      e.http_status = 429;
      e.retryable = true;
      e.retry_after_ms = 1000 * dice.between(1, 20, "after", call);
      co_return named(std::move(e), operation);
    }
    if (dice.chance(faults.error, "error", call)) {
      ++cloud_.counts.errors;
      int status = dice.chance(0.5, "status", call) ? 500 : 503;
      Error e = make_error(ErrorKind::network, fmt::format("{}: status {}: try again later", operation, status),
                           "a fault that the simulation injects: tried again by itself");
      e.http_status = status;
      e.retryable = true;
      co_return named(std::move(e), operation);
    }
    co_return call;
  }

  // Waits for the response's latency; the response may be lost, which is an error.
  Async<> answer(const char* operation, std::uint64_t call, CancelToken token) {
    RILLE_CO_CHECK(co_await place(operation, true));
    RILLE_CO_CHECK(co_await sleep_for(loop_, way_ms("back", call), token));
    if (!loses(call)) co_return success();
    ++cloud_.counts.lost_replies;
    Error e = make_error(ErrorKind::network, fmt::format("{}: connection reset by peer", operation),
                         "a fault that the simulation injects: tried again by itself");
    e.retryable = true;
    co_return named(std::move(e), operation);
  }

  Error named(Error error, const char* operation) const {
    error.provider = name_;
    error.operation = operation;
    return error;
  }

  Loop& loop_;
  Cloud& cloud_;
  Gate gate_;
  std::string name_ = "sim";
  Traits traits_;
};

}  // namespace

std::unique_ptr<Provider> make_provider(Loop& loop, Cloud& cloud, Gate gate) {
  return std::make_unique<Sim>(loop, cloud, std::move(gate));
}

}  // namespace rille::provider::sim
