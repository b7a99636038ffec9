#include "runtime/workflow/provider/azure/azure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "runtime/core/loop/together.hpp"
#include "runtime/core/net/credentials/azure/keys.hpp"
#include "runtime/workflow/provider/addressed.hpp"
#include "runtime/workflow/provider/azure/arm.hpp"
#include "runtime/workflow/provider/azure/volumes.hpp"
#include "runtime/workflow/provider/cloud/elsewhere.hpp"
#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/cloud/resize.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/cloud/ssh_from.hpp"
#include "runtime/workflow/provider/cloud/wait.hpp"
#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::provider {

namespace {

using namespace azure;

constexpr std::int64_t gb = 1'000'000'000, patience_ms = 30'000, create_patience_ms = 300'000;
constexpr std::int64_t reserved_patience_ms = 240'000;  // Azure documents 180 s
constexpr std::int64_t sizes_last_us = 24LL * 3'600'000'000, prices_last_us = 60LL * 60'000'000;
constexpr std::size_t user_data_bytes_max = 65'535, name_length_max = 60, volume_name_max = 70;
constexpr std::string_view part_kinds[] = {disks, interfaces, addresses, groups};
constexpr const char* user = "rille";  // admin user: Azure requires one other than root; Rille does not use it

// Used only to suggest a name for a misspelled region; regions that are not in this list work as well.
const char* const known_regions[] = {
    "eastus",           "eastus2",       "centralus",     "northcentralus",     "southcentralus",     "westcentralus",
    "westus",           "westus2",       "westus3",       "canadacentral",      "canadaeast",         "brazilsouth",
    "mexicocentral",    "northeurope",   "westeurope",    "francecentral",      "germanywestcentral", "italynorth",
    "norwayeast",       "polandcentral", "spaincentral",  "swedencentral",      "switzerlandnorth",   "uksouth",
    "ukwest",           "uaenorth",      "qatarcentral",  "israelcentral",      "southafricanorth",   "centralindia",
    "southindia",       "westindia",     "eastasia",      "southeastasia",      "japaneast",          "japanwest",
    "koreacentral",     "koreasouth",    "australiaeast", "australiasoutheast", "australiacentral",   "newzealandnorth",
    "indonesiacentral", "malaysiawest"};

struct Settings {
  std::string subscription, resource_group, subnet, security_group, zone, disk_kind, kms_key;
  std::vector<std::string> ssh_from;
  std::int64_t disk_bytes = 100 * gb;
  bool public_address = true;
  Value image, reservation, tags, endpoints;
};

struct Account {
  Account(Loop& loop, const Value& endpoints, net::azure::AzAccount account, cloud::SshKeys keys)
      : access(std::move(keys), "azure", endpoints.text("metadata", "http://169.254.169.254")),
        chain(net::azure::key_chain(loop, endpoints, std::move(account))) {}
  cloud::Access access;
  net::CredentialChain chain;
};

// The names of a machine and of the resources made for it, derived from the machine's name.
struct Names {
  std::string machine, disk, interface, address, group;
  explicit Names(const std::string& name)
      : machine(name), disk(name + "-disk"), interface(name + "-nic"), address(name + "-ip"), group(name + "-nsg") {}
};

std::string machine_of_part(const std::string& name) {
  for (const char* end : {"-disk", "-nic", "-ip", "-nsg", volume_end})
    if (name.ends_with(end)) return name.substr(0, name.size() - std::string_view(end).size());
  return name;
}

// Dollars with five decimals, Azure's precision. Rounded up: a price cap rounded down could be below the market price.
double five_decimals(Micros micros) { return static_cast<double>((micros + 9) / 10) / 1e5; }

bool is_under_way(const std::string& provisioning) {
  return provisioning == "Creating" || provisioning == "Updating" || provisioning.empty();
}

MachineState state_of(const VirtualMachine& vm) {
  if (vm.provisioning == "Deleting" || vm.provisioning == "Failed") return MachineState::terminating;
  if (vm.power == "running") return MachineState::live;
  if (vm.power.empty() || vm.power == "starting" || is_under_way(vm.provisioning)) return MachineState::pending;
  return MachineState::terminating;  // stopped or deallocated: still costs money
}

// The default image: for NVIDIA GPUs Microsoft's with the driver (github.com/Azure/azhpc-images), else plain Ubuntu.
Value usual_image(const Offer& offer) {
  const bool nvidia = offer.gpu_count > 0 && offer.gpu_vendor != "amd";
  Value out;
  if (nvidia) out.set("publisher", "microsoft-dsvm").set("offer", "ubuntu-hpc").set("sku", "2204");
  else out.set("publisher", "Canonical").set("offer", "ubuntu-24_04-lts").set("sku", "server");
  out.set("version", "latest");
  return out;
}

class Region final : public cloud::RegionDriver,
                     public cloud::AddressListed,
                     public cloud::VolumeMaker,
                     public UsualDisk {
 public:
  Region(Loop& loop, std::shared_ptr<Account> account, const std::string& name, Settings settings)
      : loop_(loop), account_(std::move(account)), settings_(std::move(settings)),
        arm_(loop, account_->chain, name, settings_.subscription, settings_.resource_group, settings_.endpoints),
        volumes_(arm_, settings_.zone, settings_.kms_key),
        owner_(fmt::format("subscription {}, resource group {}", settings_.subscription, settings_.resource_group)) {}
  const std::string& region() const override { return arm_.region(); }
  bool is_id(std::string_view id) const override {
    static const std::set<std::string_view> kinds{machines, disks, interfaces, addresses, groups};
    return id.find('/') != id.npos && kinds.contains(id.substr(0, id.find('/')));
  }

  std::int64_t usual_disk_bytes(const Offer&) const override { return settings_.disk_bytes; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    std::vector<Offer> fitting;
    if (query.zone.empty() || query.zone == settings_.zone) {
      RILLE_CO_TRY(fitting, co_await fitting_sizes(query, token));
    }
    const Result<> learnt = co_await learn_prices(fitting, token);
    std::vector<Offer> out;
    for (Offer& offer : fitting) {
      const auto at = prices_.find(offer.id);
      if (at == prices_.end()) continue;
      offer.price_micros_per_hour = query.spot ? at->second.second.spot : at->second.second.on_demand;
      if (offer.price_micros_per_hour == price_unknown) continue;  // not sold on demand, or not as spot
      if (!query.spot) {
        offer.reserved_1y_micros_per_hour = at->second.second.reserved_1y;
        offer.reserved_3y_micros_per_hour = at->second.second.reserved_3y;
      }
      offer.disk_bytes_max = 4'095 * gb;
      offer.billing.from_live = true;
      out.push_back(std::move(offer));
    }
    if (out.empty() && !learnt) co_return learnt.error();
    if (!learnt && query.left_out) {
      Error why = learnt.error();
      why.message = "what some of its machines cost is not known: " + why.message;
      query.left_out->unasked.push_back({region(), std::move(why)});
    }
    co_return out;
  }

  const std::vector<VolumeKind>& volume_kinds() const override { return Volumes::kinds(); }
  // The price of a gigabyte comes from the settings (disk_price), as that of a machine's disk.
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken) override {
    Offer offer = provider::volume_offer("azure", wish.kind, region(), price_unknown);
    co_return std::vector<Offer>(1, std::move(offer));
  }

