#include "runtime/workflow/provider/runpod/runpod.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "runtime/core/base/base64.hpp"
#include "runtime/workflow/provider/cloud/everywhere.hpp"
#include "runtime/workflow/provider/cloud/key_owner.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/gpus.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/runpod/pods.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::provider {

namespace {

using namespace runpod;

constexpr std::int64_t gb = 1'000'000'000;
// The price of a container's disk: 0.10 dollars per GB and month in all data centers (docs.runpod.io/pods/storage).
// RunPod's API does not return it.
constexpr Micros disk_micros_per_gb_hour = 137;
constexpr std::size_t script_bytes_max = 8 << 10;
// Ids of pods have no hyphen, so this cannot be the beginning of one.
constexpr std::string_view volume_prefix = "volume-";
constexpr std::int64_t volume_gb_min = 10, volume_gb_max = 4096;

struct Settings {
  std::string image = "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404";
  std::vector<std::string> regions;  // empty: all regions
  std::int64_t disk_bytes = 50 * gb;
  Value endpoints;
};

MachineState state_of(const Pod& pod) {
  if (pod.status == "PROVISIONING" || pod.status == "STARTING") return MachineState::pending;
  if (pod.status == "RUNNING") return pod.address.empty() ? MachineState::pending : MachineState::live;
  return pod.status == "TERMINATED" ? MachineState::gone
                                    : MachineState::terminating;  // a stopped pod still costs money: Rille ends it
}

// RunPod's name of a kind: "STANDARD".
std::string type_of_kind(std::string kind) {
  for (char& c : kind) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return kind;
}

// The price of a gigabyte and hour of a network volume: 0.07 dollars a month for each of the first 1000 GB, 0.05 for
// the others (docs.runpod.io/storage/network-volumes). RunPod's API does not return it. That of the other kind differs
// between data centers and is shown in the console only.
Micros volume_price(const std::string& kind, std::int64_t size_gb) {
  if (kind != "standard") return price_unknown;
  constexpr std::int64_t first_gb = 1000, first_micros = 70'000, other_micros = 50'000, month_h = 730;
  const std::int64_t first = std::clamp<std::int64_t>(size_gb, 1, first_gb), others = std::max(size_gb, first) - first;
  const std::int64_t hours = month_h * (first + others);
  return (first * first_micros + others * other_micros + hours - 1) / hours;
}

class Cloud final : public cloud::Everywhere, public cloud::VolumeMaker, public UsualDisk {
 public:
  Cloud(Loop& loop, cloud::SshKeys keys, Settings settings)
      : Everywhere(std::move(keys), key_chain(loop)), settings_(std::move(settings)),
        pods_(loop, chain_, settings_.endpoints) {}
  bool is_id(std::string_view id) const override {
    if (is_volume_id(id)) id.remove_prefix(volume_prefix.size());
    return std::all_of(id.begin(), id.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
  }

  std::int64_t usual_disk_bytes(const Offer&) const override { return settings_.disk_bytes; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    std::vector<Offer> out;
    if (query.gpu == "cpu") co_return out;
    std::vector<int> counts{1, 2, 4, 8};
    if (const std::vector<int> asked = query.counts(); !asked.empty()) counts = asked;
    for (const GpuWish& one : query.gpus)
      if (one.count > 0 && std::find(counts.begin(), counts.end(), one.count) == counts.end())
        counts.push_back(one.count);
    const Result<Shapes> known = co_await pods_.shapes(counts, token);
    if (!known && (query.spot || !is_graphql_gone(known.error()))) co_return known.error();
    const Shapes shapes = known ? *known : Shapes();
    for (const int count : counts) {
      RILLE_CO_TRY(const std::vector<Sold> all, co_await pods_.sold(count, token));
      for (const Sold& sold : all) {
        const auto shape = shapes.find({sold.id, count});
        add_offers(sold, count, shape == shapes.end() ? Shape() : shape->second, query.spot, out);
      }
    }
    co_return cloud::only_there("runpod", std::move(out), settings_.regions);
  }

  const std::vector<VolumeKind>& volume_kinds() const override {
    static const std::vector<VolumeKind> all{{"standard", true}, {"high_performance", true}};
    return all;
  }
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken token) override {
    const std::int64_t size_gb = gigabytes(wish.size_bytes);
    if (size_gb < volume_gb_min || size_gb > volume_gb_max)
      co_return make_error(
          ErrorKind::invalid,
          fmt::format("a network volume of RunPod has {} to {} GB, and not {}", volume_gb_min, volume_gb_max, size_gb),
          fmt::format("size = \"{}GB\"", std::clamp(size_gb, volume_gb_min, volume_gb_max)));
    RILLE_CO_TRY(const std::vector<std::string> centers, co_await pods_.centers_of(type_of_kind(wish.kind), token));
    const Micros price = volume_price(wish.kind, size_gb);
    std::vector<Offer> out;
    for (const std::string& center : centers) out.push_back(volume_offer("runpod", wish.kind, center, price));
    co_return cloud::only_there("runpod", std::move(out), settings_.regions);
  }

