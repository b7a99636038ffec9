#include "runtime/workflow/provider/tencent/tencent.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/tencent/keys.hpp"
#include "runtime/workflow/provider/cloud/elsewhere.hpp"
#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/cloud/key_owner.hpp"
#include "runtime/workflow/provider/cloud/regional.hpp"
#include "runtime/workflow/provider/cloud/resize.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/cloud/zoned.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/tencent/cam.hpp"
#include "runtime/workflow/provider/tencent/cbs.hpp"
#include "runtime/workflow/provider/tencent/cvm.hpp"
#include "runtime/workflow/provider/tencent/volumes.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::provider {

namespace {

using namespace tencent;

constexpr std::int64_t gb = 1'000'000'000;
constexpr std::size_t user_data_bytes_max = 16 << 10;
// The scheduled termination (ActionTime) is this long after the machine's expiry: it must be at least five minutes
// ahead when Tencent Cloud receives the call, possibly long after the call was prepared.
constexpr std::int64_t release_margin_us = 10LL * 60'000'000;

// Used only to suggest a name for a misspelled region; regions that are not in this list work as well.
const char* const known_regions[] = {"ap-beijing",       "ap-shanghai",  "ap-guangzhou", "ap-nanjing",
                                     "ap-chengdu",       "ap-chongqing", "ap-hongkong",  "ap-singapore",
                                     "ap-bangkok",       "ap-jakarta",   "ap-seoul",     "ap-tokyo",
                                     "na-siliconvalley", "na-ashburn",   "sa-saopaulo",  "eu-frankfurt"};

constexpr const char* usual_currency = "CNY";

struct Settings {
  std::string image, vpc, subnet, security_group, zone, disk_kind, currency;
  std::int64_t disk_bytes = 100 * gb;
  bool public_address = true;
  Value tags, endpoints;
};

struct Account {
  Account(Loop& loop, const Value& endpoints, const std::string& region, cloud::SshKeys keys)
      : access(std::move(keys), "tencent", endpoints.text("metadata", "http://metadata.tencentyun.com")),
        chain(net::tencent::key_chain(loop, endpoints, region)) {}
  cloud::Access access;
  net::CredentialChain chain;
  cloud::KeyOwner owner{"tencent", "account"};
};

MachineState state_of(const std::string& state) {
  if (state == "PENDING" || state == "STARTING") return MachineState::pending;
  if (state == "RUNNING" || state == "REBOOTING") return MachineState::live;
  return MachineState::terminating;  // stopped or failed to launch: Rille terminates it
}

class Region final : public cloud::RegionDriver, public cloud::VolumeMaker, public UsualDisk {
 public:
  Region(Loop& loop, std::shared_ptr<Account> account, const std::string& name, Settings settings)
      : loop_(loop), account_(std::move(account)), settings_(std::move(settings)),
        cvm_(loop, account_->chain, name, settings_.endpoints), cbs_(loop, account_->chain, name, settings_.endpoints),
        cam_(loop, account_->chain, name, settings_.endpoints),
        volumes_(cbs_, name, settings_.zone, settings_.currency, settings_.tags) {}
  const std::string& region() const override { return cvm_.region(); }
  bool is_id(std::string_view id) const override { return id.starts_with("ins-") || is_disk(id); }

  std::int64_t usual_disk_bytes(const Offer&) const override { return settings_.disk_bytes; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    if (!query.zone.empty() && query.zone != settings_.zone) co_return std::vector<Offer>();
    RILLE_CO_TRY(std::vector<Offer> out, co_await cvm_.sold(settings_.zone, query.spot, token));
    for (Offer& offer : out) {
      offer.currency = settings_.currency;
      offer.disk_bytes_max = 16'000 * gb;
    }
    co_return out;
  }

  const std::vector<VolumeKind>& volume_kinds() const override { return Volumes::kinds(); }
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken token) override {
    return volumes_.offers(std::move(wish), std::move(token));
  }