  Async<Machine> create(CreateRequest request, std::string type, CancelToken token) override {
    if (is_volume(request)) {
      std::string name = cloud::resource_name(request.tag, volume_name_max) + volume_end;
      Value disk = resource(request.tag);
      co_return co_await volumes_.create(std::move(request), std::move(disk), std::move(name), std::move(token));
    }
    RILLE_CO_CHECK(volumes_.check_zone(request));
    const Names names(cloud::resource_name(request.tag, name_length_max));
    RILLE_CO_TRY(Value order, order_of(request, type, names));
    Machine made;
    made.id = id_of(machines, names.machine);
    const Result<MachineState> state = co_await make(names, request, std::move(order), token);
    if (state) {
      made.state = *state;
      co_return made;
    }
    const Error& why = state.error();
    if (token.cancelled() || why.kind == ErrorKind::network || why.kind == ErrorKind::timeout || why.http_status == 429)
      co_return why;
    if (why.http_status == 407) {  // 407 comes from a proxy, not from Azure: the outcome is unknown
      Error open = why;
      open.kind = ErrorKind::network;
      co_return open;
    }
    // Azure has certainly refused the machine: delete the disk, interface and address made for it, which cost money.
    if (Result<> cleared = co_await clear(names, token); !cleared) {
      Error e =
          make_error(ErrorKind::network, "resources of a refused machine may still exist: " + cleared.error().message,
                     "they may cost: look for them in the Azure portal, in the resource group of the settings");
      co_return std::move(e).with_cause(state.error());
    }
    co_return state.error();
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    const auto [kind, name] = read_id(id);
    if (kind == machines) {
      RILLE_CO_TRY(const VirtualMachine vm, co_await arm_.describe(name, token));
      co_return co_await machine_of(vm, token);
    }
    RILLE_CO_TRY(const Value there, co_await arm_.get(kind, name, token));
    Resource part = Arm::read_resource(kind, there);
    if (kind == disks) part.tag = machine_of_part(name);
    if (kind == disks && Volumes::is_name(name)) co_return Volumes::machine_of(part);
    co_return left_over(part);
  }

