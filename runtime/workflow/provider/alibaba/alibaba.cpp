#include "runtime/workflow/provider/alibaba/alibaba.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/core/base/time.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/core/net/credentials/alibaba/keys.hpp"
#include "runtime/workflow/provider/alibaba/ecs.hpp"
#include "runtime/workflow/provider/alibaba/ram.hpp"
#include "runtime/workflow/provider/alibaba/volumes.hpp"
#include "runtime/workflow/provider/cloud/elsewhere.hpp"
#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/cloud/key_owner.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/cloud/resize.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/cloud/zoned.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::provider {

namespace {

using namespace alibaba;

constexpr std::int64_t types_last_us = 24LL * 3'600'000'000, stock_lasts_us = 5LL * 60'000'000;
constexpr std::int64_t gb = 1'000'000'000, patience_ms = 30'000;
constexpr std::size_t user_data_bytes_max = 16 << 10;
// A machine's AutoReleaseTime is this long after its expiry: it must be at least 30 minutes ahead when Alibaba Cloud
// receives the call, possibly long after the call was prepared.
constexpr std::int64_t release_margin_us = 35LL * 60'000'000;
constexpr std::int64_t notice_us = 5LL * 60'000'000;

// Used only to suggest a name for a misspelled region; regions that are not in this list work as well.
const char* const known_regions[] = {
    "cn-qingdao",     "cn-beijing",     "cn-zhangjiakou", "cn-huhehaote",   "cn-wulanchabu",  "cn-hangzhou",
    "cn-shanghai",    "cn-nanjing",     "cn-shenzhen",    "cn-heyuan",      "cn-guangzhou",   "cn-chengdu",
    "cn-hongkong",    "ap-southeast-1", "ap-southeast-3", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7",
    "ap-northeast-1", "ap-northeast-2", "us-west-1",      "us-east-1",      "eu-central-1",   "eu-west-1",
    "me-east-1",      "me-central-1"};

struct Settings {
  std::string image, subnet, security_group, zone, disk_kind, kms_key;
  std::int64_t disk_bytes = 100 * gb;
  bool reserved_prices = false, public_address = true;
  Value reservation, tags, endpoints;
};

struct Account {
  Account(Loop& loop, const Value& endpoints, cloud::SshKeys keys)
      : access(std::move(keys), "alibaba", endpoints.text("metadata", "http://100.100.100.200")),
        chain(net::alibaba::key_chain(loop, endpoints)) {}
  cloud::Access access;
  net::CredentialChain chain;
  cloud::KeyOwner owner{"alibaba", "account"};
};

MachineState state_of(const std::string& status) {
  if (status == "Pending" || status == "Starting") return MachineState::pending;
  if (status == "Running") return MachineState::live;
  return MachineState::terminating;  // also a stopped instance: its disk costs money
}

class Region final : public cloud::RegionDriver, public cloud::VolumeMaker, public UsualDisk {
 public:
  Region(Loop& loop, std::shared_ptr<Account> account, const std::string& name, Settings settings)
      : loop_(loop), account_(std::move(account)), settings_(std::move(settings)),
        ecs_(loop, account_->chain, name, settings_.endpoints), ram_(loop, account_->chain, settings_.endpoints),
        volumes_(ecs_, settings_.zone, settings_.kms_key, settings_.tags),
        prices_(loop, [this](std::string type, bool spot, CancelToken t) {
          return ecs_.price(type, settings_.disk_kind, spot, settings_.reserved_prices && !spot, t);
        }) {}
  const std::string& region() const override { return ecs_.region(); }
  bool is_id(std::string_view id) const override { return id.starts_with("i-") || is_disk(id); }