  Async<Machine> create(CreateRequest request, std::string type, CancelToken token) override {
    if (is_volume(request)) co_return co_await volumes_.create(std::move(request), std::move(token));
    RILLE_CO_TRY(Value order, order_of(request, type));
    Machine made;
    RILLE_CO_TRY(made.id, co_await cvm_.run(std::move(order), request.send_by_wall_us, token));
    co_return made;
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    Machine gone;
    if (is_disk(id)) {
      RILLE_CO_TRY(const std::optional<Disk> disk, co_await cbs_.disk(std::move(id), token));
      if (!disk || !Volumes::is_shown(*disk)) co_return gone;
      co_return Volumes::machine_of(*disk);
    }
    Value asked;
    asked.set("InstanceIds", Value::Array{Value(id)});
    RILLE_CO_TRY(const std::vector<Instance> found, co_await cvm_.describe(std::move(asked), token));
    if (found.empty()) co_return gone;
    RILLE_CO_TRY(Machine machine, machine_of(found.front()));
    if (machine.state == MachineState::live) RILLE_CO_CHECK(co_await volumes_.attach(found.front(), machine, token));
    co_return machine;
  }

  // Lists machines, volumes, and also disks that outlived their machine, which cost money.
  Async<std::vector<Machine>> list(std::string, CancelToken token) override {
    Value asked;
    asked.set("Filters", Value::Array{Value().set("Name", "tag-key").set("Values", Value::Array{Value(tag_key)})});
    RILLE_CO_TRY(const std::vector<Instance> all, co_await cvm_.describe(std::move(asked), token));
    std::vector<Machine> out;
    for (const Instance& instance : all) {
      RILLE_CO_TRY(Machine m, machine_of(instance));
      out.push_back(std::move(m));
    }
    RILLE_CO_TRY(const std::vector<Disk> disks, co_await cbs_.disks(token));
    for (const Disk& disk : disks)
      if (Volumes::is_shown(disk)) out.push_back(Volumes::machine_of(disk));
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    if (is_disk(id)) return cbs_.remove(std::move(id), std::move(token));
    return cvm_.terminate(std::move(id), std::move(token));
  }

  std::int64_t skew_us() const override { return cam_.skew_us(); }
  Async<std::string> owner(CancelToken token) override {
    cloud::KeyOwner::Ask ask = [this](CancelToken t) { return cam_.account(std::move(t)); };
    co_return co_await account_->owner.get(&account_->chain, std::move(ask), std::move(token));
  }

  // The identity comes from STS, which is global; the quotas call proves that the keys have access to this region.
  Async<Identity> check(CancelToken token) override {
    RILLE_CO_TRY(const Identity out, co_await cam_.identity(token));
    RILLE_CO_CHECK(co_await cvm_.quotas(token));
    RILLE_CO_CHECK(co_await cbs_.disks(token));  // a release needs the permission to list disks
    co_return out;
  }

  Async<std::vector<Quota>> quotas(CancelToken token) override { return cvm_.quotas(std::move(token)); }

  Async<> resize(std::string id, std::string type, CancelToken token) override {
    cloud::Resizing how;
    how.type = std::move(type);
    how.look = [this, id](CancelToken t) { return standing(id, std::move(t)); };
    how.stop = [this, id](CancelToken t) { return cvm_.stop(id, std::move(t)); };
    how.change = [this, id](std::string to, CancelToken t) { return cvm_.change_type(id, to, std::move(t)); };
    how.start = [this, id](CancelToken t) { return cvm_.start(id, std::move(t)); };
    co_return co_await cloud::resize_stopped(loop_, std::move(how), std::move(token));
  }