  Async<std::vector<Machine>> list(std::string prefix, CancelToken token) override {
    RILLE_CO_TRY(std::vector<Resource> all, co_await parts(token));
    // List machines after their resources: the resources of a machine created meanwhile must not count as left over.
    RILLE_CO_TRY(std::vector<Resource> there, co_await arm_.all_of(std::string(machines), token));
    std::move(there.begin(), there.end(), std::back_inserter(all));
    std::set<std::string> owners, seen;
    for (const Resource& r : all)
      if (r.kind == machines) owners.insert(net::lower_case(r.name));
    std::vector<Machine> out;
    std::vector<Together<Machine>> asked;
    for (const Resource& r : all) {
      if (r.tag.empty() || !r.tag.starts_with(prefix)) continue;
      if (!seen.insert(r.kind + "/" + net::lower_case(r.name)).second) continue;
      if (r.kind == machines)
        asked.push_back({"the machine " + r.name,
                         [this, id = id_of(r.kind, r.name)](CancelToken t) { return describe(id, std::move(t)); }});
      else if (r.kind == disks && Volumes::is_name(r.name)) out.push_back(Volumes::machine_of(r));
      else if (is_id(id_of(r.kind, r.name)) && !owners.contains(net::lower_case(machine_of_part(r.name))))
        out.push_back(left_over(r));
    }
    const auto answers = co_await together(loop_, std::move(asked), 0, token);
    for (const Result<Machine>& m : answers) {
      if (!m && m.error().http_status == 404) continue;  // the machine was deleted after the list was made
      if (!m) co_return m.error();
      out.push_back(*m);
    }
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    const auto [kind, name] = read_id(id);
    cloud::Patience patience(loop_, reserved_patience_ms);
    for (;;) {
      // Wait only for an interface: Azure deletes an address only after the interface that uses it.
      const Result<> removed = co_await arm_.remove(kind, name, kind == interfaces, token);
      if (removed || removed.error().code != reserved_code) co_return removed;
      RILLE_CO_CHECK(co_await patience.next("the removal of " + name, token));
    }
  }

  // Azure's list price of a static public address of SKU Standard.
  std::optional<Micros> address_micros_per_hour(bool) const override {
    return settings_.public_address ? std::optional<Micros>(5'000) : std::nullopt;
  }
  std::int64_t skew_us() const override { return arm_.skew_us(); }
  Async<std::string> owner(CancelToken) override { co_return owner_; }

  Async<Identity> check(CancelToken token) override {
    RILLE_CO_TRY(const net::FoundKeys found, co_await account_->chain.get(token));
    RILLE_CO_TRY(Identity out, co_await arm_.identity(token));
    RILLE_CO_CHECK(co_await arm_.quotas(token));  // the subscription is global; quotas check the region
    out.from = found.from;
    out.who = net::azure::owner_of(found.keys.token);
    if (out.who.empty() && (found.from == "the environment" || found.from == net::azure::certificate_source ||
                            found.from == net::azure::workload_source))
      out.who = "application " + net::environment("AZURE_CLIENT_ID");
    co_return out;
  }

  Async<std::vector<Quota>> quotas(CancelToken token) override { return arm_.quotas(std::move(token)); }

  Async<> resize(std::string id, std::string type, CancelToken token) override {
    const std::string name = read_id(id).second;
    cloud::Resizing how;
    how.type = std::move(type);
    how.look = [this, name](CancelToken t) { return standing(name, std::move(t)); };
    how.stop = [this, name](CancelToken t) { return arm_.act(name, "deallocate", std::move(t)); };
    how.change = [this, name](std::string to, CancelToken t) {
      return arm_.change_size(name, std::move(to), std::move(t));
    };
    how.start = [this, name](CancelToken t) { return arm_.act(name, "start", std::move(t)); };
    co_return co_await cloud::resize_stopped(loop_, std::move(how), std::move(token));
  }

  Async<std::vector<PricePoint>> price_history(OfferQuery query, std::int64_t since_us, CancelToken token) override {
    query.spot = true;
    RILLE_CO_TRY(const std::vector<Offer> fitting, co_await fitting_sizes(query, token));
    std::vector<std::string> sizes;
    for (const Offer& offer : fitting) sizes.push_back(offer.id);
    std::vector<PricePoint> none;
    if (sizes.empty()) co_return none;
    co_return co_await arm_.spot_history(std::move(sizes), since_us, std::move(token));
  }

  // knows_before stays false: Azure's list has the time when a price was published, which may be before it is charged.
  SpotMarket market() const override { return {.told = true}; }
  Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string, std::int64_t, CancelToken token) override {
    RILLE_CO_TRY(const Prices prices, co_await arm_.prices(offer.id, std::move(token)));
    PricePoint now;
    now.type = offer.id;
    now.micros_per_hour = prices.spot;
    co_return std::vector<PricePoint>(now.micros_per_hour == price_unknown ? 0 : 1, now);
  }