  std::int64_t usual_disk_bytes(const Offer&) const override { return settings_.disk_bytes; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    if (!query.zone.empty() && !settings_.zone.empty() && query.zone != settings_.zone) co_return std::vector<Offer>();
    RILLE_CO_TRY(const std::vector<Offer> left, co_await types_left(query.spot, token));
    if (left.empty() && !settings_.zone.empty() && !query.spot)
      co_return make_error(
          ErrorKind::config,
          fmt::format("alibaba: region '{}' has no capacity in the zone '{}'", region(), settings_.zone),
          "check that it is a zone of that region, or leave `zone` out of the settings");
    std::vector<Offer> fitting = cloud::smallest_fitting(left, query);
    RILLE_CO_TRY(std::vector<Offer> out, co_await prices_.priced(std::move(fitting), query, region(), token));
    for (Offer& offer : out) offer.disk_bytes_max = 2'048 * gb;  // SystemDisk.Size
    co_return out;
  }

  const std::vector<VolumeKind>& volume_kinds() const override { return Volumes::kinds(); }
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken token) override {
    return volumes_.offers(std::move(wish), std::move(token));
  }

  Async<Machine> create(CreateRequest request, std::string type, CancelToken token) override {
    if (is_volume(request)) co_return co_await volumes_.create(std::move(request), std::move(token));
    RILLE_CO_TRY(Parameters order, order_of(request, type));
    Machine made;
    RILLE_CO_TRY(made.id, co_await ecs_.run(std::move(order), request.send_by_wall_us, token));
    co_return made;
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    Machine gone;
    if (is_disk(id)) {
      RILLE_CO_TRY(const std::optional<Disk> disk, co_await ecs_.disk(std::move(id), token));
      if (!disk || !Volumes::is_shown(*disk)) co_return gone;
      co_return Volumes::machine_of(*disk);
    }
    Parameters asked{{"InstanceIds", "[\"" + id + "\"]"}};
    RILLE_CO_TRY(const std::vector<Instance> found, co_await ecs_.describe(std::move(asked), token));
    if (found.empty()) co_return gone;
    RILLE_CO_TRY(Machine machine, machine_of(found.front()));
    if (machine.state == MachineState::live) RILLE_CO_CHECK(co_await volumes_.attach(found.front(), machine, token));
    co_return machine;
  }

  // Lists machines, volumes, and also disks that outlived their machine, which cost money.
  Async<std::vector<Machine>> list(std::string, CancelToken token) override {
    Parameters asked{{"Tag.1.Key", tag_key}};
    RILLE_CO_TRY(const std::vector<Instance> all, co_await ecs_.describe(std::move(asked), token));
    std::vector<Machine> out;
    for (const Instance& instance : all) {
      RILLE_CO_TRY(Machine m, machine_of(instance));
      out.push_back(std::move(m));
    }
    RILLE_CO_TRY(const std::vector<Disk> disks, co_await ecs_.disks(token));
    for (const Disk& disk : disks)
      if (Volumes::is_shown(disk)) out.push_back(Volumes::machine_of(disk));
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    if (is_disk(id)) return ecs_.delete_disk(std::move(id), std::move(token));
    return ecs_.terminate(std::move(id), std::move(token));
  }

  Async<> set_end(std::string id, std::int64_t expires_wall_us, CancelToken token) override {
    return ecs_.set_release(std::move(id), expires_wall_us + release_margin_us, std::move(token));
  }
  std::int64_t skew_us() const override { return ram_.skew_us(); }
  Async<std::string> owner(CancelToken token) override {
    cloud::KeyOwner::Ask ask = [this](CancelToken t) { return ram_.account(std::move(t)); };
    co_return co_await account_->owner.get(&account_->chain, std::move(ask), std::move(token));
  }

  // The identity comes from STS, which is global; the quotas call proves that the keys have access to this region.
  Async<Identity> check(CancelToken token) override {
    RILLE_CO_TRY(const Identity out, co_await ram_.identity(token));
    RILLE_CO_CHECK(co_await ecs_.quotas(token));
    RILLE_CO_CHECK(co_await ecs_.disks(token));  // a release needs the permission to list disks
    co_return out;
  }

  Async<std::vector<Quota>> quotas(CancelToken token) override { return ecs_.quotas(std::move(token)); }

