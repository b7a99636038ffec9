#include "runtime/workflow/provider/cloud/regional.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/money.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/provider/addressed.hpp"
#include "runtime/workflow/provider/clocked.hpp"
#include "runtime/workflow/provider/cloud/elsewhere.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/cloud/spot_prices.hpp"
#include "runtime/workflow/provider/owner.hpp"
#include "runtime/workflow/provider/rearm.hpp"
#include "runtime/workflow/provider/type_of.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::provider::cloud {

namespace {

constexpr std::int64_t offers_patience_ms = 30'000, check_patience_ms = 30'000, list_patience_ms = 30'000;
constexpr std::string_view spot_mark = ":spot";

class Regional final : public Provider,
                       public Owned,
                       public Clocked,
                       public Rearmed,
                       public SpotPriced,
                       public Addressed,
                       public UsualDisk,
                       public VolumeSeller {
 public:
  // Makes the driver of a region that is not in the settings; empty function: such regions are not reachable.
  using Elsewhere = std::function<Result<std::unique_ptr<RegionDriver>>(const std::string& region)>;

  Regional(Loop& loop, std::string name, Traits traits, std::vector<std::unique_ptr<RegionDriver>> regions,
           std::vector<std::string> known, Elsewhere elsewhere, bool divided)
      : loop_(loop), name_(std::move(name)), traits_(std::move(traits)), regions_(std::move(regions)),
        known_(std::move(known)), elsewhere_(std::move(elsewhere)), divided_(divided), spot_prices_(loop) {}
  const std::string& name() const override { return name_; }
  const Traits& traits() const override { return traits_; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    std::vector<Together<std::vector<Offer>>> asked;
    std::vector<std::string> names;
    for (const auto& driver : regions_) {
      if (!driver->region().empty() && !query.accepts_region(driver->region())) continue;
      names.push_back(driver->region());
      asked.push_back(
          {label(*driver), [this, d = driver.get(), query](CancelToken t) { return offers_of(*d, query, t); }});
    }
    auto answers = co_await together(loop_, std::move(asked), query.patience_ms, token);
    std::vector<Offer> out;
    std::vector<AskedRegion> unasked;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i]) out.insert(out.end(), answers[i]->begin(), answers[i]->end());
      else unasked.push_back({names[i], named(answers[i].error(), "offers")});
    }
    if (out.empty() && !unasked.empty()) co_return *unasked.back().problem;
    if (query.left_out)  // added to the failures that the drivers reported
      std::move(unasked.begin(), unasked.end(), std::back_inserter(query.left_out->unasked));
    std::stable_sort(out.begin(), out.end(), [](const Offer& a, const Offer& b) {
      const auto price = [](const Offer& o) { return static_cast<std::uint64_t>(o.price_micros_per_hour); };
      return price(a) < price(b);  // as unsigned, so that an unknown price (-1) sorts last
    });
    co_return out;
  }

  const std::vector<VolumeKind>& volume_kinds() const override {
    static const std::vector<VolumeKind> none;
    const auto* const maker = dynamic_cast<const VolumeMaker*>(regions_.front().get());
    return maker ? maker->volume_kinds() : none;
  }
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken token) override {
    std::vector<Offer> out;
    for (const auto& driver : regions_) {
      auto* const maker = dynamic_cast<VolumeMaker*>(driver.get());
      const std::string& region = driver->region();
      if (!maker || (!wish.region.empty() && !region.empty() && wish.region != region)) continue;
      Result<std::vector<Offer>> there = co_await maker->volume_offers(wish, token);
      if (!there) co_return named(in_region(there.error(), region), "volume offers");
      for (Offer& offer : *there) {
        offer.provider = name_;
        if (!region.empty()) offer.region = region;
        offer.id = fmt::format("{}/volume:{}", offer.region, wish.kind);
        if (wish.region.empty() || wish.region == offer.region) out.push_back(std::move(offer));
      }
    }
    co_return out;
  }

  Async<Machine> create(CreateRequest request, CancelToken token) override {
    const auto [where, offer] = split(request.offer.id);
    RILLE_CO_TRY(RegionDriver * driver, find(where));
    Machine asked;
    asked.tag = request.tag;
    asked.created_wall_us = loop_.clock().wall_us();
    asked.expires_wall_us = request.expires_wall_us;
    std::string type = offer;
    if (type.ends_with(spot_mark)) type.resize(type.size() - spot_mark.size());
    Result<Machine> made = co_await driver->create(std::move(request), std::move(type), token);
    if (!made) co_return named(made.error(), "create");
    made->id = id_of(*driver, made->id);
    if (made->state == MachineState::gone) made->state = MachineState::pending;
    if (made->tag.empty()) made->tag = asked.tag;
    if (made->created_wall_us == 0) made->created_wall_us = asked.created_wall_us;
    if (made->expires_wall_us == 0) made->expires_wall_us = asked.expires_wall_us;
    co_return made;
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    Machine gone;
    gone.id = id;
    const auto [where, own] = split_machine(id);
    if (!is_ours(own)) co_return gone;
    RILLE_CO_TRY(RegionDriver * driver, reach(where));
    Result<Machine> found = co_await driver->describe(own, token);
    if (!found && found.error().http_status != 404) co_return named(found.error(), "describe");
    if (found && found->state != MachineState::gone) note(where, id), note(where, found->tag);
    else if (in_doubt(where, id)) co_return named(not_seen(where), "describe");
    if (!found) co_return gone;
    found->id = id;
    note_zone(*found);
    co_return found;
  }

  // Fails if any region fails: a partial list would look complete.
  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    RILLE_CO_TRY(Listing all, co_await list_in("", std::move(tag_prefix), std::move(token)));
    if (!all.unasked.empty()) co_return *all.unasked.front().problem;
    co_return std::move(all.machines);
  }

  Async<Listing> list_in(std::string region, std::string tag_prefix, CancelToken token) override {
    std::vector<RegionDriver*> drivers;
    for (const auto& driver : regions_)
      if (region.empty() || driver->region().empty() || region == driver->region()) drivers.push_back(driver.get());
    if (drivers.empty()) {
      const Result<RegionDriver*> there = reach(region);
      if (!there) co_return named(there.error(), "list");
      drivers.push_back(*there);
    }
    std::vector<Together<std::vector<Machine>>> asked;
    for (RegionDriver* d : drivers)
      asked.push_back({label(*d), [d, tag_prefix](CancelToken t) { return d->list(tag_prefix, t); }});
    auto answers = co_await together(loop_, std::move(asked), list_patience_ms, token);
    Listing out;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i]) {
        out.unasked.push_back({drivers[i]->region(), named(answers[i].error(), "list")});
        continue;
      }
      for (Machine& m : *answers[i]) {
        if (m.state == MachineState::gone || !m.tag.starts_with(tag_prefix)) continue;
        m.id = id_of(*drivers[i], m.id);
        note(drivers[i]->region(), tag_prefix);
        // A page of the answer may repeat machines of the previous page.
        if (seen.insert(m.id).second) out.machines.push_back(std::move(m));
      }
    }
    if (out.unasked.size() == drivers.size()) co_return *out.unasked.front().problem;
    if (in_doubt(region, tag_prefix)) co_return named(not_seen(region), "list");
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    const auto [where, own] = split_machine(id);
    if (!is_ours(own)) co_return success();
    RILLE_CO_TRY(RegionDriver * driver, reach(where));
    // Once the machine is terminated, it can no longer be checked whether it is in the searched part of the account.
    const std::string mine = own;
    if (in_doubt(where, id)) RILLE_CO_CHECK(co_await describe(id, token));
    Result<> done = co_await driver->terminate(mine, token);
    if (!done && done.error().http_status != 404) co_return named(done.error(), "terminate");
    co_return success();
  }

  // One region that answers proves the credentials; regions that fail are named in the result.
  Async<Identity> check(CancelToken token) override {
    std::vector<Together<Identity>> asked;
    for (const auto& driver : regions_)
      asked.push_back({label(*driver), [d = driver.get()](CancelToken t) { return d->check(t); }});
    const auto answers = co_await together(loop_, std::move(asked), check_patience_ms, token);
    std::optional<Identity> out;
    for (const Result<Identity>& answer : answers)
      if (answer && !out) out = *answer;
    if (!out) co_return named(in_region(answers.front().error(), regions_.front()->region()), "check");
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const std::string& region = regions_[i]->region();
      AskedRegion one{region, {}};
      if (!answers[i]) one.problem = named(in_region(answers[i].error(), region), "check");
      if (!region.empty()) out->regions.push_back(std::move(one));
    }
    co_return *out;
  }

  Async<std::string> owner(std::string region, CancelToken token) override {
    RegionDriver* driver = regions_.front().get();
    if (Result<RegionDriver*> there = reach(region); !region.empty() && there) driver = *there;
    Result<std::string> told = co_await driver->owner(token);
    if (!told) co_return named(told.error(), "owner");
    co_return told;
  }

  Async<> set_end(std::string id, std::int64_t expires_wall_us, CancelToken token) override {
    const auto [where, own] = split_machine(id);
    if (!is_ours(own))
      co_return named(make_error(ErrorKind::invalid, fmt::format("'{}' is not a machine of {}", id, name_),
                                 "`rille leases` lists the rented machines"),
                      "set_end");
    RILLE_CO_TRY(RegionDriver * driver, reach(where));
    Result<> done = co_await driver->set_end(own, expires_wall_us, token);
    if (!done) co_return named(done.error(), "set_end");
    co_return success();
  }

  SpotMarket market() const override { return regions_.front()->market(); }
  Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string id, std::int64_t since_us,
                                             CancelToken token) override {
    constexpr std::int64_t day_us = 86'400'000'000;
    const SpotMarket market = this->market();
    if (!market.told) co_return named(lacks("", "way to follow spot prices"), "spot prices");
    RILLE_CO_TRY(RegionDriver * driver, reach(split_machine(id).first));
    std::string zone;
    if (market.by_zone) {
      if (!zones_.contains(id)) RILLE_CO_CHECK(co_await describe(id, token));
      std::vector<PricePoint> nothing;
      if (!zones_.contains(id)) co_return nothing;
      zone = zones_[id];
    }
    offer.id = type_of(offer);
    const std::string key = fmt::format("{} {} {}", driver->region(), offer.id, zone);
    const SpotPrices::Ask ask = [driver, offer, zone](std::int64_t from_us, CancelToken t) {
      return driver->spot_prices(offer, zone, from_us, std::move(t));
    };
    // Starts a day earlier, at midnight, so that one cached answer serves all machines rented on the same day.
    const std::int64_t back_us = std::max<std::int64_t>(0, since_us - since_us % day_us - day_us);
    auto told = co_await spot_prices_.get(key, back_us, market.lasts_us, ask, std::move(token));
    if (!told) co_return named(told.error(), "spot prices");
    co_return told;
  }

  // All regions share one clock; the first region with a known skew gives the answer.
  std::int64_t skew_us() const override {
    for (const auto& driver : regions_)
      if (const std::int64_t skew_us = driver->skew_us()) return skew_us;
    return 0;
  }

  void set_address_price(Micros micros_per_hour) override { address_price_ = micros_per_hour; }
  Micros address_micros_per_hour(const Offer& offer) const override {
    const Result<RegionDriver*> driver = find(offer.region);
    const auto* const listed = driver ? dynamic_cast<const AddressListed*>(*driver) : nullptr;
    const std::optional<Micros> price = listed ? listed->address_micros_per_hour(offer.spot) : std::nullopt;
    if (!price) return 0;
    if (address_price_) return *address_price_;
    return offer.currency == "USD" ? *price : price_unknown;  // the list price is for dollars only
  }

  std::int64_t usual_disk_bytes(const Offer& offer) const override {
    const Result<RegionDriver*> driver = find(offer.region);
    const auto* const orders = driver ? dynamic_cast<const UsualDisk*>(*driver) : nullptr;
    return orders ? orders->usual_disk_bytes(offer) : 0;
  }

  Async<std::vector<Quota>> quotas(std::string region, CancelToken token) override {
    const auto ask = [](RegionDriver& d, CancelToken t) { return d.quotas(std::move(t)); };
    return of_regions<Quota>(std::move(region), "quotas", ask, std::move(token));
  }

  Async<Machine> resize(std::string id, std::string type, CancelToken token) override {
    const auto [where, own] = split_machine(id);
    if (!is_ours(own))
      co_return named(make_error(ErrorKind::invalid, fmt::format("'{}' is not a machine of {}", id, name_),
                                 "`rille leases` lists the rented machines"),
                      "resize");
    RILLE_CO_TRY(RegionDriver * driver, find(where));
    const std::string mine = own;
    Result<> done = co_await driver->resize(mine, std::move(type), token);
    if (!done) co_return named(done.error(), "resize");
    co_return co_await describe(std::move(id), std::move(token));
  }

  Async<std::vector<PricePoint>> price_history(OfferQuery query, std::int64_t since_us, CancelToken token) override {
    std::string region = query.region;
    const auto ask = [query, since_us](RegionDriver& d, CancelToken t) {
      return d.price_history(query, since_us, std::move(t));
    };
    auto answer = co_await of_regions<PricePoint>(std::move(region), "price history", ask, std::move(token));
    if (answer)
      std::stable_sort(answer->begin(), answer->end(),
                       [](const PricePoint& a, const PricePoint& b) { return a.from_wall_us < b.from_wall_us; });
    co_return answer;
  }

 private:
  // The results of one region, or of all if `region` is "". Fails if any fails: a partial list would look complete.
  template <class T, class F>
  Async<std::vector<T>> of_regions(std::string region, const char* operation, F ask, CancelToken token) {
    std::vector<Together<std::vector<T>>> asked;
    for (const auto& driver : regions_)
      if (region.empty() || driver->region().empty() || region == driver->region())
        asked.push_back({label(*driver), [d = driver.get(), ask](CancelToken t) { return ask(*d, std::move(t)); }});
    if (asked.empty()) co_return find(region).error();
    auto answers = co_await together(loop_, std::move(asked), offers_patience_ms, token);
    std::vector<T> out;
    for (Result<std::vector<T>>& answer : answers) {
      if (!answer) co_return named(answer.error(), operation);
      out.insert(out.end(), answer->begin(), answer->end());
    }
    co_return out;
  }

  Async<std::vector<Offer>> offers_of(RegionDriver& driver, OfferQuery query, CancelToken token) {
    Result<std::vector<Offer>> answer = co_await driver.offers(query, token);
    if (!answer) co_return in_region(answer.error(), driver.region());
    std::vector<Offer>& all = *answer;
    std::vector<Offer> out;
    for (Offer& offer : all) {
      offer.provider = name_;
      if (!driver.region().empty()) offer.region = driver.region();
      offer.spot = query.spot;
      offer.id = offer.region + "/" + offer.id + (query.spot ? std::string(spot_mark) : "");
      if (offer.matches(query)) out.push_back(std::move(offer));
    }
    co_return out;
  }

  Result<RegionDriver*> find(const std::string& name) const {
    for (const auto& driver : regions_)
      if (driver->region() == name || driver->region().empty()) return driver.get();
    return make_error(ErrorKind::config, fmt::format("the settings of {} no longer have the region '{}'", name_, name),
                      "restore it until all machines there are released");
  }

  // The driver of a region, also of one removed from the settings, which may still have machines.
  Result<RegionDriver*> reach(const std::string& name) {
    Result<RegionDriver*> mine = find(name);
    if (mine || !elsewhere_ || std::find(known_.begin(), known_.end(), name) == known_.end()) return mine;
    for (const auto& driver : reached_)
      if (driver->region() == name) return driver.get();
    RILLE_TRY(std::unique_ptr<RegionDriver> made, elsewhere_(name));
    reached_.push_back(std::move(made));
    return reached_.back().get();
  }

  void note_zone(const Machine& machine) {
    constexpr std::size_t zones_max = 10'000;
    const std::string zone = machine.details.text("zone");
    if (zone.empty()) return;
    if (zones_.size() > zones_max) zones_.clear();
    zones_[machine.id] = zone;
  }

  bool is_named(const std::string& region) const { return region.empty() || find(region); }
  void note(const std::string& region, const std::string& what) {
    if (divided_ && !is_named(region)) seen_.insert(region + " " + what);
  }
  // Whether the machine `what` (id or tag), which was not found, may be in a part of the account that is not searched.
  bool in_doubt(const std::string& region, const std::string& what) const {
    return divided_ && !is_named(region) && !seen_.contains(region + " " + what);
  }
  Error not_seen(const std::string& region) const {
    return make_error(ErrorKind::config,
                      fmt::format("the settings of {} no longer have the region '{}', and their general part "
                                  "does not reach its machines",
                                  name_, region),
                      "restore it unchanged until all machines there are released");
  }

  // Adds a hint if the region may be misspelt: clouds answer such calls with unrelated errors.
  Error in_region(Error error, const std::string& region) const {
    const std::string near = did_you_mean(region, known_);
    if (near.empty() || near == region) return error;
    error.kind = ErrorKind::config;
    error.hint = fmt::format("is '{}' a region? Did you mean '{}'?", region, near);
    return error;
  }

  bool is_ours(const std::string& own) const { return !own.empty() && regions_.front()->is_id(own); }

  static std::pair<std::string, std::string> split(const std::string& id) {
    const std::size_t slash = id.find('/');
    if (slash == std::string::npos) return {};
    return {id.substr(0, slash), id.substr(slash + 1)};
  }

  std::pair<std::string, std::string> split_machine(const std::string& id) const {
    return regions_.front()->region().empty() ? std::pair(std::string(), id) : split(id);
  }
  static std::string id_of(const RegionDriver& driver, const std::string& own) {
    return driver.region().empty() ? own : driver.region() + "/" + own;
  }
  std::string label(const RegionDriver& driver) const {
    return driver.region().empty() ? name_ : "region " + driver.region();
  }

  Error named(Error error, const char* operation) const {
    error = tell_lack(std::move(error), name_);
    error.provider = name_;
    if (error.operation.empty()) error.operation = operation;
    return error;
  }

  Loop& loop_;
  std::string name_;
  Traits traits_;
  std::vector<std::unique_ptr<RegionDriver>> regions_, reached_;
  std::vector<std::string> known_;
  Elsewhere elsewhere_;
  std::optional<Micros> address_price_;  // the settings' price of a public address; replaces the list price
  bool divided_;
  SpotPrices spot_prices_;
  std::map<std::string, std::string> zones_;  // zone by machine id
  std::set<std::string> seen_;                // machines seen in regions removed from the settings
};

}  // namespace

