#include "runtime/workflow/provider/gcp/gcp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/gcp/federation.hpp"
#include "runtime/core/net/credentials/gcp/keys.hpp"
#include "runtime/workflow/provider/addressed.hpp"
#include "runtime/workflow/provider/cloud/elsewhere.hpp"
#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/cloud/resize.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/cloud/ssh_from.hpp"
#include "runtime/workflow/provider/cloud/wait.hpp"
#include "runtime/workflow/provider/gcp/compute.hpp"
#include "runtime/workflow/provider/gcp/volumes.hpp"
#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/lifetime.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/type_of.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::provider {

namespace {

using namespace gcp;

constexpr std::int64_t gb = 1'000'000'000;
constexpr std::int64_t types_last_us = 24LL * 3'600'000'000, spot_prices_last_us = types_last_us / 2;
constexpr std::size_t user_data_bytes_max = 200 << 10, name_length_max = 63, rule_length_max = 60;
constexpr std::string_view rules_begin = "global/firewalls/";
// A machine's termination is requested as a point in time, not a duration, so that a repeated request is identical. It
// may be at most 120 days ahead:
// https://cloud.google.com/compute/docs/instances/limit-vm-runtime
constexpr std::int64_t run_s_max = 120LL * 86'400, release_margin_s = 300;

// Used only to suggest a name for a misspelled region; regions that are not in this list work as well.
const char* const known_regions[] = {"us-central1",
                                     "us-east1",
                                     "us-east4",
                                     "us-east5",
                                     "us-south1",
                                     "us-west1",
                                     "us-west2",
                                     "us-west3",
                                     "us-west4",
                                     "northamerica-northeast1",
                                     "northamerica-northeast2",
                                     "northamerica-south1",
                                     "southamerica-east1",
                                     "southamerica-west1",
                                     "europe-west1",
                                     "europe-west2",
                                     "europe-west3",
                                     "europe-west4",
                                     "europe-west6",
                                     "europe-west8",
                                     "europe-west9",
                                     "europe-west10",
                                     "europe-west12",
                                     "europe-central2",
                                     "europe-north1",
                                     "europe-north2",
                                     "europe-southwest1",
                                     "asia-east1",
                                     "asia-east2",
                                     "asia-northeast1",
                                     "asia-northeast2",
                                     "asia-northeast3",
                                     "asia-south1",
                                     "asia-south2",
                                     "asia-southeast1",
                                     "asia-southeast2",
                                     "australia-southeast1",
                                     "australia-southeast2",
                                     "me-west1",
                                     "me-central1",
                                     "me-central2",
                                     "africa-south1"};

struct Settings {
  std::string project, image, vpc, subnet, security_group, disk_kind, kms_key;
  std::vector<std::string> zones;  // tried in this order
  std::int64_t disk_bytes = 100 * gb;
  bool public_address = true;
  std::vector<std::string> ssh_from;  // address ranges allowed to use SSH; empty: the network's own rules decide
  Value reservation, tags, endpoints;
};

struct Account {
  Account(Loop& loop, const std::string& key, const Value& endpoints, cloud::SshKeys keys)
      : access(std::move(keys), "gcp", endpoints.text("metadata", "http://metadata.google.internal")), named_key(key),
        chain(net::gcp::key_chain(loop, key, endpoints)) {}
  cloud::Access access;
  std::string named_key;  // path of the key file named in the settings
  net::CredentialChain chain;
};

MachineState state_of(const std::string& status) {
  if (status == "PROVISIONING" || status == "STAGING" || status == "REPAIRING") return MachineState::pending;
  if (status == "RUNNING") return MachineState::live;
  return MachineState::terminating;  // Google's TERMINATED means stopped: its disk still costs money
}

// The label value for a tag. A tag that is not a valid label value is converted; the metadata then holds the full tag.
std::string label_of(const std::string& tag) {
  constexpr const char* allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_";
  const bool fits = tag.size() <= name_length_max && tag.find_first_not_of(allowed) == std::string::npos;
  return fits ? tag : cloud::resource_name(tag, name_length_max);
}

// Google runs the startup script as root at every boot; the line added here ends it at all boots after the first.
Result<std::string> startup_script(const std::string& base64) {
  RILLE_TRY(std::string script, from_base64(base64));
  const std::string once = fmt::format("[ -e {}/machine.json ] && exit 0\n", cloud::instance_directory);
  script.insert(script.find('\n') + 1, once);
  return script;
}

// Google's Deep Learning image, whose name ends with NVIDIA's driver branch (580); for machines without GPUs Ubuntu.
constexpr const char* gpu_image =
    "projects/deeplearning-platform-release/global/images/family/common-cu129-ubuntu-2204-nvidia-580";
constexpr const char* plain_image = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64";

class Region final : public cloud::RegionDriver,
                     public cloud::AddressListed,
                     public cloud::VolumeMaker,
                     public UsualDisk {
 public:
  Region(Loop& loop, std::shared_ptr<Account> account, const std::string& name, Settings settings)
      : loop_(loop), account_(std::move(account)), settings_(std::move(settings)),
        compute_(loop, account_->chain, name, settings_.project, settings_.endpoints),
        volumes_(compute_, settings_.kms_key, settings_.tags), owner_(fmt::format("project {}", settings_.project)) {}
  const std::string& region() const override { return compute_.region(); }
  bool is_id(std::string_view id) const override { return id.find('/') != id.npos; }

  std::int64_t usual_disk_bytes(const Offer&) const override { return settings_.disk_bytes; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    RILLE_CO_CHECK(check_zones());
    const std::int64_t now_us = loop_.clock().wall_us();
    if (types_.empty() || now_us - types_at_us_ > types_last_us) {
      std::vector<Offer> types;
      for (const std::string& zone : settings_.zones) {
        RILLE_CO_TRY(std::vector<Offer> there, co_await compute_.types(zone, token));
        for (Offer& offer : there) {
          if (zone != settings_.zones.front()) offer.id += "@" + zone;
          types.push_back(std::move(offer));
        }
      }
      types_ = std::move(types);
      types_at_us_ = now_us;
    }
    RILLE_CO_CHECK(co_await learn_prices(query.spot, types_last_us, token));
    const PriceList& prices = prices_[query.spot].second;
    std::vector<Offer> out = types_;
    if (!query.zone.empty())
      std::erase_if(out, [&](const Offer& offer) { return zone_of(read_type(offer.id)) != query.zone; });
    for (Offer& offer : out) {
      offer.price_micros_per_hour = price_of(offer, prices.now);
      offer.reserved_1y_micros_per_hour = price_of(offer, prices.year);
      offer.reserved_3y_micros_per_hour = price_of(offer, prices.three_years);
      offer.disk_bytes_max = 64'000 * gb;
      offer.billing = {1, 60, 0, true};
    }
    co_return out;
  }

  const std::vector<VolumeKind>& volume_kinds() const override { return Volumes::kinds(); }
  // The price of a gigabyte comes from the settings (disk_price), as that of a machine's disk.
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken) override {
    Offer offer = provider::volume_offer("gcp", wish.kind, region(), price_unknown);
    co_return std::vector<Offer>(1, std::move(offer));
  }