  Async<> resize(std::string id, std::string type, CancelToken token) override {
    cloud::Resizing how;
    how.type = std::move(type);
    how.look = [this, id](CancelToken t) { return standing(id, std::move(t)); };
    how.stop = [this, id](CancelToken t) { return ecs_.stop(id, std::move(t)); };
    how.change = [this, id](std::string to, CancelToken t) { return ecs_.change_type(id, to, std::move(t)); };
    how.start = [this, id](CancelToken t) { return ecs_.start(id, std::move(t)); };
    co_return co_await cloud::resize_stopped(loop_, std::move(how), std::move(token));
  }

  // Makes one API call per type. A type that is not sold as spot has no history.
  Async<std::vector<PricePoint>> price_history(OfferQuery query, std::int64_t since_us, CancelToken token) override {
    RILLE_CO_TRY(const std::vector<Offer> fitting, co_await fitting_types(query, token));
    std::vector<Together<std::vector<PricePoint>>> asked;
    for (const Offer& offer : fitting)
      asked.push_back({"the prices of " + offer.id, [this, type = offer.id, since_us](CancelToken t) {
                         return ecs_.spot_history(type, since_us, std::move(t));
                       }});
    const auto answers = co_await cloud::in_batches(loop_, std::move(asked), patience_ms, token);
    std::vector<PricePoint> out;
    for (const Result<std::vector<PricePoint>>& answer : answers) {
      if (!answer && answer.error().kind != ErrorKind::state && answer.error().kind != ErrorKind::invalid)
        co_return answer.error();
      if (answer) out.insert(out.end(), answer->begin(), answer->end());
    }
    co_return out;
  }

