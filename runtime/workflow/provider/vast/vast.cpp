#include "runtime/workflow/provider/vast/vast.hpp"

#include <algorithm>

#include "runtime/workflow/provider/cloud/everywhere.hpp"
#include "runtime/workflow/provider/cloud/key_owner.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"
#include "runtime/workflow/provider/vast/market.hpp"

namespace rille::provider {

namespace {

using namespace vast;

constexpr std::int64_t gb = 1'000'000'000;
constexpr std::size_t script_bytes_max = 4048;  // limit of Vast's own command

struct Settings {
  std::string image = "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-devel";
  std::vector<std::string> regions;  // empty: all regions
  std::int64_t disk_bytes = 50 * gb;
  Value endpoints;
};

MachineState state_of(const Instance& instance) {
  if (instance.stopped) return MachineState::terminating;  // its disk costs money: Rille destroys it
  const std::string& s = instance.status;
  if (s == "running") return instance.address.empty() ? MachineState::pending : MachineState::live;
  return s == "exited" || s == "stopped" || s == "offline" || s == "unknown" ? MachineState::terminating
                                                                             : MachineState::pending;
}

class Cloud final : public cloud::Everywhere, public UsualDisk {
 public:
  Cloud(Loop& loop, cloud::SshKeys keys, Settings settings)
      : Everywhere(std::move(keys), key_chain(loop)), settings_(std::move(settings)),
        market_(loop, chain_, settings_.endpoints) {}
  bool is_id(std::string_view id) const override { return id.find_first_not_of("0123456789") == std::string::npos; }

  std::int64_t usual_disk_bytes(const Offer& offer) const override {
    return offer.disk_micros_per_gb_hour > 0 ? settings_.disk_bytes : 0;
  }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    std::vector<Offer> out;
    if (query.gpu == "cpu") co_return out;
    RILLE_CO_TRY(out, co_await market_.asks(std::move(query), token));
    co_return cloud::only_there("vast", std::move(out), settings_.regions);
  }

  Async<Machine> create(CreateRequest request, std::string ask, CancelToken token) override {
    RILLE_CO_TRY(const std::string script, access_.script(request, true, script_bytes_max));
    const std::int64_t disk_bytes = request.disk_bytes ? request.disk_bytes : settings_.disk_bytes;
    Value order;
    order.set("image", image_in(request, settings_.image)).set("label", request.tag);
    order.set("disk", (disk_bytes + gb - 1) / gb);
    order.set("runtype", "ssh_direct").set("onstart", script).set("env", Value().set("-p 22:22", "1"));
    order.set("target_state", "running").set("cancel_unavail", true);
    if (request.offer.spot) order.set("price", static_cast<double>(bid_of(request)) / 1e6);
    Machine made;
    RILLE_CO_TRY(made.id, co_await market_.rent(std::move(ask), std::move(order), request.send_by_wall_us, token));
    co_return made;
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    Machine gone;
    RILLE_CO_TRY(const Instance found, co_await market_.describe(std::move(id), token));
    if (found.id.empty()) co_return gone;
    co_return machine_of(found);
  }

  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    RILLE_CO_TRY(const std::vector<Instance> all, co_await market_.list(token));
    co_return tagged(all, &Instance::label, tag_prefix, [this](const Instance& one) { return machine_of(one); });
  }

  Async<> terminate(std::string id, CancelToken token) override {
    return market_.destroy(std::move(id), std::move(token));
  }

 private:
  std::int64_t skew_us() const override { return market_.skew_us(); }
  Async<std::string> owner(CancelToken token) override {
    cloud::KeyOwner::Ask ask = [this](CancelToken t) { return market_.account(std::move(t)); };
    co_return co_await owner_.get(&chain_, std::move(ask), std::move(token));
  }
  Async<Identity> identity(CancelToken token) override { return market_.identity(std::move(token)); }

  Result<Machine> machine_of(const Instance& instance) const {
    Machine m;
    m.id = instance.id;
    m.state = state_of(instance);
    m.tag = instance.label;
    m.created_wall_us = instance.created_wall_us;
    m.details.set("type", instance.type).set("region", instance.place);
    if (instance.outbid) m.details.set("problem", "outbid");
    if (m.state != MachineState::live) return m;
    m.price_micros_per_hour = instance.micros_per_hour;
    m.details.set("address", instance.address);
    RILLE_TRY(m.channel, access_.channel(instance.label, instance.id, instance.address, instance.port));
    return m;
  }

  Settings settings_;
  Market market_;
  cloud::KeyOwner owner_{"vast", "account"};
};

}  // namespace

Result<std::unique_ptr<Provider>> make_vast_provider(Setup setup) {
  cloud::SettingsReader read("vast", setup.settings);
  Settings s;
  s.image = read.text("image", s.image);
  s.regions = read.texts("regions", {});
  s.disk_bytes = read.bytes("disk", s.disk_bytes);
  s.endpoints = read.object("endpoints");
  const Value said = read.object("traits");
  RILLE_CHECK(read.done());
  Traits traits;
  traits.visibility_lag_ms = 60'000;
  return cloud::make_everywhere<Cloud>("vast", std::move(setup), std::move(s), said, std::move(traits));
}

}  // namespace rille::provider