  Async<Machine> create(CreateRequest request, std::string type, CancelToken token) override {
    RILLE_CO_CHECK(check_zones());
    if (is_volume(request))
      co_return co_await volumes_.create(std::move(request), settings_.zones.front(), std::move(token));
    TypeName name = read_type(type);
    name.zone = zone_of(name);
    RILLE_CO_CHECK(zone_with(mounts_in(request), name.zone));
    RILLE_CO_CHECK(Volumes::check_type(request, name.machine));
    RILLE_CO_TRY(Value order, order_of(request, name));
    Machine made;
    made.id = name.zone + "/" + order.text("name");
    const std::string own = order.text("name"), rule = rule_name(request.tag);
    Result<> done;
    if (!settings_.ssh_from.empty())
      done = co_await compute_.narrow_ssh(own, rule, request.tag, settings_.vpc, settings_.ssh_from, token);
    if (done)
      done = co_await compute_.insert(name.zone, std::move(order), request.token, request.send_by_wall_us, token);
    if (done) co_return made;
    // Google has certainly refused the machine: delete the firewall rules made for it.
    if (is_definitive(done.error()) && !settings_.ssh_from.empty()) co_await widen_again(name.zone, own, rule, token);
    co_return done.error();
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    const ResourceId place = read_id(id);
    if (place.is_rule) {
      RILLE_CO_TRY(const Rule rule, co_await compute_.describe_rule(place.name, token));
      co_return machine_of(rule);
    }
    if (place.is_disk) {
      RILLE_CO_TRY(const Disk disk, co_await compute_.describe_disk(place.zone, place.name, token));
      co_return Volumes::machine_of(disk);
    }
    RILLE_CO_TRY(const Instance found, co_await compute_.describe(place.zone, place.name, token));
    RILLE_CO_TRY(Machine machine, machine_of(found));
    if (machine.state == MachineState::live) RILLE_CO_CHECK(co_await volumes_.attach(found, machine, token));
    co_return machine;
  }