  Async<Machine> create(CreateRequest request, std::string type, CancelToken token) override {
    if (is_volume(request)) co_return co_await create_volume(std::move(request), std::move(token));
    const std::size_t mark = type.rfind(" x");
    if (mark == std::string::npos)
      co_return make_error(ErrorKind::invalid, "'" + type + "' is not an offer of runpod",
                           "use the id of an offer from rille.offers");
    Order order;
    std::vector<cloud::BootDisk> disks;
    const std::vector<Mount> mounts = mounts_in(request);
    if (mounts.size() > 1)
      co_return make_error(ErrorKind::invalid, fmt::format("{} volumes: a pod of RunPod has one", mounts.size()),
                           "put the data into one volume");
    if (!mounts.empty()) {
      order.volume = mounts[0].own_id().substr(volume_prefix.size());
      order.mount_path = cloud::mounted_at(mounts[0].at);
      disks.push_back({mounts[0].at, ""});
    }
    RILLE_CO_TRY(const std::string script, access_.script(request, true, script_bytes_max, std::move(disks)));
    order.name = request.tag;
    order.send_by_wall_us = request.send_by_wall_us;
    order.image = image_in(request, settings_.image);
    // After Rille's script the image's /start.sh, or else `sleep`, keeps the container alive.
    order.start_command = fmt::format(
        "sh -c 'echo {} | base64 -d | sh; [ -x /start.sh ] && exec /start.sh; "
        "exec sleep infinity'",
        to_base64(script));
    order.gpu = type.substr(0, mark);
    order.center = request.offer.region;
    order.count = request.offer.gpu_count;
    order.disk_gb = gigabytes(request.disk_bytes ? request.disk_bytes : settings_.disk_bytes);
    if (request.offer.spot)
      order.bid_micros_per_gpu_hour = std::max<Micros>(bid_of(request) / std::max(order.count, 1), 1);
    Machine made;
    RILLE_CO_TRY(made.id, co_await pods_.create(std::move(order), token));
    co_return made;
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    if (is_volume_id(id)) {
      RILLE_CO_TRY(const NetworkVolume volume, co_await pods_.volume(id.substr(volume_prefix.size()), token));
      co_return machine_of_volume(volume);
    }
    RILLE_CO_TRY(const Pod pod, co_await pods_.describe(std::move(id), token));
    co_return machine_of(pod);
  }

  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    RILLE_CO_TRY(const std::vector<Pod> all, co_await pods_.list(token));
    RILLE_CO_TRY(std::vector<Machine> out,
                 tagged(all, &Pod::name, tag_prefix, [this](const Pod& one) { return machine_of(one); }));
    RILLE_CO_TRY(const std::vector<NetworkVolume> volumes, co_await pods_.volumes(token));
    RILLE_CO_TRY(std::vector<Machine> kept, tagged(volumes, &NetworkVolume::name, tag_prefix, machine_of_volume));
    std::move(kept.begin(), kept.end(), std::back_inserter(out));
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    if (is_volume_id(id)) return pods_.delete_volume(id.substr(volume_prefix.size()), std::move(token));
    return pods_.terminate(std::move(id), std::move(token));
  }

