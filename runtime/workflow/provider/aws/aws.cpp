#include "runtime/workflow/provider/aws/aws.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/loop/together.hpp"
#include "runtime/core/net/credentials/aws/keys.hpp"
#include "runtime/core/net/credentials/aws/profiles.hpp"
#include "runtime/workflow/provider/addressed.hpp"
#include "runtime/workflow/provider/aws/common.hpp"
#include "runtime/workflow/provider/aws/ec2.hpp"
#include "runtime/workflow/provider/aws/iam.hpp"
#include "runtime/workflow/provider/aws/volumes.hpp"
#include "runtime/workflow/provider/aws/zones.hpp"
#include "runtime/workflow/provider/cloud/elsewhere.hpp"
#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/cloud/key_owner.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/cloud/resize.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/cloud/ssh_from.hpp"
#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/lifetime.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::provider {

namespace {

using namespace aws;

constexpr std::int64_t types_last_us = 24LL * 3'600'000'000, prices_last_us = 5LL * 60'000'000;
constexpr std::size_t user_data_bytes_max = 16 << 10;
constexpr std::int64_t gb = 1'000'000'000, patience_ms = 30'000, billing_minimum_s = 60;
constexpr int attempts_max = 3;  // creates of one machine, if another process deletes its groups meanwhile

// The default image: Amazon's, with NVIDIA's driver, Docker and NVIDIA's container toolkit.
constexpr const char* image_owner = "amazon";
// Types with old GPUs need older_image_pattern:
// https://docs.aws.amazon.com/dlami/latest/devguide/important-changes.html
constexpr const char* image_pattern = "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04)*";
constexpr const char* older_image_pattern = "Deep Learning Base Proprietary Nvidia Driver GPU AMI (Ubuntu 2*)*";

// Used only to suggest a name for a misspelled region; regions that are not in this list work as well.
const char* const known_regions[] = {
    "us-east-1",      "us-east-2",      "us-west-1",      "us-west-2",      "af-south-1",     "ap-east-1",
    "ap-east-2",      "ap-south-1",     "ap-south-2",     "ap-southeast-1", "ap-southeast-2", "ap-southeast-3",
    "ap-southeast-4", "ap-southeast-5", "ap-southeast-7", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3",
    "ca-central-1",   "ca-west-1",      "eu-central-1",   "eu-central-2",   "eu-west-1",      "eu-west-2",
    "eu-west-3",      "eu-south-1",     "eu-south-2",     "eu-north-1",     "il-central-1",   "me-south-1",
    "me-central-1",   "mx-central-1",   "sa-east-1",      "cn-north-1",     "cn-northwest-1", "us-gov-east-1",
    "us-gov-west-1"};

struct Settings {
  std::string image, instance_profile, kms_key;
  std::vector<Zone> zones;  // tried in this order
  CommonSettings common;
  std::int64_t disk_bytes = 100 * gb;
  bool public_address = true, capacity_block = false;
  Value reservation, tags, endpoints;
};

// The SSH access, credentials and owner that all regions of this provider share.
struct Account {
  Account(Loop& loop, const Value& endpoints, const std::string& region, cloud::SshKeys keys)
      : access(std::move(keys), "aws", endpoints.text("metadata", "http://169.254.169.254")),
        chain(net::aws::key_chain(loop, endpoints, region)) {}
  cloud::Access access;
  net::CredentialChain chain;
  cloud::KeyOwner owner{"aws", "account"};
};

MachineState state_of(const std::string& state) {
  if (state == "pending") return MachineState::pending;
  if (state == "running") return MachineState::live;
  // A stopped instance keeps its disk, which costs money, so Rille terminates it.
  return state == "terminated" ? MachineState::gone : MachineState::terminating;
}

class Region final : public cloud::RegionDriver,
                     public cloud::AddressListed,
                     public cloud::VolumeMaker,
                     public UsualDisk {
 public:
  Region(Loop& loop, std::shared_ptr<Account> account, const std::string& name, Settings settings)
      : loop_(loop), account_(std::move(account)), settings_(std::move(settings)),
        ec2_(loop, account_->chain, name, settings_.endpoints), common_(loop, ec2_, settings_.common),
        zones_(ec2_, settings_.zones), volumes_(ec2_, settings_.zones, settings_.kms_key, settings_.tags),
        iam_(loop, account_->chain, name, settings_.endpoints) {}
  const std::string& region() const override { return ec2_.region(); }
  bool is_id(std::string_view id) const override {
    return id.starts_with("i-") || id.starts_with("vol-") || Common::is_id(id);
  }

  std::int64_t usual_disk_bytes(const Offer&) const override { return settings_.disk_bytes; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    RILLE_CO_TRY(std::vector<Offer> fitting, co_await fitting_types(query, token));
    if (query.spot) RILLE_CO_CHECK(co_await learn_spot_prices(fitting, token));
    // Amazon's price list has no prices for the regions in China, whose currency is not USD.
    else if (currency_ == "USD") co_await learn_prices(fitting, query.left_out, token);
    std::vector<Offer> out;
    for (Offer& offer : fitting) {
      offer.currency = currency_;
      std::optional<Ec2::ZonePrices> by_zone;
      if (query.spot) {
        const auto at = spot_prices_.find(offer.id);
        if (at == spot_prices_.end()) continue;  // this region has no spot offer of the type
        by_zone = at->second.second;
      } else if (const auto at = prices_.find(offer.id); at != prices_.end()) {
        offer.price_micros_per_hour = at->second.second.micros_per_hour;
        offer.reserved_1y_micros_per_hour = at->second.second.reserved_1y;
        offer.reserved_3y_micros_per_hour = at->second.second.reserved_3y;
      }
      RILLE_CO_TRY(const std::vector<Offer> there, co_await zones_.offers(offer, by_zone, query.zone, token));
      out.insert(out.end(), there.begin(), there.end());
    }
    co_return out;
  }

  const std::vector<VolumeKind>& volume_kinds() const override { return Volumes::kinds(); }
  // The price of a gigabyte comes from the settings (disk_price), as that of a machine's disk.
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken) override {
    Offer offer = provider::volume_offer("aws", wish.kind, region(), price_unknown);
    offer.currency = currency_;
    offer.billing.minimum_s = billing_minimum_s;
    co_return std::vector<Offer>(1, std::move(offer));
  }