  Async<std::vector<Machine>> list(std::string, CancelToken token) override {
    RILLE_CO_TRY(const std::vector<Instance> all, co_await compute_.list(token));
    std::vector<Machine> out;
    for (const Instance& instance : all) {
      RILLE_CO_TRY(Machine m, machine_of(instance));
      out.push_back(std::move(m));
    }
    RILLE_CO_TRY(const std::vector<Disk> disks, co_await compute_.disks(token));
    for (const Disk& disk : disks)
      if (!disk.used || disk.is_volume) out.push_back(Volumes::machine_of(disk));
    if (settings_.ssh_from.empty()) co_return out;  // Rille made no rules; the keys may lack the right to list them
    RILLE_CO_TRY(const std::vector<Rule> rules, co_await compute_.rules(token));
    for (const Rule& rule : rules)
      if (std::none_of(all.begin(), all.end(), [&rule](const Instance& i) { return i.tag == rule.tag; }))
        out.push_back(machine_of(rule));
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    ResourceId place = read_id(id);
    if (place.is_rule) return compute_.remove_rule(std::move(place.name), std::move(token));
    if (place.is_disk) return compute_.remove_disk(std::move(place.zone), std::move(place.name), std::move(token));
    return compute_.remove(std::move(place.zone), std::move(place.name), std::move(token));
  }

  // Google's list price of an external IPv4 address that a machine uses.
  std::optional<Micros> address_micros_per_hour(bool spot) const override {
    return settings_.public_address ? std::optional<Micros>(spot ? 2'500 : 5'000) : std::nullopt;
  }
  std::int64_t skew_us() const override { return compute_.skew_us(); }
  Async<std::string> owner(CancelToken) override { co_return owner_; }

  Async<Identity> check(CancelToken token) override {
    std::string who, key_id;
    if (const std::string file = net::gcp::key_file(account_->named_key); !file.empty()) {
      RILLE_CO_TRY(const Value told, net::gcp::read_key_file(file));
      who = net::gcp::account_of(told);
      key_id = told.text("private_key_id");
    }
    RILLE_CO_TRY(const net::FoundKeys found, co_await account_->chain.get(token));
    RILLE_CO_TRY(Identity out, co_await compute_.identity(std::move(who), std::move(key_id), token));
    out.from = found.from;
    co_return out;
  }

  Async<std::vector<Quota>> quotas(CancelToken token) override { return compute_.quotas(std::move(token)); }

  // A resize changes only the machine type. Attached GPUs are no part of it, so a type with attached GPUs is refused.
  Async<> resize(std::string id, std::string type, CancelToken token) override {
    const ResourceId place = read_id(id);
    if (read_type(type).count > 0)
      co_return make_error(ErrorKind::invalid,
                           fmt::format("'{}' has attached GPUs, which a resize cannot change", type),
                           "use a type with built-in GPUs, such as a2-highgpu-1g");
    cloud::Resizing how;
    how.type = std::move(type);
    how.look = [this, place](CancelToken t) { return standing(place, std::move(t)); };
    how.stop = [this, place](CancelToken t) { return compute_.act(place.zone, place.name, "stop", Value(), t); };
    how.change = [this, place](std::string to, CancelToken t) {
      return change_type(place, std::move(to), std::move(t));
    };
    how.start = [this, place](CancelToken t) { return compute_.act(place.zone, place.name, "start", Value(), t); };
    co_return co_await cloud::resize_stopped(loop_, std::move(how), std::move(token));
  }

