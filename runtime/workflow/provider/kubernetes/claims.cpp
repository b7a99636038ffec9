#include "runtime/workflow/provider/kubernetes/claims.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rille::provider {

namespace {

constexpr std::string_view volume_mark = "volume-";
constexpr const char* of_many = "ReadWriteMany";
constexpr const char* of_one = "ReadWriteOnce";

const Value::Array& rows_of(const Value& v) {
  static const Value::Array none;
  return v.as_array() ? *v.as_array() : none;
}

}  // namespace

std::vector<VolumeKind> kube_volume_kinds(const KubeSettings& settings) {
  std::vector<VolumeKind> out{{kube_default_class}};
  if (const Value::Object* classes = settings.storage_classes.as_object())
    for (const auto& [name, mode] : *classes) {
      if (name == kube_default_class) out.front().shared = mode == Value(of_many);
      else out.push_back({name, mode == Value(of_many)});
    }
  return out;
}

std::vector<Offer> kube_volume_offers(const Value::Array& nodes, const KubeSettings& settings, const VolumeWish& wish) {
  const std::vector<VolumeKind> kinds = kube_volume_kinds(settings);
  const bool shared = std::any_of(kinds.begin(), kinds.end(),
                                  [&](const VolumeKind& kind) { return kind.name == wish.kind && kind.shared; });
  std::vector<std::string> zones = kube_zones(nodes, settings);
  if (shared && wish.region.empty()) zones.assign(1, "");
  std::vector<Offer> out;
  for (const std::string& zone : zones)
    if (wish.region.empty() || wish.region == zone)
      out.push_back(volume_offer("kubernetes", wish.kind, zone, price_unknown));
  return out;
}

std::string kube_claim_in(const std::string& id) {
  return id.starts_with(volume_mark) ? id.substr(volume_mark.size()) : "";
}

Value kube_claim(const CreateRequest& request, const KubeSettings& settings) {
  const VolumeTraits traits = volume_in(request);
  const std::string name = kube_name(request.tag);
  Value labels = settings.labels.as_object() ? settings.labels : Value(Value::Object{});
  labels.set(kube_volume_label, name);
  Value spec;
  spec.set("accessModes", Value::Array{traits.shared ? of_many : of_one});
  spec.set("resources", Value().set("requests", Value().set("storage", std::to_string(request.disk_bytes))));
  if (traits.kind != kube_default_class) spec.set("storageClassName", traits.kind);
  Value meta;
  meta.set("name", name).set("labels", std::move(labels));
  meta.set("annotations", Value().set(kube_tag_annotation, request.tag));
  Value out;
  out.set("apiVersion", "v1").set("kind", "PersistentVolumeClaim").set("metadata", std::move(meta));
  return out.set("spec", std::move(spec));
}

Machine kube_volume(const Value& claim) {
  const Value& meta = claim["metadata"];
  Machine m;
  m.id = std::string(volume_mark) + meta.text("name");
  m.tag = meta["annotations"].text(kube_tag_annotation);
  const std::string phase = claim["status"].text("phase");
  const bool ends = !meta.text("deletionTimestamp").empty();
  m.state = ends || phase == "Lost" ? MachineState::terminating : MachineState::live;
  if (phase == "Lost") m.details.set("problem", "its claim is Lost: the disk behind it is gone");
  return m;
}

std::string kube_user_of(const Value::Array& pods, const std::string& claim) {
  for (const Value& pod : pods) {
    const std::string phase = pod["status"].text("phase");
    if (phase == "Succeeded" || phase == "Failed") continue;
    for (const Value& volume : rows_of(pod["spec"]["volumes"]))
      if (volume["persistentVolumeClaim"].text("claimName") == claim) return pod["metadata"].text("name");
  }
  return "";
}

void kube_mount(Value& pod_spec, const CreateRequest& request) {
  Value::Array volumes = rows_of(pod_spec["volumes"]), containers = rows_of(pod_spec["containers"]);
  Value::Array mounts = rows_of(containers.front()["volumeMounts"]);
  for (const Mount& mount : mounts_in(request)) {
    const std::string name = fmt::format("volume-{}", volumes.size());
    volumes.push_back(Value()
                          .set("name", name)
                          .set("persistentVolumeClaim", Value().set("claimName", kube_claim_in(mount.own_id()))));
    mounts.push_back(Value().set("name", name).set("mountPath", kube_mounts + mount.at));
  }
  containers.front().set("volumeMounts", std::move(mounts));
  pod_spec.set("volumes", std::move(volumes)).set("containers", std::move(containers));
}

std::string kube_folders(const CreateRequest& request) {
  std::string out;
  for (const Mount& mount : mounts_in(request)) out += (out.empty() ? "" : " ") + mount.at;
  return out;
}

}  // namespace rille::provider