  SpotMarket market() const override { return {.told = true, .by_zone = true}; }
  Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string zone, std::int64_t, CancelToken token) override {
    PricePoint now;
    now.type = offer.id;
    now.zone = zone;
    now.currency = settings_.currency;
    RILLE_CO_TRY(now.micros_per_hour, co_await cvm_.spot_price(offer.id, std::move(zone), std::move(token)));
    co_return std::vector<PricePoint>(now.micros_per_hour == price_unknown ? 0 : 1, now);
  }

 private:
  static bool is_disk(std::string_view id) { return id.starts_with("disk-"); }

  Async<cloud::Standing> standing(std::string id, CancelToken token) {
    Value asked;
    asked.set("InstanceIds", Value::Array{Value(id)});
    RILLE_CO_TRY(const std::vector<Instance> found, co_await cvm_.describe(std::move(asked), token));
    cloud::Standing out;
    if (found.empty()) co_return out;
    const std::string& state = found.front().state;
    out.type = found.front().type;
    if (state == "RUNNING") out.power = cloud::Power::running;
    else if (state == "STOPPED") out.power = cloud::Power::stopped;
    else if (!state.empty() && state != "TERMINATING") out.power = cloud::Power::between;
    co_return out;
  }

  Result<Value> order_of(const CreateRequest& request, const std::string& type) const {
    const std::string image = image_in(request, settings_.image);
    for (const auto& [name, value] : {std::pair("image", &image), std::pair("zone", &settings_.zone),
                                      std::pair("security_group", &settings_.security_group)})
      if (value->empty())
        return make_error(ErrorKind::config, fmt::format("tencent: region {} has no {}", region(), name),
                          "name a zone, an image and a security group that allows port 22, in the provider's "
                          "settings");
    RILLE_CHECK(zone_with(mounts_in(request), settings_.zone));
    RILLE_TRY(const std::string user_data,
              account_->access.user_data(request, false, user_data_bytes_max, Volumes::boot_disks(request)));
    const std::int64_t disk_bytes = request.disk_bytes ? request.disk_bytes : settings_.disk_bytes;
    Value::Array tags{Value().set("Key", tag_key).set("Value", request.tag)};
    Volumes::add_tags(request, tags);
    cloud::add_tags(tags, settings_.tags, "Key", "Value");
    Value out;
    out.set("InstanceType", type).set("ImageId", image).set("InstanceCount", 1);
    out.set("InstanceName", request.tag).set("ClientToken", request.token).set("UserData", user_data);
    out.set("Placement", Value().set("Zone", settings_.zone));
    out.set("SystemDisk", Value().set("DiskType", settings_.disk_kind).set("DiskSize", (disk_bytes + gb - 1) / gb));
    out.set("SecurityGroupIds", Value::Array{Value(settings_.security_group)});
    if (!settings_.subnet.empty())
      out.set("VirtualPrivateCloud", Value().set("VpcId", settings_.vpc).set("SubnetId", settings_.subnet));
    out.set("InternetAccessible", Value()
                                      .set("InternetChargeType", "TRAFFIC_POSTPAID_BY_HOUR")
                                      .set("InternetMaxBandwidthOut", settings_.public_address ? 100 : 0)
                                      .set("PublicIpAssigned", settings_.public_address));
    out.set("TagSpecification", Value::Array{Value().set("ResourceType", "instance").set("Tags", tags)});
    if (request.expires_wall_us > 0)
      out.set("ActionTimer", Value()
                                 .set("TimerAction", "TerminateInstances")
                                 .set("ActionTime", format_utc(request.expires_wall_us + release_margin_us)));
    out.set("InstanceChargeType", request.offer.spot ? "SPOTPAID" : by_use);
    if (!request.offer.spot) return out;
    const Micros most = std::max(request.cap_micros_per_hour, request.offer.price_micros_per_hour);
    Value options;
    options.set("SpotInstanceType", "one-time");
    if (most > 0) options.set("MaxPrice", fmt::format("{}.{:06}", most / 1'000'000, most % 1'000'000));
    out.set("InstanceMarketOptions", Value().set("MarketType", "spot").set("SpotOptions", std::move(options)));
    return out;
  }

  Result<Machine> machine_of(const Instance& instance) const {
    Machine m;
    m.id = instance.id;
    m.state = state_of(instance.state);
    m.tag = instance.tag;
    m.created_wall_us = instance.created_wall_us;
    m.details.set("type", instance.type).set("zone", instance.zone);
    if (!instance.problem.empty()) m.details.set("problem", instance.problem);
    const std::string& address = settings_.public_address ? instance.address : instance.private_address;
    RILLE_CHECK(account_->access.reach(m, instance.id, address));
    return m;
  }

  Loop& loop_;
  std::shared_ptr<Account> account_;
  Settings settings_;
  Cvm cvm_;
  Cbs cbs_;
  Cam cam_;
  Volumes volumes_;
};

