#include "runtime/workflow/provider/huawei/huawei.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/huawei/keys.hpp"
#include "runtime/workflow/provider/cloud/elsewhere.hpp"
#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/cloud/key_owner.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/cloud/wait.hpp"
#include "runtime/workflow/provider/cloud/zoned.hpp"
#include "runtime/workflow/provider/huawei/ecs.hpp"
#include "runtime/workflow/provider/huawei/volumes.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::provider {

namespace {

using namespace huawei;

constexpr std::int64_t gb = 1'000'000'000;
constexpr std::size_t user_data_bytes_max = 32 << 10, name_length_max = 64;
// A server's auto_terminate_time is this long after its expiry: it must be at least 30 minutes ahead when Huawei
// receives the call, possibly long after the call was prepared.
constexpr std::int64_t release_margin_us = 35LL * 60'000'000;

// Used only to suggest a name for a misspelled region; regions that are not in this list work as well.
const char* const known_regions[] = {"cn-north-1",     "cn-north-4",     "cn-north-9",     "cn-east-2",
                                     "cn-east-3",      "cn-south-1",     "cn-south-2",     "cn-southwest-2",
                                     "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4",
                                     "af-south-1",     "la-north-2",     "la-south-2",     "na-mexico-1",
                                     "sa-brazil-1",    "tr-west-1",      "eu-west-101"};

struct Settings {
  std::string project, image, vpc, subnet, security_group, zone, disk_kind, address_kind, kms_key;
  std::int64_t disk_bytes = 100 * gb;
  bool reserved_prices = false, public_address = true;
  Value tags, endpoints;
};

struct Account {
  Account(Loop& loop, const Value& endpoints, const std::string& region, cloud::SshKeys keys)
      : access(std::move(keys), "huawei", endpoints.text("metadata", "http://169.254.169.254")),
        chain(net::huawei::key_chain(loop, endpoints, region)) {}
  cloud::Access access;
  net::CredentialChain chain;
  cloud::KeyOwner owner{"huawei", "account"};
};

MachineState state_of(const Server& server) {
  if (server.status == "BUILD") return MachineState::pending;
  if (server.status == "DELETED") return MachineState::gone;
  const bool runs = server.status == "ACTIVE" || server.status == "REBOOT" || server.status == "HARD_REBOOT";
  const bool ends = server.task == "deleting" || server.task == "soft-deleting" || server.task == "powering-off";
  return runs && !ends ? MachineState::live : MachineState::terminating;  // a stopped server's disk costs money
}

class Region final : public cloud::RegionDriver, public cloud::VolumeMaker, public UsualDisk {
 public:
  Region(Loop& loop, std::shared_ptr<Account> account, const std::string& name, Settings settings)
      : loop_(loop), account_(std::move(account)), settings_(std::move(settings)),
        ecs_(loop, account_->chain, name, settings_.project, settings_.endpoints),
        prices_(loop,
                [this](std::string type, bool spot, CancelToken t) {
                  return ecs_.price(type, settings_.zone, spot, settings_.reserved_prices && !spot, t);
                }),
        volumes_(ecs_, settings_.zone, settings_.kms_key, settings_.tags) {}
  const std::string& region() const override { return ecs_.region(); }
  bool is_id(std::string_view id) const override {
    if (is_disk(id)) id.remove_prefix(disk_prefix.size());
    return id.size() == 36 && id[8] == '-' && id[23] == '-';
  }

  std::int64_t usual_disk_bytes(const Offer&) const override { return settings_.disk_bytes; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    if (!query.zone.empty() && query.zone != settings_.zone) co_return std::vector<Offer>();
    RILLE_CO_TRY(const std::vector<Offer> all, co_await ecs_.flavors(settings_.zone, query.spot, token));
    if (all.empty() && !query.spot)
      co_return make_error(ErrorKind::config,
                           fmt::format("huawei: region '{}' has no offers in the zone '{}'", region(), settings_.zone),
                           "name a zone of that region in the provider's settings");
    std::vector<Offer> fitting = cloud::smallest_fitting(all, query);
    RILLE_CO_TRY(std::vector<Offer> out, co_await prices_.priced(std::move(fitting), query, region(), token));
    for (Offer& offer : out) offer.disk_bytes_max = 1'000 * gb;
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
    RILLE_CO_TRY(made.id, co_await ecs_.create(std::move(order), request.token, request.send_by_wall_us, token));
    co_return made;
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    if (is_disk(id)) co_return co_await describe_disk(std::move(id), std::move(token));
    RILLE_CO_TRY(const Server found, co_await ecs_.describe(id, token));
    RILLE_CO_TRY(Machine machine, machine_of(found));
    if (machine.state == MachineState::live) RILLE_CO_CHECK(co_await volumes_.attach(found, machine, token));
    co_return machine;
  }