Async<Identity> RegionDriver::check(CancelToken) { co_return lacks("", "call that proves its credentials"); }
Async<> RegionDriver::set_end(std::string, std::int64_t, CancelToken) {
  co_return lacks("", "way to set a machine's end anew");
}
Async<std::string> RegionDriver::owner(CancelToken) { co_return std::string(); }
Async<std::vector<Quota>> RegionDriver::quotas(CancelToken) { co_return lacks("", "quotas"); }
Async<> RegionDriver::resize(std::string, std::string, CancelToken) {
  co_return lacks("", "way to make a machine another type");
}
Async<std::vector<PricePoint>> RegionDriver::price_history(OfferQuery, std::int64_t, CancelToken) {
  co_return lacks("", "price history");
}

Async<std::vector<PricePoint>> RegionDriver::spot_prices(Offer, std::string, std::int64_t, CancelToken) {
  co_return lacks("", "way to follow spot prices");
}

Result<std::vector<Offer>> only_there(const std::string& provider, std::vector<Offer> offers,
                                      const std::vector<std::string>& wanted) {
  if (wanted.empty() || offers.empty()) return offers;
  std::vector<std::string> seen;
  for (const Offer& o : offers)
    if (std::find(seen.begin(), seen.end(), o.region) == seen.end()) seen.push_back(o.region);
  std::erase_if(offers, [&](const Offer& o) {
    return std::none_of(wanted.begin(), wanted.end(), [&o](const std::string& place) {
      return o.region == place || o.region.ends_with(", " + place);
    });
  });
  if (!offers.empty()) return offers;
  std::string near;
  for (const std::string& name : wanted)
    if (near.empty()) near = did_you_mean(name, seen);
  return make_error(ErrorKind::capacity,
                    fmt::format("{} has no offers in the configured regions: {}", provider, fmt::join(wanted, "; ")),
                    near.empty() ? fmt::format("there are offers in: {}", fmt::join(seen, "; "))
                                 : fmt::format("did you mean '{}'?", near));
}