  Async<Machine> create(CreateRequest request, std::string type, CancelToken token) override {
    if (is_volume(request)) co_return co_await volumes_.create(std::move(request), std::move(token));
    const TypeName name = read_type_name(type);
    std::string zone_name = name.zone;
    if (const bool with_volumes = !mounts_in(request).empty(); with_volumes) {
      RILLE_CO_CHECK(co_await check_finds_volumes(name.type, token));
      RILLE_CO_TRY(zone_name, co_await zones_.name_of(std::move(zone_name), token));
      RILLE_CO_TRY(zone_name, zone_with(mounts_in(request), zone_name));
    }
    RILLE_CO_TRY(const Zone zone, co_await zones_.of_offer(zone_name, token));
    RILLE_CO_TRY(Parameters order, co_await order_of(request, name.type, token));
    if (!zone.name.empty()) order.emplace_back("Placement.AvailabilityZone", zone.name);
    RILLE_CO_TRY(const int efa_cards, co_await efa_cards_of(request, name.type, token));
    const Common::Order ordered(common_, cluster_in(request));
    for (int attempt = 1;; ++attempt) {
      RILLE_CO_TRY(const Common::SharedIds place, co_await common_.ready(request, efa_cards > 0, token));
      Parameters whole = order;
      add_network(whole, place, zone.subnet, efa_cards);
      const Result<Instance> made = co_await ec2_.run(std::move(whole), request.send_by_wall_us, token);
      if (made) co_return machine_of(*made);
      if (common_.have_gone(made.error(), request) && attempt < attempts_max) continue;
      // EC2 has certainly refused the machine: delete the shared resources made for it, unless a machine uses them.
      if (is_definitive(made.error())) (void)co_await common_.take_back(request, place, token);
      co_return made.error();
    }
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    Machine gone;
    if (id.starts_with("vol-")) {
      RILLE_CO_TRY(const std::optional<Disk> disk, co_await ec2_.disk(std::move(id), token));
      co_return disk ? Volumes::machine_of(*disk) : gone;
    }
    if (Common::is_id(id)) co_return co_await common_.describe(std::move(id), std::move(token));
    Parameters asked{{"InstanceId.1", id}};
    RILLE_CO_TRY(const std::vector<Instance> found, co_await ec2_.describe(std::move(asked), token));
    if (found.empty()) co_return gone;
    RILLE_CO_TRY(Machine machine, machine_of(found.front()));
    if (machine.state == MachineState::live) RILLE_CO_CHECK(co_await volumes_.attach(found.front(), machine, token));
    co_return machine;
  }