  // Lists servers, volumes, and also disks that outlived their server, which cost money.
  Async<std::vector<Machine>> list(std::string, CancelToken token) override {
    RILLE_CO_TRY(const std::vector<Server> all, co_await ecs_.list(token));
    std::vector<Machine> out;
    for (const Server& server : all) {
      RILLE_CO_TRY(Machine m, machine_of(server));
      out.push_back(std::move(m));
    }
    RILLE_CO_TRY(const std::vector<Disk> disks, co_await ecs_.disks(token));
    for (const Disk& disk : disks)
      if (Volumes::is_shown(disk)) out.push_back(Volumes::machine_of(disk));
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    if (is_disk(id)) return ecs_.remove_disk(id.substr(disk_prefix.size()), std::move(token));
    return ecs_.remove(std::move(id), std::move(token));
  }

  std::int64_t skew_us() const override { return ecs_.skew_us(); }
  Async<std::string> owner(CancelToken token) override {
    cloud::KeyOwner::Ask ask = [this](CancelToken t) { return ecs_.domain(std::move(t)); };
    co_return co_await account_->owner.get(&account_->chain, std::move(ask), std::move(token));
  }

  Async<Identity> check(CancelToken token) override {
    RILLE_CO_TRY(const net::FoundKeys found, co_await account_->chain.get(token));
    RILLE_CO_CHECK(co_await ecs_.quotas(token));  // proves that the keys have access to this project
    RILLE_CO_CHECK(co_await ecs_.disks(token));   // a release needs the permission to list disks
    RILLE_CO_TRY(Identity out, co_await ecs_.identity(found.keys.id, token));
    out.from = found.from;
    if (!found.keys.token.empty()) out.age_unknown = "temporary keys, which end by themselves";
    co_return out;
  }

  Async<std::vector<Quota>> quotas(CancelToken token) override { return ecs_.quotas(std::move(token)); }
  // Does nothing if the server already has the type: an earlier process may have started the job.
  Async<> resize(std::string id, std::string type, CancelToken token) override {
    RILLE_CO_TRY(const Server now, co_await ecs_.describe(id, token));
    if (now.type == type && now.status == "ACTIVE") co_return success();
    co_return co_await ecs_.resize(std::move(id), std::move(type), std::move(token));
  }

  SpotMarket market() const override { return {.told = true, .by_zone = true}; }
  Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string zone, std::int64_t, CancelToken token) override {
    RILLE_CO_TRY(const cloud::Price price, co_await ecs_.price(offer.id, zone, true, false, std::move(token)));
    PricePoint now;
    now.type = offer.id;
    now.zone = zone;
    now.currency = price.currency;
    now.micros_per_hour = price.micros_per_hour;
    co_return std::vector<PricePoint>(now.micros_per_hour == price_unknown ? 0 : 1, now);
  }

 private:
  static bool is_disk(std::string_view id) { return id.starts_with(disk_prefix); }

  Async<Machine> describe_disk(std::string id, CancelToken token) {
    Machine gone;
    RILLE_CO_TRY(const std::optional<Disk> disk, co_await ecs_.disk(id.substr(disk_prefix.size()), std::move(token)));
    if (!disk || !Volumes::is_shown(*disk)) co_return gone;
    co_return Volumes::machine_of(*disk);
  }

  Result<Value> order_of(const CreateRequest& request, const std::string& type) const {
    const std::string image = image_in(request, settings_.image);
    for (const auto& [name, value] :
         {std::pair("zone", &settings_.zone), std::pair("image", &image), std::pair("vpc", &settings_.vpc),
          std::pair("subnet", &settings_.subnet), std::pair("security_group", &settings_.security_group)})
      if (value->empty())
        return make_error(ErrorKind::config, fmt::format("huawei: region {} has no {}", region(), name),
                          "name a zone, an image, a VPC, a subnet and a security group that allows port 22, in the "
                          "provider's settings");
    RILLE_CHECK(zone_with(mounts_in(request), settings_.zone));
    RILLE_TRY(const std::string user_data,
              account_->access.user_data(request, false, user_data_bytes_max, Volumes::boot_disks(request)));
    const std::int64_t disk_bytes = request.disk_bytes ? request.disk_bytes : settings_.disk_bytes;
    Value out;
    out.set("name", cloud::resource_name(request.tag, name_length_max)).set("flavorRef", type).set("count", 1);
    out.set("imageRef", image).set("vpcid", settings_.vpc).set("availability_zone", settings_.zone);
    out.set("nics", Value::Array{Value().set("subnet_id", settings_.subnet)});
    out.set("security_groups", Value::Array{Value().set("id", settings_.security_group)});
    Value root;
    root.set("volumetype", settings_.disk_kind).set("size", (disk_bytes + gb - 1) / gb);
    if (!settings_.kms_key.empty())
      root.set("metadata", Value().set("__system__encrypted", "1").set("__system__cmkid", settings_.kms_key));
    out.set("root_volume", std::move(root));
    out.set("user_data", user_data);
    const std::string tag = short_tag(request.tag);
    if (tag.size() > tag_value_max)
      return make_error(ErrorKind::invalid,
                        fmt::format("huawei: the machine's tag {} is longer than {} characters", tag, tag_value_max),
                        "this is a bug of Rille: please report it");
    Value::Array tags{Value().set("key", tag_key).set("value", tag)};
    cloud::add_tags(tags, settings_.tags, "key", "value");
    out.set("server_tags", std::move(tags));
    if (Value metadata = Volumes::metadata_of(request); !metadata.is_null()) out.set("metadata", std::move(metadata));
    Value bandwidth;
    bandwidth.set("size", 100).set("sharetype", "PER").set("chargemode", "traffic");
    Value eip;
    eip.set("iptype", settings_.address_kind).set("bandwidth", std::move(bandwidth));
    if (settings_.public_address)
      out.set("publicip", Value().set("eip", std::move(eip)).set("delete_on_termination", true));
    if (request.expires_wall_us > 0)
      out.set("auto_terminate_time", format_utc(request.expires_wall_us + release_margin_us));
    Value more;
    more.set("chargingMode", 0).set("regionID", region());
    if (request.offer.spot) {
      const Micros most = std::max(request.cap_micros_per_hour, request.offer.price_micros_per_hour);
      more.set("marketType", "spot").set("support_auto_recovery", "false");
      if (most > 0) more.set("spotPrice", cloud::price_text(most));  // if absent: the on-demand price is the maximum
    }
    out.set("extendparam", std::move(more));
    return out;
  }