Result<Settings> read_settings(const Value& of_region) {
  cloud::SettingsReader read("tencent", of_region);
  Settings s;
  s.image = read.text("image");
  s.tags = read.tags("tags");
  s.zone = read.text("zone");
  s.vpc = read.text("vpc");
  s.subnet = read.text("subnet");
  s.security_group = read.text("security_group");
  s.disk_kind = read.text("disk_kind", "CLOUD_BSSD");
  s.disk_bytes = read.bytes("disk", s.disk_bytes);
  s.endpoints = read.object("endpoints");
  s.currency = read.text("currency", usual_currency);
  s.public_address = read.flag("public_address", true);
  RILLE_CHECK(read.done({"regions", "traits"}));
  if (s.currency != "CNY" && s.currency != "USD")  // prices are in the account's currency, which the API does not name
    return make_error(ErrorKind::config, fmt::format("tencent: currency = \"{}\"", s.currency),
                      "\"CNY\", or \"USD\" for an account of the international site");
  return s;
}

}  // namespace

Result<std::unique_ptr<Provider>> make_tencent_provider(Setup setup) {
  const std::string usual = net::environment("TENCENTCLOUD_REGION");
  RILLE_TRY(const auto regions,
            cloud::region_settings("tencent", setup.settings, usual.empty() ? "ap-guangzhou" : usual));
  RILLE_TRY(cloud::SshKeys keys, cloud::SshKeys::open(setup.config + "/ssh"));
  const auto account =
      std::make_shared<Account>(setup.loop, setup.settings["endpoints"], regions.front().first, std::move(keys));
  const auto currency_of = [](const Value& settings) { return settings.text("currency", usual_currency); };
  const std::string currency = currency_of(regions.front().second);
  for (const auto& [name, settings] : regions)
    if (currency_of(settings) != currency)
      return make_error(ErrorKind::config,
                        fmt::format("tencent: region {} has the currency {}, another region {}", name,
                                    currency_of(settings), currency),
                        "an account has one currency: set it once, next to \"regions\"");
  Traits traits;
  traits.token_lifetime_ms = 0;  // token support is not confirmed: after an uncertain create Rille searches by tag
  traits.visibility_lag_ms = 60'000;
  traits.teardown_ms = release_margin_us / 1000;
  traits.look_every_ms = price_look_every_ms;
  traits.dead_man = DeadMan::provider;
  traits.spot_notice_s = 120;
  traits.currency = currency;
  cloud::RegionalCloud tencent{"tencent", std::move(traits), {std::begin(known_regions), std::end(known_regions)}};
  tencent.driver_of = [&loop = setup.loop, account](const std::string& name, const Value& settings,
                                                    bool) -> cloud::MadeDriver {
    return cloud::by_zone(loop, "tencent", settings, [&](const Value& of_zone) -> cloud::MadeDriver {
      RILLE_TRY(Settings own, read_settings(of_zone));
      return std::unique_ptr<cloud::RegionDriver>(std::make_unique<Region>(loop, account, name, std::move(own)));
    });
  };
  return cloud::make_regional(setup, regions, std::move(tencent));
}

}  // namespace rille::provider