  // Also lists volumes, disks that outlived their machine, which cost money, and unused shared resources, which do not.
  // Ended instances, which EC2 lists for an hour, are used only to find out which machines were in a cluster.
  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    Parameters asked{{"Filter.1.Name", "tag-key"}, {"Filter.1.Value.1", tag_key}, {"MaxResults", "1000"}};
    RILLE_CO_TRY(std::vector<Instance> all, co_await ec2_.describe(std::move(asked), token));
    std::vector<Machine> out;
    for (const Instance& instance : all) {
      if (state_of(instance.state) == MachineState::gone) continue;
      RILLE_CO_TRY(Machine m, machine_of(instance));
      out.push_back(std::move(m));
    }
    RILLE_CO_TRY(const std::vector<Disk> disks, co_await ec2_.disks(token));
    for (const Disk& disk : disks)
      if (Volumes::is_shown(disk)) out.push_back(Volumes::machine_of(disk));
    RILLE_CO_TRY(std::vector<Machine> left, co_await common_.left_over(std::move(all), std::move(tag_prefix), token));
    std::move(left.begin(), left.end(), std::back_inserter(out));
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    if (id.starts_with("vol-")) return ec2_.delete_disk(std::move(id), std::move(token));
    if (Common::is_id(id)) return common_.remove(std::move(id), std::move(token));
    return ec2_.terminate(std::move(id), std::move(token));
  }

  // Since February 2024 Amazon charges 0.005 dollars per hour for each public IPv4 address.
  std::optional<Micros> address_micros_per_hour(bool) const override {
    return settings_.public_address ? std::optional<Micros>(5'000) : std::nullopt;
  }
  std::int64_t skew_us() const override { return iam_.skew_us(); }
  Async<std::string> owner(CancelToken token) override {
    cloud::KeyOwner::Ask ask = [this](CancelToken t) { return iam_.account(std::move(t)); };
    co_return co_await account_->owner.get(&account_->chain, std::move(ask), std::move(token));
  }

  Async<Identity> check(CancelToken token) override { return iam_.identity(std::move(token)); }
  Async<std::vector<Quota>> quotas(CancelToken token) override {
    RILLE_CO_TRY(std::vector<Quota> out, co_await iam_.quotas(token));
    for (Quota& quota : out) quota.region = region();
    co_return out;
  }

  Async<> resize(std::string id, std::string type, CancelToken token) override {
    cloud::Resizing how;
    how.type = std::move(type);
    how.look = [this, id](CancelToken t) { return standing(id, std::move(t)); };
    how.stop = [this, id](CancelToken t) { return ec2_.stop(id, std::move(t)); };
    how.change = [this, id](std::string to, CancelToken t) { return ec2_.change_type(id, to, std::move(t)); };
    how.start = [this, id](CancelToken t) { return ec2_.start(id, std::move(t)); };
    co_return co_await cloud::resize_stopped(loop_, std::move(how), std::move(token));
  }

  Async<std::vector<PricePoint>> price_history(OfferQuery query, std::int64_t since_us, CancelToken token) override {
    query.spot = true;
    RILLE_CO_TRY(const std::vector<Offer> fitting, co_await fitting_types(query, token));
    std::vector<std::string> names;
    for (const Offer& offer : fitting) names.push_back(offer.id);
    std::vector<PricePoint> none;
    if (names.empty()) co_return none;
    co_return co_await ec2_.spot_history(std::move(names), since_us, std::move(token));
  }

  SpotMarket market() const override { return {.told = true, .by_zone = true, .knows_before = true}; }
  Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string zone, std::int64_t since_us,
                                             CancelToken token) override {
    std::vector<std::string> types{offer.id};
    RILLE_CO_TRY(std::vector<PricePoint> out, co_await ec2_.spot_history(std::move(types), since_us, std::move(token)));
    std::erase_if(out, [&zone](const PricePoint& point) { return point.zone != zone; });
    co_return out;
  }

 private:
  // Types that match the query in everything but the price, which is not requested yet (one call per type).
  Async<std::vector<Offer>> fitting_types(OfferQuery query, CancelToken token) {
    RILLE_CO_CHECK(co_await learn_types(token));
    std::vector<Offer> all;
    for (const InstanceType& type : types_)
      if (!query.spot || type.spot) all.push_back(offer_of(type));
    co_return cloud::smallest_fitting(all, std::move(query));
  }

  Async<> learn_types(CancelToken token) {
    const std::int64_t now_us = loop_.clock().wall_us();
    if (!types_.empty() && now_us - types_at_us_ <= types_last_us) co_return success();
    RILLE_CO_TRY(types_, co_await ec2_.types(token));
    types_at_us_ = now_us;
    co_return success();
  }

  // The number of network cards to request with an Elastic Fabric Adapter; 0: request none. With a public address it is
  // one card, since EC2 gives no public address to a machine with several interfaces.
  Async<int> efa_cards_of(CreateRequest request, std::string type, CancelToken token) {
    if (!wants_rdma(request) || request.offer.rdma != "efa") co_return 0;
    if (settings_.public_address) co_return 1;
    RILLE_CO_CHECK(co_await learn_types(token));
    for (const InstanceType& one : types_)
      if (one.name == type) co_return std::max(one.efa_cards, 1);
    co_return 1;
  }

  // A first boot finds a volume by its NVMe name, which Xen's devices do not have.
  Async<> check_finds_volumes(std::string type, CancelToken token) {
    RILLE_CO_CHECK(co_await learn_types(std::move(token)));
    for (const InstanceType& one : types_)
      if (one.name == type && one.xen)
        co_return make_error(ErrorKind::capacity, fmt::format("{} has no NVMe, and so cannot mount a volume", type),
                             "rent a type of the Nitro system with volumes");
    co_return success();
  }

  Async<cloud::Standing> standing(std::string id, CancelToken token) {
    Parameters asked{{"InstanceId.1", id}};
    RILLE_CO_TRY(const std::vector<Instance> found, co_await ec2_.describe(std::move(asked), token));
    cloud::Standing out;
    if (found.empty()) co_return out;
    const std::string& state = found.front().state;
    out.type = found.front().type;
    if (state == "running") out.power = cloud::Power::running;
    else if (state == "stopped") out.power = cloud::Power::stopped;
    else if (state != "terminated" && state != "shutting-down") out.power = cloud::Power::between;
    co_return out;
  }

  // Types with GPUs older than Turing (K80, V100, M60), which NVIDIA's open driver does not support.
  static bool wants_older_driver(const std::string& type) {
    for (const char* family : {"p2.", "p3.", "p3dn.", "g3.", "g3s."})
      if (type.starts_with(family)) return true;
    return false;
  }

  static Offer offer_of(const InstanceType& type) {
    Offer offer;
    offer.id = type.name;
    offer.gpu = type.gpu;
    offer.gpu_count = type.gpu_count;
    offer.gpu_memory_bytes = type.gpu_memory_bytes;
    offer.vcpus = type.vcpus;
    offer.memory_bytes = type.memory_bytes;
    offer.price_micros_per_hour = price_unknown;
    offer.billing.minimum_s = billing_minimum_s;
    offer.billing.from_live = true;  // EC2 does not bill an instance while it is pending
    offer.disk_bytes_max = 16'000 * gb;
    offer.network_gbps = type.network_gbps;
    if (type.efa_cards > 0) offer.rdma = "efa";
    offer.disk_kind = type.own_disk ? "nvme" : "network";
    return offer;
  }

  Async<> learn_spot_prices(std::vector<Offer> fitting, CancelToken token) {
    const std::int64_t now_us = loop_.clock().wall_us();
    std::vector<std::string> unknown;
    for (const Offer& offer : fitting) {
      const auto at = spot_prices_.find(offer.id);
      if (at == spot_prices_.end() || now_us - at->second.first > prices_last_us) unknown.push_back(offer.id);
    }
    if (unknown.empty()) co_return success();
    RILLE_CO_TRY(const auto said, co_await ec2_.spot_prices(unknown, token));
    for (const std::string& type : unknown) spot_prices_.erase(type);
    for (const auto& [type, by_zone] : said) spot_prices_[type] = {now_us, by_zone};
    co_return success();
  }

  // Requests on-demand prices, one call per type. A price that cannot be read stays unknown and `left_out` gets the
  // reason; a rent with a budget refuses an offer without a price.
  Task<void> learn_prices(std::vector<Offer> fitting, std::shared_ptr<LeftOut> left_out, CancelToken token) {
    const std::int64_t now_us = loop_.clock().wall_us();
    std::vector<Together<cloud::Price>> asked;
    std::vector<std::string> types;
    for (const Offer& offer : fitting) {
      const std::string type = offer.id;
      const auto at = prices_.find(type);
      if (at != prices_.end() && now_us - at->second.first < types_last_us) continue;
      types.push_back(type);
      asked.push_back({"the price of " + type, [this, type](CancelToken t) { return ec2_.price(type, t); }});
    }
    const auto answers = co_await cloud::in_batches(loop_, std::move(asked), patience_ms, token);
    for (std::size_t i = 0; i < types.size(); ++i)
      if (answers[i] && answers[i]->micros_per_hour != price_unknown) prices_[types[i]] = {now_us, *answers[i]};
    const auto refused = std::find_if(answers.begin(), answers.end(), [](const auto& a) { return !a; });
    if (refused == answers.end() || !left_out) co_return;
    Error why = refused->error();
    why.message = "what its machines cost is not known: " + why.message;
    left_out->unasked.push_back({region(), std::move(why)});
  }

  Async<Parameters> order_of(CreateRequest request, std::string type, CancelToken token) {
    const std::string named = image_in(request, settings_.image);
    const char* const pattern = wants_older_driver(type) ? older_image_pattern : image_pattern;
    Ec2::Image& image = images_[named.empty() ? pattern : named];
    if (image.id.empty() && named.empty()) {
      RILLE_CO_TRY(image, co_await ec2_.image(image_owner, pattern, token));
    } else if (image.id.empty()) {
      RILLE_CO_TRY(image, co_await ec2_.image(named, token));
    }
    RILLE_CO_TRY(const std::string user_data,
                 account_->access.user_data(request, true, user_data_bytes_max, Volumes::boot_disks(request)));
    const std::int64_t disk_bytes = request.disk_bytes ? request.disk_bytes : settings_.disk_bytes;
    Parameters out{{"ImageId", image.id},
                   {"InstanceType", type},
                   {"MinCount", "1"},
                   {"MaxCount", "1"},
                   {"ClientToken", request.token},
                   {"UserData", user_data},
                   {"InstanceInitiatedShutdownBehavior", "terminate"},
                   {"MetadataOptions.HttpTokens", "required"},
                   {"BlockDeviceMapping.1.DeviceName", image.root},
                   {"BlockDeviceMapping.1.Ebs.VolumeSize", std::to_string((disk_bytes + gb - 1) / gb)},
                   {"BlockDeviceMapping.1.Ebs.VolumeType", "gp3"},
                   {"BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"},
                   {"BlockDeviceMapping.1.Ebs.Encrypted", "true"}};
    // Burstable types ("t3.large") bill use beyond their CPU credits by default; "standard" limits them instead.
    if (type.size() > 1 && type[0] == 't' && type[1] >= '0' && type[1] <= '9')
      out.emplace_back("CreditSpecification.CpuCredits", "standard");
    if (!settings_.kms_key.empty()) out.emplace_back("BlockDeviceMapping.1.Ebs.KmsKeyId", settings_.kms_key);
    if (!settings_.instance_profile.empty()) out.emplace_back("IamInstanceProfile.Name", settings_.instance_profile);
    if (!request.offer.spot) add_reservation(out, request, type);
    if (request.offer.spot) {
      out.insert(out.end(), {{"InstanceMarketOptions.MarketType", "spot"},
                             {"InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time"},
                             {"InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate"}});
      const Micros most = std::max(request.cap_micros_per_hour, request.offer.price_micros_per_hour);
      if (most > 0)
        out.emplace_back("InstanceMarketOptions.SpotOptions.MaxPrice",
                         fmt::format("{}.{:06}", most / 1'000'000, most % 1'000'000));
    }
    const std::string cluster = cluster_in(request);
    const Parameters volumes = Volumes::tags_of(request);
    int n = 0;
    for (const char* kind : {"instance", "volume", "network-interface", "spot-instances-request"}) {
      if (std::string_view(kind).starts_with("spot-") && !request.offer.spot) continue;
      const std::string at = fmt::format("TagSpecification.{}.", ++n);
      out.insert(out.end(), {{at + "ResourceType", kind},
                             {at + "Tag.1.Key", tag_key},
                             {at + "Tag.1.Value", request.tag},
                             {at + "Tag.2.Key", "Name"},
                             {at + "Tag.2.Value", request.tag}});
      int tags = 2;
      const auto add = [&](const std::string& key, const std::string& value) {
        out.insert(out.end(),
                   {{fmt::format("{}Tag.{}.Key", at, ++tags), key}, {fmt::format("{}Tag.{}.Value", at, tags), value}});
      };
      if (!cluster.empty()) add(cluster_key, cluster);
      if (std::string_view(kind) == "instance")
        for (const auto& [key, id] : volumes) add(key, id);
      for (const auto& [key, value] : *settings_.tags.as_object()) add(key, *value.as_string());
    }
    co_return out;
  }

  // Adds one network interface per EFA card. The first also carries IP; the others are EFA-only and need no address.
  // https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
  void add_network(Parameters& out, const Common::SharedIds& place, const std::string& subnet, int efa_cards) const {
    if (!place.placement.empty()) out.emplace_back("Placement.GroupName", place.placement);
    if (subnet.empty() && settings_.public_address && efa_cards == 0) {
      out.emplace_back("SecurityGroupId.1", place.group);
      return;
    }
    for (int card = 0; card < std::max(efa_cards, 1); ++card) {
      const std::string at = fmt::format("NetworkInterface.{}.", card + 1);
      out.insert(out.end(), {{at + "DeviceIndex", card == 0 ? "0" : "1"},
                             {at + "SecurityGroupId.1", place.group},
                             {at + "AssociatePublicIpAddress", settings_.public_address ? "true" : "false"},
                             {at + "DeleteOnTermination", "true"}});
      if (efa_cards > 0) out.emplace_back(at + "InterfaceType", card == 0 ? "efa" : "efa-only");
      if (efa_cards > 1) out.emplace_back(at + "NetworkCardIndex", std::to_string(card));
      if (!subnet.empty()) out.emplace_back(at + "SubnetId", subnet);
    }
  }

  void add_reservation(Parameters& out, const CreateRequest& request, const std::string& type) const {
    const std::string reservation = request.extra.text("reservation", cloud::text_for(settings_.reservation, type));
    if (reservation.empty()) return;
    const bool is_group = reservation.starts_with("arn:");
    out.emplace_back(std::string("CapacityReservationSpecification.CapacityReservationTarget.") +
                         (is_group ? "CapacityReservationResourceGroupArn" : "CapacityReservationId"),
                     reservation);
    if (settings_.capacity_block) out.emplace_back("InstanceMarketOptions.MarketType", "capacity-block");
  }

  Result<Machine> machine_of(const Instance& instance) const {
    Machine m;
    m.id = instance.id;
    m.state = state_of(instance.state);
    m.tag = instance.tag;
    m.created_wall_us = instance.launched_wall_us;
    if (m.state == MachineState::live) tell_running(m, instance.launched_wall_us);  // launchTime changes at each start
    if (instance.ended_wall_us) tell_ended(m, instance.ended_wall_us);
    m.details.set("type", instance.type).set("zone", instance.zone);
    if (!instance.reason.empty()) m.details.set("reason", instance.reason);
    const std::string& address = settings_.public_address ? instance.address : instance.private_address;
    RILLE_CHECK(account_->access.reach(m, instance.id, address));
    return m;
  }

  Loop& loop_;
  std::shared_ptr<Account> account_;
  Settings settings_;
  Ec2 ec2_;
  Common common_;
  Zones zones_;
  Volumes volumes_;
  Iam iam_;
  const std::string currency_ = region().starts_with("cn-") ? "CNY" : "USD";
  std::vector<InstanceType> types_;
  std::int64_t types_at_us_ = 0;
  // Prices by type, each with the time of the request in microseconds.
  std::map<std::string, std::pair<std::int64_t, cloud::Price>> prices_;
  std::map<std::string, std::pair<std::int64_t, Ec2::ZonePrices>> spot_prices_;
  std::map<std::string, Ec2::Image> images_;  // cached, by image id or name pattern
};