 private:
  // The default image needs generation 2. A configured image may have any generation: the user must choose the size.
  Needs needs() const { return {settings_.disk_kind.starts_with("Premium"), settings_.image.as_object()->empty()}; }

  // Sizes that match the query in everything but the price, which is not requested yet (one call per size).
  Async<std::vector<Offer>> fitting_sizes(OfferQuery query, CancelToken token) {
    const std::int64_t now_us = loop_.clock().wall_us();
    auto& [asked_us, sizes] = sizes_[query.spot];
    if (sizes.empty() || now_us - asked_us > sizes_last_us) {
      RILLE_CO_TRY(sizes, co_await arm_.sizes(settings_.zone, query.spot, needs(), token));
      asked_us = now_us;
      if (sizes.empty())
        co_return make_error(ErrorKind::config, fmt::format("azure: location '{}' has no offers", region()),
                             "is it one? `az account list-locations` names them");
    }
    co_return cloud::smallest_fitting(sizes, query);
  }

  Value image_of(const CreateRequest& request) const {
    if (const std::string id = image_in(request, ""); !id.empty()) return Value().set("id", id);
    return settings_.image.as_object()->empty() ? usual_image(request.offer) : settings_.image;
  }

  Async<cloud::Standing> standing(std::string name, CancelToken token) {
    const Result<VirtualMachine> vm = co_await arm_.describe(name, token);
    cloud::Standing out;
    if (!vm && vm.error().http_status == 404) co_return out;
    if (!vm) co_return vm.error();
    out.type = vm->type;
    out.power = vm->power == "running"       ? cloud::Power::running
                : vm->power == "deallocated" ? cloud::Power::stopped
                                             : cloud::Power::between;
    co_return out;
  }