  // Google changes spot prices at most once a month, so the long price list is requested only every 12 hours.
  SpotMarket market() const override { return {.told = true, .heeds_cap = false}; }
  Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string, std::int64_t, CancelToken token) override {
    RILLE_CO_CHECK(co_await learn_prices(true, spot_prices_last_us, token));
    PricePoint now;
    now.type = offer.id;
    now.micros_per_hour = price_of(offer, prices_[true].second.now);
    co_return std::vector<PricePoint>(now.micros_per_hour == price_unknown ? 0 : 1, now);
  }

 private:
  std::string image_of(const CreateRequest& request) const {
    if (std::string named = image_in(request, settings_.image); !named.empty()) return named;
    return request.offer.gpu_count > 0 ? gpu_image : plain_image;
  }

  Async<> learn_prices(bool spot, std::int64_t last_us, CancelToken token) {
    const std::int64_t now_us = loop_.clock().wall_us();
    auto& [asked_us, prices] = prices_[spot];
    if (!prices.now.empty() && now_us - asked_us < last_us) co_return success();
    RILLE_CO_TRY(prices, co_await compute_.prices(spot, std::move(token)));
    asked_us = now_us;
    co_return success();
  }

  // The parts of a machine id: "ZONE/NAME", or "ZONE/disks/NAME" for a disk, "global/firewalls/NAME" for a rule.
  struct ResourceId {
    std::string zone, name;
    bool is_disk = false, is_rule = false;
  };
  static ResourceId read_id(const std::string& id) {
    const std::size_t first = id.find('/'), last = id.rfind('/');
    const bool is_rule = id.starts_with(rules_begin);
    return {id.substr(0, first), id.substr(last + 1), first != last && !is_rule, is_rule};
  }
  std::string zone_of(const TypeName& type) const { return type.zone.empty() ? settings_.zones.front() : type.zone; }
  static std::string rule_name(const std::string& tag) { return cloud::resource_name(tag, rule_length_max); }

  // Deletes the machine's firewall rules unless an earlier send of the create may have made the machine.
  Task<void> widen_again(std::string zone, std::string machine, std::string rule, CancelToken token) {
    const Result<Instance> there = co_await compute_.describe(zone, machine, token);
    if (there || there.error().http_status != 404) co_return;
    (void)co_await compute_.remove_rule(rule + "-in", token);
    (void)co_await compute_.remove_rule(rule + "-no", token);
  }

  Async<cloud::Standing> standing(ResourceId place, CancelToken token) {
    const Result<Instance> found = co_await compute_.describe(place.zone, place.name, token);
    cloud::Standing out;
    if (!found && found.error().http_status == 404) co_return out;
    if (!found) co_return found.error();
    out.type = found->type;
    out.power = found->status == "RUNNING"      ? cloud::Power::running
                : found->status == "TERMINATED" ? cloud::Power::stopped
                                                : cloud::Power::between;
    co_return out;
  }

  Async<> change_type(ResourceId place, std::string type, CancelToken token) {
    Value body;
    body.set("machineType", "zones/" + place.zone + "/machineTypes/" + type);
    co_return co_await compute_.act(place.zone, place.name, "setMachineType", std::move(body), std::move(token));
  }

  Result<> check_zones() const {
    const std::string wrong =
        settings_.zones.empty()
            ? ""
            : *std::find_if_not(settings_.zones.begin(), settings_.zones.end() - 1,
                                [this](const std::string& zone) { return zone.starts_with(region() + "-"); });
    if (wrong.starts_with(region() + "-")) return success();
    return make_error(ErrorKind::config, fmt::format("gcp: zone '{1}' is not in region {0}", region(), wrong),
                      fmt::format("name one of its zones, or several: {{\"regions\": {{\"{0}\": {{\"zone\": "
                                  "\"{0}-a\"}}}}}}",
                                  region()));
  }

  Result<Value> order_of(const CreateRequest& request, const TypeName& name) const {
    if (request.expires_wall_us / 1'000'000 - loop_.clock().wall_us() / 1'000'000 > run_s_max - release_margin_s)
      return make_error(ErrorKind::invalid, "gcp: a machine's ttl is at most 120 days",
                        "use a shorter ttl: ttl = \"2000h\"");
    RILLE_TRY(const std::string user_data,
              account_->access.user_data(request, false, user_data_bytes_max, Volumes::boot_disks(request)));
    RILLE_TRY(const std::string script, startup_script(user_data));
    const std::string here = "zones/" + name.zone + "/";
    const std::int64_t disk_bytes = request.disk_bytes ? request.disk_bytes : settings_.disk_bytes;
    const std::string disk_kind = settings_.disk_kind.empty() ? usual_disk_kind(name.machine) : settings_.disk_kind;
    Value labels = settings_.tags;
    labels.set(tag_key, label_of(request.tag));
    Value disk;
    disk.set("sourceImage", image_of(request)).set("diskSizeGb", std::to_string((disk_bytes + gb - 1) / gb));
    disk.set("diskType", here + "diskTypes/" + disk_kind).set("labels", labels);
    Value nic;
    if (settings_.public_address)
      nic.set("accessConfigs", Value::Array{Value().set("type", "ONE_TO_ONE_NAT").set("name", "External NAT")});
    if (!settings_.subnet.empty()) nic.set("subnetwork", settings_.subnet);
    else nic.set("network", settings_.vpc);
    Value out;
    out.set("name", cloud::resource_name(request.tag, name_length_max));
    out.set("machineType", here + "machineTypes/" + name.machine).set("labels", labels);
    Value boot;
    boot.set("boot", true).set("autoDelete", true).set("initializeParams", std::move(disk));
    if (!settings_.kms_key.empty()) boot.set("diskEncryptionKey", Value().set("kmsKeyName", settings_.kms_key));
    out.set("disks", Value::Array{std::move(boot)});
    Value::Array network_tags;
    if (!settings_.security_group.empty()) network_tags.emplace_back(settings_.security_group);
    if (!settings_.ssh_from.empty()) network_tags.push_back(out["name"]);
    if (!network_tags.empty()) out.set("tags", Value().set("items", std::move(network_tags)));
    const std::string reservation =
        request.extra.text("reservation", cloud::text_for(settings_.reservation, type_of(request.offer)));
    if (!reservation.empty() && !request.offer.spot)
      out.set("reservationAffinity", Value()
                                         .set("consumeReservationType", "SPECIFIC_RESERVATION")
                                         .set("key", "compute.googleapis.com/reservation-name")
                                         .set("values", Value::Array{Value(reservation)}));
    out.set("networkInterfaces", Value::Array{std::move(nic)});
    if (name.count > 0)
      out.set("guestAccelerators", Value::Array{Value()
                                                    .set("acceleratorType", here + "acceleratorTypes/" + name.gpu)
                                                    .set("acceleratorCount", name.count)});
    Value::Array items{Value().set("key", "startup-script").set("value", script),
                       Value().set("key", tag_item).set("value", request.tag)};
    if (const std::string volumes = Volumes::item_of(request); !volumes.empty())
      items.push_back(Value().set("key", volumes_item).set("value", volumes));
    out.set("metadata", Value().set("items", std::move(items)));
    out.set("scheduling", scheduling_of(request, name.machine));
    return out;
  }

  // At host maintenance Google terminates machines that cannot be migrated live, and migrates all others.
  Value scheduling_of(const CreateRequest& request, const std::string& machine) const {
    const bool stays = request.offer.spot || request.offer.gpu_count > 0 || cannot_move(machine);
    Value out;
    out.set("onHostMaintenance", stays ? "TERMINATE" : "MIGRATE").set("automaticRestart", false);
    if (request.offer.spot) out.set("provisioningModel", "SPOT");
    if (request.offer.spot || request.expires_wall_us > 0) out.set("instanceTerminationAction", "DELETE");
    if (request.expires_wall_us == 0) return out;
    return out.set("terminationTime", format_utc(request.expires_wall_us + release_margin_s * 1'000'000));
  }

  Result<Machine> machine_of(const Instance& instance) const {
    Machine m;
    m.id = instance.zone + "/" + instance.name;
    m.state = state_of(instance.status);
    m.tag = instance.tag;
    m.created_wall_us = instance.created_wall_us;
    if (m.state == MachineState::live && instance.started_wall_us) tell_running(m, instance.started_wall_us);
    // Only for TERMINATED: while a machine is still stopping, stopped_wall_us is the time of an earlier stop.
    if (instance.status == "TERMINATED" && instance.stopped_wall_us)
      tell_ended(m, instance.stopped_wall_us + 1'000'000);
    m.details.set("type", instance.type).set("zone", instance.zone);
    const std::string& address = settings_.public_address ? instance.address : instance.private_address;
    RILLE_CHECK(account_->access.reach(m, instance.name, address));
    return m;
  }

  static Machine machine_of(const Rule& rule) { return free_left_over(std::string(rules_begin) + rule.name, rule.tag); }

  Loop& loop_;
  std::shared_ptr<Account> account_;
  Settings settings_;
  Compute compute_;
  Volumes volumes_;
  std::string owner_;
  std::vector<Offer> types_;
  std::int64_t types_at_us_ = 0;
  std::map<bool, std::pair<std::int64_t, PriceList>> prices_;  // key: spot; value: request time, answer
};