std::unique_ptr<Provider> make_regional(Loop& loop, std::string name, Traits traits,
                                        std::vector<std::unique_ptr<RegionDriver>> regions,
                                        std::vector<std::string> known) {
  return std::make_unique<Regional>(loop, std::move(name), std::move(traits), std::move(regions), std::move(known),
                                    nullptr, false);
}

Result<std::unique_ptr<Provider>> make_regional(const Setup& setup,
                                                const std::vector<std::pair<std::string, Value>>& regions,
                                                RegionalCloud cloud) {
  std::vector<std::unique_ptr<RegionDriver>> drivers;
  for (const auto& [region, settings] : regions) {
    RILLE_TRY(std::unique_ptr<RegionDriver> driver, cloud.driver_of(region, settings, true));
    drivers.push_back(std::move(driver));
  }
  RILLE_TRY(Traits traits, read_traits(setup.settings["traits"], std::move(cloud.traits)));
  const auto elsewhere = [name = cloud.name, all = setup.settings, driver_of = std::move(cloud.driver_of)](
                             const std::string& region) -> Result<std::unique_ptr<RegionDriver>> {
    Value only_it = all;
    only_it.set("regions", Value::Array{Value(region)});
    RILLE_TRY(const auto there, region_settings(name, only_it, region));
    return driver_of(region, there.front().second, false);
  };
  return std::unique_ptr<Provider>(std::make_unique<Regional>(
      setup.loop, cloud.name, std::move(traits), std::move(drivers), std::move(cloud.known), elsewhere, cloud.divided));
}

}  // namespace rille::provider::cloud
