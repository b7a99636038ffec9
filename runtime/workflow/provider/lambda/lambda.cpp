#include "runtime/workflow/provider/lambda/lambda.hpp"

#include <algorithm>

#include "runtime/core/base/id.hpp"
#include "runtime/workflow/provider/cloud/everywhere.hpp"
#include "runtime/workflow/provider/cloud/key_owner.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/lambda/instances.hpp"
#include "runtime/workflow/provider/rent_options.hpp"

namespace rille::provider {

namespace {

using namespace lambda;

constexpr std::size_t user_data_bytes_max = 1'000'000, name_letters_max = 64;

struct Settings {
  std::string image, ssh_key;
  std::vector<std::string> regions;  // empty: all regions
  Value tags, endpoints;
};

MachineState state_of(const Instance& instance) {
  if (instance.status == "booting") return MachineState::pending;
  if (instance.status == "active") return instance.address.empty() ? MachineState::pending : MachineState::live;
  if (instance.status == "terminated" || instance.status == "preempted") return MachineState::gone;
  return MachineState::terminating;  // also unhealthy: it costs the full price, so Rille terminates it
}

class Cloud final : public cloud::Everywhere {
 public:
  Cloud(Loop& loop, cloud::SshKeys keys, Settings settings)
      : Everywhere(std::move(keys), key_chain(loop)), settings_(std::move(settings)),
        instances_(loop, chain_, settings_.endpoints) {}
  bool is_id(std::string_view id) const override {
    return std::all_of(id.begin(), id.end(), [](char c) { return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9'); });
  }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    std::vector<Offer> out;
    if (query.spot) co_return out;
    RILLE_CO_TRY(out, co_await instances_.sold(token));
    co_return cloud::only_there("lambda", std::move(out), settings_.regions);
  }

  Async<Machine> create(CreateRequest request, std::string type, CancelToken token) override {
    RILLE_CO_TRY(const std::string script, access_.script(request, false, user_data_bytes_max));
    // Lambda requires the name of an uploaded SSH key, although Rille's first-boot script installs the key as well.
    std::string key = settings_.ssh_key;
    if (key.empty()) {
      key = "rille-" + derive_hex({"key", access_.public_line()}, 8);
      RILLE_CO_CHECK(co_await instances_.offer_key(key, access_.public_line(), token));
    }
    Value order;
    order.set("region_name", request.offer.region).set("instance_type_name", std::move(type));
    order.set("ssh_key_names", Value::Array{Value(key)}).set("user_data", script);
    order.set("name", request.tag.substr(0, name_letters_max));
    Value::Array tags{Value().set("key", tag_key).set("value", request.tag)};
    cloud::add_tags(tags, settings_.tags, "key", "value");
    order.set("tags", std::move(tags));
    const std::string image = image_in(request, settings_.image);
    if (!image.empty()) order.set("image", Value().set("family", image));
    Machine made;
    RILLE_CO_TRY(made.id, co_await instances_.launch(std::move(order), request.send_by_wall_us, token));
    co_return made;
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    RILLE_CO_TRY(const Instance found, co_await instances_.describe(std::move(id), token));
    co_return machine_of(found);
  }

  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    RILLE_CO_TRY(const std::vector<Instance> all, co_await instances_.list(token));
    co_return tagged(all, &Instance::tag, tag_prefix, [this](const Instance& one) { return machine_of(one); });
  }

  Async<> terminate(std::string id, CancelToken token) override {
    return instances_.terminate(std::move(id), std::move(token));
  }

 private:
  std::int64_t skew_us() const override { return instances_.skew_us(); }
  // Lambda's API does not return the owner of an API key, so a hash of the key stands for the owner.
  Async<std::string> owner(CancelToken token) override {
    RILLE_CO_TRY(const net::FoundKeys found, co_await chain_.get(token));
    co_return "key " + cloud::mark_of("lambda", found.keys);
  }
  Async<Identity> identity(CancelToken token) override { return instances_.identity(std::move(token)); }

  Result<Machine> machine_of(const Instance& instance) const {
    Machine m;
    m.id = instance.id;
    m.state = state_of(instance);
    m.tag = instance.tag;
    m.details.set("type", instance.type).set("region", instance.region);
    if (instance.status == "unhealthy") m.details.set("problem", "Lambda says unhealthy");
    if (m.state != MachineState::live) return m;
    m.details.set("address", instance.address);
    RILLE_TRY(m.channel, access_.channel(instance.tag, instance.id, instance.address));
    return m;
  }

  Settings settings_;
  Instances instances_;
};

}  // namespace

Result<std::unique_ptr<Provider>> make_lambda_provider(Setup setup) {
  cloud::SettingsReader read("lambda", setup.settings);
  Settings s;
  s.image = read.text("image");
  s.tags = read.tags("tags");
  s.ssh_key = read.text("ssh_key");
  s.regions = read.texts("regions", {});
  s.endpoints = read.object("endpoints");
  const Value said = read.object("traits");
  RILLE_CHECK(read.done());
  Traits traits;
  traits.visibility_lag_ms = 60'000;
  traits.billing_unit_s = 60;
  return cloud::make_everywhere<Cloud>("lambda", std::move(setup), std::move(s), said, std::move(traits));
}

}  // namespace rille::provider