  Result<Machine> machine_of(const Server& server) const {
    Machine m;
    m.id = server.id;
    m.state = state_of(server);
    m.tag = server.tag;
    m.created_wall_us = server.created_wall_us;
    m.details.set("type", server.type).set("zone", server.zone);
    if (!server.problem.empty()) m.details.set("problem", server.problem);
    const std::string& address = settings_.public_address ? server.address : server.private_address;
    RILLE_CHECK(account_->access.reach(m, server.id, address));
    return m;
  }

  Loop& loop_;
  std::shared_ptr<Account> account_;
  Settings settings_;
  Ecs ecs_;
  cloud::PriceBook prices_;
  Volumes volumes_;
};

// `named`: the provider's settings name the region. `only`: no other region is configured.
Result<Settings> read_settings(const Value& of_region, bool named, bool only) {
  cloud::SettingsReader read("huawei", of_region);
  Settings s;
  // A project belongs to one region, so HUAWEICLOUD_SDK_PROJECT_ID applies only if one region is configured.
  s.project = read.text("project", only ? net::environment("HUAWEICLOUD_SDK_PROJECT_ID") : "");
  if (!named) s.project.clear();  // the region's project is requested from IAM
  s.image = read.text("image");
  s.tags = read.tags("tags");
  s.zone = read.text("zone");
  s.vpc = read.text("vpc");
  s.subnet = read.text("subnet");
  s.security_group = read.text("security_group");
  s.disk_kind = read.text("disk_kind", "GPSSD");
  s.address_kind = read.text("address_kind", "5_bgp");
  s.kms_key = read.text("kms_key");
  s.public_address = read.flag("public_address", true);
  s.disk_bytes = read.bytes("disk", s.disk_bytes);
  s.reserved_prices = read.flag("reserved_prices", false);
  s.endpoints = read.object("endpoints");
  RILLE_CHECK(read.done({"regions", "traits"}));
  return s;
}

}  // namespace

Result<std::unique_ptr<Provider>> make_huawei_provider(Setup setup) {
  const std::string usual = net::environment("HUAWEICLOUD_SDK_REGION_ID");
  RILLE_TRY(const auto regions, cloud::region_settings("huawei", setup.settings, usual.empty() ? "cn-north-4" : usual));
  RILLE_TRY(cloud::SshKeys keys, cloud::SshKeys::open(setup.config + "/ssh"));
  const auto account =
      std::make_shared<Account>(setup.loop, setup.settings["endpoints"], regions.front().first, std::move(keys));
  Traits traits;
  traits.token_lifetime_ms = 0;        // not documented: after an uncertain create Rille searches by tag
  traits.create_timeout_ms = 360'000;  // create waits for Huawei's job
  traits.visibility_lag_ms = 60'000;
  traits.teardown_ms = release_margin_us / 1000;
  traits.look_every_ms = price_look_every_ms;
  traits.dead_man = DeadMan::provider;
  traits.spot_notice_s = 300;
  traits.currency = "CNY";
  cloud::RegionalCloud huawei{"huawei", std::move(traits), {std::begin(known_regions), std::end(known_regions)}, true};
  huawei.driver_of = [&loop = setup.loop, account, only = regions.size() == 1](
                         const std::string& name, const Value& settings, bool named) -> cloud::MadeDriver {
    return cloud::by_zone(loop, "huawei", settings, [&](const Value& of_zone) -> cloud::MadeDriver {
      RILLE_TRY(Settings own, read_settings(of_zone, named, only));
      return std::unique_ptr<cloud::RegionDriver>(std::make_unique<Region>(loop, account, name, std::move(own)));
    });
  };
  return cloud::make_regional(setup, regions, std::move(huawei));
}

}  // namespace rille::provider