  SpotMarket market() const override { return {.told = true, .by_zone = true, .knows_before = true}; }
  Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string zone, std::int64_t since_us,
                                             CancelToken token) override {
    RILLE_CO_TRY(std::vector<PricePoint> out, co_await ecs_.spot_history(offer.id, since_us, std::move(token)));
    std::erase_if(out, [&zone](const PricePoint& point) { return point.zone != zone; });
    co_return out;
  }

 private:
  static bool is_disk(std::string_view id) { return id.starts_with("d-"); }

  Async<> learn_types(CancelToken token) {
    const std::int64_t now_us = loop_.clock().wall_us();
    if (types_.empty() || now_us - types_at_us_ > types_last_us) {
      RILLE_CO_TRY(types_, co_await ecs_.types(token));
      types_at_us_ = now_us;
    }
    co_return success();
  }
  Async<std::vector<Offer>> fitting_types(OfferQuery query, CancelToken token) {
    RILLE_CO_CHECK(co_await learn_types(std::move(token)));
    co_return cloud::smallest_fitting(types_, std::move(query));
  }

  // The instance types that are in stock, on demand or as spot.
  Async<std::vector<Offer>> types_left(bool spot, CancelToken token) {
    RILLE_CO_CHECK(co_await learn_types(token));
    const std::int64_t now_us = loop_.clock().wall_us();
    Stock& known = stock_[spot];
    if (known.at_us == 0 || now_us - known.at_us > stock_lasts_us) {
      RILLE_CO_TRY(known.types, co_await ecs_.in_stock(settings_.zone, spot, token));
      known.at_us = now_us;
    }
    std::vector<Offer> out;
    for (const Offer& type : types_)
      if (known.types.contains(type.id)) out.push_back(type);
    co_return out;
  }

  Async<cloud::Standing> standing(std::string id, CancelToken token) {
    Parameters asked{{"InstanceIds", "[\"" + id + "\"]"}};
    RILLE_CO_TRY(const std::vector<Instance> found, co_await ecs_.describe(std::move(asked), token));
    cloud::Standing out;
    if (found.empty()) co_return out;
    const std::string& status = found.front().status;
    out.type = found.front().type;
    out.power = status == "Running"   ? cloud::Power::running
                : status == "Stopped" ? cloud::Power::stopped
                : status.empty()      ? cloud::Power::gone
                                      : cloud::Power::between;
    co_return out;
  }

  Result<Parameters> order_of(const CreateRequest& request, const std::string& type) const {
    const std::string image = image_in(request, settings_.image);
    for (const auto& [name, value] : {std::pair("image", &image), std::pair("subnet", &settings_.subnet),
                                      std::pair("security_group", &settings_.security_group)})
      if (value->empty())
        return make_error(ErrorKind::config, fmt::format("alibaba: region {} has no {}", region(), name),
                          "name an image, a VSwitch (subnet) and a security group that allows port 22, in the "
                          "provider's settings");
    RILLE_TRY(const std::string zone, zone_with(mounts_in(request), settings_.zone));
    RILLE_TRY(const std::string user_data,
              account_->access.user_data(request, false, user_data_bytes_max, Volumes::boot_disks(request)));
    const std::int64_t disk_bytes = request.disk_bytes ? request.disk_bytes : settings_.disk_bytes;
    Parameters out{{"ImageId", image},
                   {"InstanceType", type},
                   {"SecurityGroupId", settings_.security_group},
                   {"VSwitchId", settings_.subnet},
                   {"Amount", "1"},
                   {"ClientToken", request.token},
                   {"InstanceName", request.tag},
                   {"UserData", user_data},
                   {"InstanceChargeType", "PostPaid"},
                   {"SystemDisk.Category", settings_.disk_kind},
                   {"SystemDisk.Size", std::to_string((disk_bytes + gb - 1) / gb)},
                   {"InternetMaxBandwidthOut", settings_.public_address ? "100" : "0"},
                   {"InternetChargeType", "PayByTraffic"},
                   {"Tag.1.Key", tag_key},
                   {"Tag.1.Value", request.tag}};
    Parameters tags = Volumes::tags_of(request);
    for (const auto& [key, value] : *settings_.tags.as_object()) tags.emplace_back(key, *value.as_string());
    int n = 1;
    for (const auto& [key, value] : tags)
      out.insert(out.end(), {{fmt::format("Tag.{}.Key", ++n), key}, {fmt::format("Tag.{}.Value", n), value}});
    if (!zone.empty()) out.emplace_back("ZoneId", zone);
    if (!settings_.kms_key.empty())
      out.insert(out.end(), {{"SystemDisk.Encrypted", "true"}, {"SystemDisk.KMSKeyId", settings_.kms_key}});
    if (request.expires_wall_us > 0)
      out.emplace_back("AutoReleaseTime", format_utc(request.expires_wall_us + release_margin_us));
    const std::string reservation = request.extra.text("reservation", cloud::text_for(settings_.reservation, type));
    if (!reservation.empty() && !request.offer.spot)
      out.insert(out.end(), {{"PrivatePoolOptions.MatchCriteria", "Target"}, {"PrivatePoolOptions.Id", reservation}});
    if (!request.offer.spot) return out;
    const Micros most = std::max(request.cap_micros_per_hour, request.offer.price_micros_per_hour);
    out.insert(out.end(), {{"SpotStrategy", most > 0 ? "SpotWithPriceLimit" : "SpotAsPriceGo"},
                           {"SpotDuration", "0"},
                           {"SpotInterruptionBehavior", "Terminate"}});
    if (most > 0) out.emplace_back("SpotPriceLimit", cloud::price_text(most));
    return out;
  }

  Result<Machine> machine_of(const Instance& instance) {
    Machine m;
    m.id = instance.id;
    m.state = state_of(instance.status);
    m.tag = instance.tag;
    m.created_wall_us = instance.created_wall_us;
    m.details.set("type", instance.type).set("zone", instance.zone);
    m.notice_wall_us = notice_of(instance);
    const std::string& address = settings_.public_address ? instance.address : instance.private_address;
    RILLE_CHECK(account_->access.reach(m, instance.id, address));
    return m;
  }

  // Estimates when a reclaimed machine is taken away. ECS flags it about five minutes before, without a time
  // (https://www.alibabacloud.com/help/faq-detail/48269.htm), so add five minutes to the last poll without the flag, or
  // to now if there was no such poll. The machine's metadata service has the exact time.
  std::int64_t notice_of(const Instance& instance) {
    constexpr std::size_t looks_max = 10'000;
    if (looks_.size() > looks_max) looks_.clear();
    const std::int64_t now_us = loop_.clock().wall_us();
    Look& look = looks_.try_emplace(instance.id, Look{now_us, 0}).first->second;
    if (!instance.reclaimed) look = {now_us, 0};
    else if (!look.notice_us) look.notice_us = look.calm_us + notice_us;
    return look.notice_us;
  }

  struct Stock {
    std::set<std::string> types;
    std::int64_t at_us = 0;
  };
  struct Look {
    std::int64_t calm_us = 0, notice_us = 0;  // last poll without the flag; computed time of preemption
  };

  Loop& loop_;
  std::shared_ptr<Account> account_;
  Settings settings_;
  Ecs ecs_;
  Ram ram_;
  Volumes volumes_;
  std::vector<Offer> types_;
  std::int64_t types_at_us_ = 0;
  std::map<bool, Stock> stock_;  // key: whether the types are sold as spot
  cloud::PriceBook prices_;
  std::map<std::string, Look> looks_;
};