// The project: from the settings, else from the sources of Google's own libraries in their order.
Result<std::string> project_of(const std::string& named, const std::string& key) {
  if (!named.empty()) return named;
  for (const char* variable : {"GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"})
    if (std::string project = net::environment(variable); !project.empty()) return project;
  Value account;
  if (const std::string file = net::gcp::key_file(key); !file.empty()) {
    RILLE_TRY(account, net::gcp::read_key_file(file));
  }
  if (std::string project = account.text("project_id"); !project.empty()) return project;
  RILLE_TRY(std::string active, net::gcp::gcloud_project());
  if (!active.empty()) return active;
  if (std::string project = account.text("quota_project_id"); !project.empty()) return project;  // pays for API calls
  return make_error(ErrorKind::config, "gcp: no project is set",
                    "set GOOGLE_CLOUD_PROJECT, or \"project\" in the provider's settings, or: gcloud config set "
                    "project NAME");
}

Result<Settings> read_settings(const Value& of_region, const std::string& key) {
  cloud::SettingsReader read("gcp", of_region);
  Settings s;
  s.project = read.text("project");
  read.text("credentials");
  s.zones = read.one_or_more("zone", net::environment("CLOUDSDK_COMPUTE_ZONE"));
  s.image = read.text("image");
  s.tags = read.tags("tags");
  s.vpc = read.text("vpc", read.text("network", "global/networks/default"));
  s.subnet = read.text("subnet");
  s.security_group = read.text("security_group");
  s.kms_key = read.text("kms_key");
  s.reservation = read.text_by_type("reservation");
  s.public_address = read.flag("public_address", true);
  if (const Value from = read.any("ssh_from"); !from.is_null()) {
    RILLE_TRY(s.ssh_from, cloud::read_ssh_from("gcp", from));
    if (!s.subnet.empty() && of_region["vpc"].is_null() && of_region["network"].is_null())
      return make_error(ErrorKind::config,
                        "gcp: ssh_from needs the name of the network (vpc), and only its subnet is set",
                        "name the network of the subnet too: \"vpc\": \"global/networks/NAME\"");
  }
  s.disk_kind = read.text("disk_kind");
  s.disk_bytes = read.bytes("disk", s.disk_bytes);
  s.endpoints = read.object("endpoints");
  RILLE_CHECK(read.done({"regions", "traits"}));
  RILLE_TRY(s.project, project_of(s.project, key));
  return s;
}

}  // namespace