  // All resources of part_kinds (everything but the machines) with their tags.
  Async<std::vector<Resource>> parts(CancelToken token) {
    std::vector<Together<std::vector<Resource>>> asked;
    for (const std::string_view kind : part_kinds)
      asked.push_back({fmt::format("the list of {}", kind),
                       [this, kind](CancelToken t) { return arm_.all_of(std::string(kind), std::move(t)); }});
    auto answers = co_await together(loop_, std::move(asked), 0, token);
    std::vector<Resource> out;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      // If the settings name a security group, Rille has made none, so it is no error if the role may not list them.
      const bool needless = part_kinds[i] == groups && !settings_.security_group.empty();
      if (!answers[i] && needless && answers[i].error().kind == ErrorKind::auth) continue;
      if (!answers[i]) co_return answers[i].error();
      for (Resource& part : *answers[i]) {
        // Azure puts no tag on a machine's disk; the disk's name starts with the machine's tag.
        if (part.kind == disks) part.tag = machine_of_part(part.name);
        if (part.kind != disks || (part.tag != part.name && part.tag.starts_with("rille-")))
          out.push_back(std::move(part));
      }
    }
    co_return out;
  }

  static std::string id_of(std::string_view kind, const std::string& name) { return fmt::format("{}/{}", kind, name); }
  static std::pair<std::string, std::string> read_id(const std::string& id) {
    const std::size_t slash = id.find('/');
    return {id.substr(0, slash), id.substr(slash + 1)};
  }

  // Requests prices, one call per size, and returns the error of one failed call. A size without a price is not sold.
  Async<> learn_prices(std::vector<Offer> fitting, CancelToken token) {
    const std::int64_t now_us = loop_.clock().wall_us();
    std::vector<Together<Prices>> asked;
    std::vector<std::string> sizes;
    for (const Offer& offer : fitting) {
      const auto at = prices_.find(offer.id);
      if (at != prices_.end() && now_us - at->second.first < prices_last_us) continue;
      sizes.push_back(offer.id);
      asked.push_back({"the price of " + offer.id,
                       [this, size = offer.id](CancelToken t) { return arm_.prices(size, std::move(t)); }});
    }
    const auto answers = co_await cloud::in_batches(loop_, std::move(asked), patience_ms, token);
    std::optional<Error> failure;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      prices_.erase(sizes[i]);
      if (answers[i]) prices_[sizes[i]] = {now_us, *answers[i]};
      else failure = answers[i].error();
    }
    if (failure) co_return *failure;
    co_return success();
  }

  // Makes security group, address, interface and machine in this order, since each refers to the ones before. Any of
  // them may exist from an earlier send.
  Async<MachineState> make(const Names& names, const CreateRequest& request, Value order, CancelToken token) {
    const std::string& tag = request.tag;
    const std::int64_t by_us = request.send_by_wall_us;
    std::string group = settings_.security_group;
    if (group.empty()) {
      Value made = resource(tag);
      made.set("properties", lets_ssh_in(settings_.ssh_from));
      RILLE_CO_CHECK(co_await arm_.put(std::string(groups), names.group, std::move(made), by_us, token));
      group = arm_.id_of(groups, names.group);
    }
    Value address = resource(tag), interface = resource(tag);
    address.set("sku", Value().set("name", "Standard"));
    address.set("properties", Value().set("publicIPAllocationMethod", "Static"));
    if (!settings_.zone.empty()) address.set("zones", Value::Array{Value(settings_.zone)});
    Value ip, configuration;
    configuration.set("subnet", Value().set("id", settings_.subnet));
    if (settings_.public_address) {
      RILLE_CO_CHECK(co_await arm_.put(std::string(addresses), names.address, std::move(address), by_us, token));
      ip.set("id", arm_.id_of(addresses, names.address)).set("properties", Value().set("deleteOption", "Delete"));
      configuration.set("publicIPAddress", std::move(ip));
    }
    Value properties;
    properties.set("ipConfigurations",
                   Value::Array{Value().set("name", "ip").set("properties", std::move(configuration))});
    properties.set("networkSecurityGroup", Value().set("id", group));
    interface.set("properties", std::move(properties));
    RILLE_CO_CHECK(co_await arm_.put(std::string(interfaces), names.interface, std::move(interface), by_us, token));
    const Result<> put = co_await arm_.put(std::string(machines), names.machine, std::move(order), by_us, token);
    // PropertyChangeNotAllowed: an earlier send has made the machine, so this PUT would change it.
    if (!put && put.error().code != "PropertyChangeNotAllowed") co_return put.error();
    cloud::Patience patience(loop_, create_patience_ms);
    for (;;) {
      const Result<VirtualMachine> vm = co_await arm_.describe(names.machine, token);
      if (!vm && vm.error().http_status == 404) co_return MachineState::pending;  // Azure does not show it yet
      if (!vm) co_return vm.error();
      if (vm->provisioning == "Failed")
        co_return arm_.failed(vm->failure.empty() ? "AllocationFailed" : vm->failure, names.machine);
      if (vm->provisioning == "Deleting") co_return MachineState::terminating;
      if (!is_under_way(vm->provisioning)) co_return MachineState::pending;
      RILLE_CO_CHECK(co_await patience.next("the making of " + names.machine, token));
    }
  }

  // Deletes the objects made for a refused machine. An interface that Azure reserves for three minutes is kept with its
  // address, so that the next offer is tried at once; both are deleted at the run's end or by `rille gc`.
  Async<> clear(const Names& names, CancelToken token) {
    RILLE_CO_CHECK(co_await arm_.remove(std::string(machines), names.machine, true, token));
    const Result<> interface = co_await arm_.remove(std::string(interfaces), names.interface, true, token);
    if (!interface && interface.error().code == reserved_code)
      co_return co_await arm_.remove(std::string(disks), names.disk, true, token);
    RILLE_CO_CHECK(interface);
    RILLE_CO_CHECK(co_await arm_.remove(std::string(addresses), names.address, true, token));
    if (settings_.security_group.empty())  // a group is free: on failure it is deleted later
      (void)co_await arm_.remove(std::string(groups), names.group, true, token);
    co_return co_await arm_.remove(std::string(disks), names.disk, true, token);
  }

  Value resource(const std::string& tag) const {
    Value out;
    out.set("location", region()).set("tags", Value(settings_.tags).set(tag_key, tag));
    return out;
  }

  Result<Value> order_of(const CreateRequest& request, const std::string& type, const Names& names) const {
    for (const auto& [name, value] :
         {std::pair("resource_group", &settings_.resource_group), std::pair("subnet", &settings_.subnet)})
      if (value->empty())
        return make_error(ErrorKind::config, fmt::format("azure: region {} has no {}", region(), name),
                          "name a resource group, and the full id of a subnet, in the provider's settings");
    RILLE_TRY(const std::string user_data,
              account_->access.user_data(request, false, user_data_bytes_max, Volumes::boot_disks(request)));
    const std::int64_t disk_bytes = request.disk_bytes ? request.disk_bytes : settings_.disk_bytes;
    Value disk, key, linux_part, os, nic, properties;
    disk.set("name", names.disk).set("createOption", "FromImage").set("deleteOption", "Delete");
    disk.set("diskSizeGB", (disk_bytes + gb - 1) / gb);
    Value managed;
    managed.set("storageAccountType", settings_.disk_kind);
    if (!settings_.kms_key.empty()) managed.set("diskEncryptionSet", Value().set("id", settings_.kms_key));
    disk.set("managedDisk", std::move(managed));
    key.set("path", fmt::format("/home/{}/.ssh/authorized_keys", user));
    key.set("keyData", account_->access.public_line());
    linux_part.set("disablePasswordAuthentication", true);
    linux_part.set("ssh", Value().set("publicKeys", Value::Array{std::move(key)}));
    os.set("computerName", names.machine).set("adminUsername", user).set("customData", user_data);
    os.set("linuxConfiguration", std::move(linux_part));
    nic.set("id", arm_.id_of(interfaces, names.interface));
    nic.set("properties", Value().set("primary", true).set("deleteOption", "Delete"));
    properties.set("hardwareProfile", Value().set("vmSize", type)).set("osProfile", std::move(os));
    Value storage;
    storage.set("imageReference", image_of(request)).set("osDisk", std::move(disk));
    properties.set("storageProfile", std::move(storage));
    properties.set("networkProfile", Value().set("networkInterfaces", Value::Array{std::move(nic)}));
    const std::string reservation = request.extra.text("reservation", cloud::text_for(settings_.reservation, type));
    if (!reservation.empty() && !request.offer.spot)
      properties.set("capacityReservation", Value().set("capacityReservationGroup", Value().set("id", reservation)));
    if (request.offer.spot) {
      const Micros most = std::max(request.cap_micros_per_hour, request.offer.price_micros_per_hour);
      properties.set("priority", "Spot").set("evictionPolicy", "Delete");
      properties.set("billingProfile", Value().set("maxPrice", most > 0 ? five_decimals(most) : -1.0));
    }
    Value out = resource(request.tag), tags = out["tags"];
    Volumes::add_tags(tags, request);
    out.set("tags", std::move(tags));
    if (!settings_.zone.empty()) out.set("zones", Value::Array{Value(settings_.zone)});
    out.set("properties", std::move(properties));
    return out;
  }

  Async<Machine> machine_of(VirtualMachine vm, CancelToken token) {
    Machine m;
    m.id = id_of(machines, vm.name);
    m.state = state_of(vm);
    m.tag = vm.tag;
    m.created_wall_us = vm.created_wall_us;
    m.details.set("type", vm.type);
    if (!vm.failure.empty()) m.details.set("problem", vm.failure);
    if (m.state != MachineState::live) co_return m;
    const Names names(vm.name);
    RILLE_CO_TRY(const std::string address, co_await address_of(names, token));
    RILLE_CO_CHECK(account_->access.reach(m, vm.name, address));
    if (m.state == MachineState::live) RILLE_CO_CHECK(co_await volumes_.attach(std::move(vm), m, token));
    co_return m;
  }

  // The public address if the settings want one, else the private address; "": the machine has no address yet.
  Async<std::string> address_of(Names names, CancelToken token) {
    const std::string kind(settings_.public_address ? addresses : interfaces);
    const std::string name = settings_.public_address ? names.address : names.interface;
    const Result<Value> there = co_await arm_.get(kind, name, token);
    if (!there && there.error().http_status != 404) co_return there.error();
    if (!there) co_return std::string();
    if (settings_.public_address) co_return (*there)["properties"].text("ipAddress");
    const Value::Array configurations = net::list_of((*there)["properties"]["ipConfigurations"]);
    co_return configurations.empty() ? std::string() : configurations[0]["properties"].text("privateIPAddress");
  }

  static Machine left_over(const Resource& part) {
    const std::string id = id_of(part.kind, part.name);
    return part.kind == groups ? free_left_over(id, part.tag) : provider::left_over(id, part.tag);
  }

  Loop& loop_;
  std::shared_ptr<Account> account_;
  Settings settings_;
  Arm arm_;
  Volumes volumes_;
  std::string owner_;
  std::map<bool, std::pair<std::int64_t, std::vector<Offer>>> sizes_;  // key: spot; value: request time, answer
  std::map<std::string, std::pair<std::int64_t, Prices>> prices_;
};