Result<Settings> read_settings(const Value& of_region) {
  cloud::SettingsReader read("aws", of_region);
  Settings s;
  s.image = read.text("image");
  s.tags = read.tags("tags");
  const std::vector<std::string> subnets = read.one_or_more("subnet", "");
  s.common.security_group = read.text("security_group");
  const std::vector<std::string> zones = read.one_or_more("zone", "");
  s.instance_profile = read.text("instance_profile");
  s.kms_key = read.text("kms_key");
  s.common.vpc = read.text("vpc");
  s.public_address = read.flag("public_address", true);
  s.reservation = read.text_by_type("reservation");
  s.capacity_block = read.flag("capacity_block", false);
  RILLE_TRY(s.common.ssh_from, cloud::read_ssh_from("aws", read.any("ssh_from")));
  s.disk_bytes = read.bytes("disk", s.disk_bytes);
  s.endpoints = read.object("endpoints");
  RILLE_CHECK(read.done({"regions", "traits"}));
  RILLE_TRY(s.zones, pair_zones(zones, subnets));
  return s;
}

}  // namespace

Result<std::unique_ptr<Provider>> make_aws_provider(Setup setup) {
  RILLE_TRY(const auto regions, cloud::region_settings("aws", setup.settings, net::aws::usual_region()));
  RILLE_TRY(cloud::SshKeys keys, cloud::SshKeys::open(setup.config + "/ssh"));
  const auto account =
      std::make_shared<Account>(setup.loop, setup.settings["endpoints"], regions.front().first, std::move(keys));
  Traits traits;
  traits.token_lifetime_ms = 24LL * 3'600'000;
  traits.create_timeout_ms = 300'000;  // create also finds an image and makes a security group
  traits.visibility_lag_ms = 60'000;
  traits.billing_minimum_s = billing_minimum_s;
  traits.look_every_ms = 30'000;
  traits.dead_man = DeadMan::guest;  // a timer in the machine powers it off, which terminates it
  traits.spot_notice_s = 120;
  cloud::RegionalCloud aws{"aws", std::move(traits), {std::begin(known_regions), std::end(known_regions)}};
  aws.driver_of = [&loop = setup.loop, account](const std::string& name, const Value& settings,
                                                bool) -> cloud::MadeDriver {
    RILLE_TRY(Settings own, read_settings(settings));
    return std::unique_ptr<cloud::RegionDriver>(std::make_unique<Region>(loop, account, name, std::move(own)));
  };
  return cloud::make_regional(setup, regions, std::move(aws));
}

}  // namespace rille::provider