Result<std::unique_ptr<Provider>> make_gcp_provider(Setup setup) {
  const std::string usual = net::environment("CLOUDSDK_COMPUTE_REGION");
  RILLE_TRY(const auto regions, cloud::region_settings("gcp", setup.settings, usual.empty() ? "us-central1" : usual));
  RILLE_TRY(cloud::SshKeys keys, cloud::SshKeys::open(setup.config + "/ssh"));
  const std::string key = setup.settings.text("credentials");
  const auto account = std::make_shared<Account>(setup.loop, key, setup.settings["endpoints"], std::move(keys));
  Traits traits;
  traits.token_lifetime_ms = 30LL * 60'000;  // half of the documented 60 min; later the name prevents a second machine
  traits.create_timeout_ms = 480'000;        // create waits for Google to make two firewall rules and the machine
  traits.visibility_lag_ms = 60'000;
  traits.billing_minimum_s = 60;
  traits.teardown_ms = release_margin_s * 1000;
  traits.look_every_ms = 12 * price_look_every_ms;
  traits.dead_man = DeadMan::provider;
  traits.spot_notice_s = 30;
  cloud::RegionalCloud gcp{"gcp", std::move(traits), {std::begin(known_regions), std::end(known_regions)}, true};
  gcp.driver_of = [&loop = setup.loop, account](const std::string& name, const Value& settings,
                                                bool) -> cloud::MadeDriver {
    RILLE_TRY(Settings own, read_settings(settings, account->named_key));
    return std::unique_ptr<cloud::RegionDriver>(std::make_unique<Region>(loop, account, name, std::move(own)));
  };
  return cloud::make_regional(setup, regions, std::move(gcp));
}

}  // namespace rille::provider