Result<Settings> read_settings(const Value& of_region) {
  cloud::SettingsReader read("alibaba", of_region);
  Settings s;
  s.image = read.text("image");
  s.tags = read.tags("tags");
  s.subnet = read.text("subnet");
  s.security_group = read.text("security_group");
  s.zone = read.text("zone");
  s.disk_kind = read.text("disk_kind", "cloud_essd");
  s.kms_key = read.text("kms_key");
  s.reservation = read.text_by_type("reservation");
  s.public_address = read.flag("public_address", true);
  s.disk_bytes = read.bytes("disk", s.disk_bytes);
  s.reserved_prices = read.flag("reserved_prices", false);
  s.endpoints = read.object("endpoints");
  RILLE_CHECK(read.done({"regions", "traits"}));
  return s;
}

}  // namespace

Result<std::unique_ptr<Provider>> make_alibaba_provider(Setup setup) {
  const std::string usual = net::environment("ALIBABA_CLOUD_REGION_ID");
  RILLE_TRY(const auto regions,
            cloud::region_settings("alibaba", setup.settings, usual.empty() ? "cn-hangzhou" : usual));
  RILLE_TRY(cloud::SshKeys keys, cloud::SshKeys::open(setup.config + "/ssh"));
  const auto account = std::make_shared<Account>(setup.loop, setup.settings["endpoints"], std::move(keys));
  Traits traits;
  traits.token_lifetime_ms = 24LL * 3'600'000;  // from older documentation of Alibaba Cloud; not confirmed
  traits.visibility_lag_ms = 60'000;
  traits.look_every_ms = 30'000;
  traits.teardown_ms = release_margin_us / 1000;
  traits.dead_man = DeadMan::provider;
  traits.spot_notice_s = notice_us / 1'000'000;
  traits.currency = "CNY";
  cloud::RegionalCloud alibaba{"alibaba", std::move(traits), {std::begin(known_regions), std::end(known_regions)}};
  alibaba.driver_of = [&loop = setup.loop, account](const std::string& name, const Value& settings,
                                                    bool) -> cloud::MadeDriver {
    return cloud::by_zone(loop, "alibaba", settings, [&](const Value& of_zone) -> cloud::MadeDriver {
      RILLE_TRY(Settings own, read_settings(of_zone));
      return std::unique_ptr<cloud::RegionDriver>(std::make_unique<Region>(loop, account, name, std::move(own)));
    });
  };
  return cloud::make_regional(setup, regions, std::move(alibaba));
}

}  // namespace rille::provider