Result<Settings> read_settings(const Value& of_region) {
  cloud::SettingsReader read("azure", of_region);
  Settings s;
  read.text("tenant");  // read once for all regions, not here
  s.subscription = read.text("subscription", net::environment("AZURE_SUBSCRIPTION_ID"));
  s.resource_group = read.text("resource_group", net::environment("AZURE_DEFAULTS_GROUP"));
  s.image = read.object("image");
  s.tags = read.tags("tags");
  s.subnet = read.text("subnet");
  s.security_group = read.text("security_group");
  s.zone = read.text("zone");
  s.kms_key = read.text("kms_key");
  s.reservation = read.text_by_type("reservation");
  s.public_address = read.flag("public_address", true);
  RILLE_TRY(s.ssh_from, cloud::read_ssh_from("azure", read.any("ssh_from")));
  s.disk_kind = read.text("disk_kind", "Premium_LRS");
  s.disk_bytes = read.bytes("disk", s.disk_bytes);
  s.endpoints = read.object("endpoints");
  RILLE_CHECK(read.done({"regions", "traits"}));
  if (s.subscription.empty())
    return make_error(ErrorKind::config, "azure: no subscription is set",
                      "set AZURE_SUBSCRIPTION_ID, or \"subscription\" in the provider's settings; "
                      "az account show prints the current one");
  return s;
}

}  // namespace

