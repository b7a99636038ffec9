#include "runtime/workflow/provider/cloud/zoned.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::provider::cloud {

namespace {

struct Zone {
  std::string name;
  std::unique_ptr<RegionDriver> driver;
};

class Zoned final : public RegionDriver, public UsualDisk, public VolumeMaker {
 public:
  Zoned(Loop& loop, std::string provider, std::vector<Zone> zones)
      : loop_(loop), provider_(std::move(provider)), zones_(std::move(zones)) {}
  const std::string& region() const override { return first().region(); }
  bool is_id(std::string_view id) const override { return first().is_id(id); }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    std::vector<Together<std::vector<Offer>>> asked;
    for (const Zone& zone : zones_)
      asked.push_back({"zone " + zone.name,
                       [d = zone.driver.get(), query](CancelToken t) { return d->offers(query, std::move(t)); }});
    auto answers = co_await together(loop_, std::move(asked), query.patience_ms - query.patience_ms / 10, token);
    std::vector<Offer> out;
    std::size_t failed = 0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      failed += !answers[i];
      if (!answers[i] && query.left_out) query.left_out->unasked.push_back({region(), answers[i].error()});
      for (Offer& offer : answers[i] ? *answers[i] : std::vector<Offer>()) {
        if (i > 0) offer.id += "@" + zones_[i].name;
        out.push_back(std::move(offer));
      }
    }
    if (failed == answers.size()) co_return answers.front().error();
    co_return out;
  }

  Async<Machine> create(CreateRequest request, std::string type, CancelToken token) override {
    const std::size_t at = type.find('@');
    const std::string name = at == std::string::npos ? zones_.front().name : type.substr(at + 1);
    type.resize(std::min(at, type.size()));
    const auto zone = std::find_if(zones_.begin(), zones_.end(), [&name](const Zone& z) { return z.name == name; });
    if (zone == zones_.end())
      co_return make_error(
          ErrorKind::config,
          fmt::format("{}: the settings of region {} no longer name zone {}", provider_, region(), name),
          "restore it until all machines there are released");
    co_return co_await zone->driver->create(std::move(request), std::move(type), std::move(token));
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    return first().describe(std::move(id), std::move(token));
  }
  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    return first().list(std::move(tag_prefix), std::move(token));
  }
  Async<> terminate(std::string id, CancelToken token) override {
    return first().terminate(std::move(id), std::move(token));
  }
  Async<Identity> check(CancelToken token) override { return first().check(std::move(token)); }
  Async<std::vector<Quota>> quotas(CancelToken token) override { return first().quotas(std::move(token)); }
  Async<> resize(std::string id, std::string type, CancelToken token) override {
    return first().resize(std::move(id), std::move(type), std::move(token));
  }
  Async<std::vector<PricePoint>> price_history(OfferQuery query, std::int64_t since_us, CancelToken token) override {
    return first().price_history(std::move(query), since_us, std::move(token));
  }
  Async<std::string> owner(CancelToken token) override { return first().owner(std::move(token)); }
  std::int64_t skew_us() const override { return first().skew_us(); }
  Async<> set_end(std::string id, std::int64_t expires_wall_us, CancelToken token) override {
    return first().set_end(std::move(id), expires_wall_us, std::move(token));
  }
  SpotMarket market() const override { return first().market(); }
  Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string zone, std::int64_t since_us,
                                             CancelToken token) override {
    return first().spot_prices(std::move(offer), std::move(zone), since_us, std::move(token));
  }
  std::int64_t usual_disk_bytes(const Offer& offer) const override {
    const auto* const orders = dynamic_cast<const UsualDisk*>(&first());
    return orders ? orders->usual_disk_bytes(offer) : 0;
  }
  // Volumes are made in the first zone.
  const std::vector<VolumeKind>& volume_kinds() const override {
    static const std::vector<VolumeKind> none;
    const auto* const maker = dynamic_cast<const VolumeMaker*>(&first());
    return maker ? maker->volume_kinds() : none;
  }
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken token) override {
    if (auto* const maker = dynamic_cast<VolumeMaker*>(&first()))
      co_return co_await maker->volume_offers(std::move(wish), std::move(token));
    co_return lacks("", "volumes");
  }

 private:
  RegionDriver& first() const { return *zones_.front().driver; }

  Loop& loop_;
  std::string provider_;
  std::vector<Zone> zones_;
};

}  // namespace

MadeDriver by_zone(Loop& loop, const std::string& provider, const Value& settings,
                   const std::function<MadeDriver(const Value& of_zone)>& make) {
  SettingsReader read(provider, settings);
  const std::vector<std::string> zones = read.one_or_more("zone", ""), subnets = read.one_or_more("subnet", "");
  if (zones.size() < 2 && subnets.size() < 2) {  // one zone: no zoned driver is needed
    Value one = settings;
    if (settings["zone"].as_array() && !zones.empty()) one.set("zone", zones.front());
    if (settings["subnet"].as_array() && !subnets.empty()) one.set("subnet", subnets.front());
    return make(one);
  }
  if (subnets.size() > 1 && subnets.size() != zones.size())
    return make_error(ErrorKind::config,
                      fmt::format("{}: zone = {} and subnet = {} have different lengths", provider,
                                  fmt::join(zones, ", "), fmt::join(subnets, ", ")),
                      "name the zone of each subnet, in the same order");
  std::vector<Zone> out;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    Value one = settings;
    one.set("zone", zones[i]);
    if (!subnets.empty()) one.set("subnet", subnets.size() > 1 ? subnets[i] : subnets.front());
    RILLE_TRY(std::unique_ptr<RegionDriver> driver, make(one));
    out.push_back({zones[i], std::move(driver)});
  }
  return std::unique_ptr<RegionDriver>(std::make_unique<Zoned>(loop, provider, std::move(out)));
}

}  // namespace rille::provider::cloud