 private:
  static bool is_volume_id(std::string_view id) { return id.starts_with(volume_prefix); }
  static std::int64_t gigabytes(std::int64_t bytes) { return (bytes + gb - 1) / gb; }

  Async<Machine> create_volume(CreateRequest request, CancelToken token) {
    NetworkVolume order;
    order.name = request.tag;
    order.center = request.offer.region;
    order.type = type_of_kind(volume_in(request).kind);
    order.size_gb = gigabytes(request.disk_bytes);
    RILLE_CO_TRY(const NetworkVolume made,
                 co_await pods_.create_volume(std::move(order), request.send_by_wall_us, std::move(token)));
    co_return machine_of_volume(made);
  }

  // RunPod tells no state: a volume that it shows can be mounted.
  static Result<Machine> machine_of_volume(const NetworkVolume& volume) {
    Machine m;
    m.id = std::string(volume_prefix) + volume.id;
    m.state = MachineState::live;
    m.tag = volume.name;
    m.details.set("region", volume.center);
    return m;
  }

  std::int64_t skew_us() const override { return pods_.skew_us(); }
  Async<std::string> owner(CancelToken token) override {
    cloud::KeyOwner::Ask ask = [this](CancelToken t) { return pods_.account(std::move(t)); };
    co_return co_await owner_.get(&chain_, std::move(ask), std::move(token));
  }
  Async<Identity> identity(CancelToken token) override { return pods_.identity(std::move(token)); }

  void add_offers(const Sold& sold, int count, const Shape& shape, bool spot, std::vector<Offer>& out) const {
    const Micros each = spot ? shape.bid_micros_per_gpu_hour : sold.micros_per_gpu_hour;
    if (each == 0) return;
    for (const std::string& center : sold.centers) {
      Offer offer;
      offer.id = fmt::format("{} x{}", sold.id, count);
      offer.gpu = gpu_model(sold.id);
      offer.gpu_count = count;
      offer.gpu_memory_bytes = sold.memory_bytes;
      offer.vcpus = shape.vcpus;
      offer.memory_bytes = shape.memory_bytes;
      offer.region = center;
      offer.price_micros_per_hour = each * count;
      offer.disk_bytes_max = 2'000 * gb;
      offer.disk_micros_per_gb_hour = disk_micros_per_gb_hour;
      out.push_back(std::move(offer));
    }
  }

  Result<Machine> machine_of(const Pod& pod) const {
    Machine m;
    m.id = pod.id;
    m.state = state_of(pod);
    m.tag = pod.name;
    m.created_wall_us = pod.created_wall_us;
    m.details.set("type", pod.type).set("region", pod.center);
    if (pod.status == "ERROR") m.details.set("problem", "RunPod says ERROR");
    if (m.state != MachineState::live) return m;
    m.price_micros_per_hour = pod.micros_per_hour;
    m.details.set("address", pod.address);
    RILLE_TRY(m.channel, access_.channel(pod.name, pod.id, pod.address, pod.port));
    return m;
  }

  Settings settings_;
  Pods pods_;
  cloud::KeyOwner owner_{"runpod", "account"};
};

}  // namespace

Result<std::unique_ptr<Provider>> make_runpod_provider(Setup setup) {
  cloud::SettingsReader read("runpod", setup.settings);
  Settings s;
  s.image = read.text("image", s.image);
  s.regions = read.texts("regions", {});
  s.disk_bytes = read.bytes("disk", s.disk_bytes);
  s.endpoints = read.object("endpoints");
  const Value said = read.object("traits");
  RILLE_CHECK(read.done());
  Traits traits;
  traits.visibility_lag_ms = 60'000;
  return cloud::make_everywhere<Cloud>("runpod", std::move(setup), std::move(s), said, std::move(traits));
}

}  // namespace rille::provider