Result<std::unique_ptr<Provider>> make_azure_provider(Setup setup) {
  const std::string usual = net::environment("AZURE_DEFAULTS_LOCATION");
  RILLE_TRY(const auto regions, cloud::region_settings("azure", setup.settings, usual.empty() ? "eastus" : usual));
  RILLE_TRY(cloud::SshKeys keys, cloud::SshKeys::open(setup.config + "/ssh"));
  net::azure::AzAccount in_az;
  in_az.tenant = setup.settings.text("tenant");
  in_az.subscription = regions.front().second.text("subscription", net::environment("AZURE_SUBSCRIPTION_ID"));
  const auto account =
      std::make_shared<Account>(setup.loop, setup.settings["endpoints"], std::move(in_az), std::move(keys));
  Traits traits;
  traits.token_lifetime_ms = 30LL * 60'000;  // unlimited while the machine exists: its name derives from the tag
  traits.create_timeout_ms = 420'000;        // create waits until Azure has made all resources
  traits.visibility_lag_ms = 60'000;
  traits.look_every_ms = price_look_every_ms;
  traits.dead_man = DeadMan::none;  // a machine that powers itself off is still billed
  traits.spot_notice_s = 30;
  cloud::RegionalCloud azure{"azure", std::move(traits), {std::begin(known_regions), std::end(known_regions)}, true};
  azure.driver_of = [&loop = setup.loop, account](const std::string& name, const Value& settings,
                                                  bool) -> cloud::MadeDriver {
    RILLE_TRY(Settings own, read_settings(settings));
    return std::unique_ptr<cloud::RegionDriver>(std::make_unique<Region>(loop, account, name, std::move(own)));
  };
  return cloud::make_regional(setup, regions, std::move(azure));
}

}  // namespace rille::provider
