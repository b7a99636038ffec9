// Volumes of a cluster: PersistentVolumeClaims, and how a pod mounts them. A claim exists before its disk does: its
// storage class may wait for the first pod. Plain values and pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/kubernetes/objects.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider {

constexpr const char* kube_volume_label = "rille-volume";
constexpr const char* kube_default_class = "default";  // the kind of the cluster's own default class

// The kinds of volumes: the default class, then the classes in the settings (storage_classes).
std::vector<VolumeKind> kube_volume_kinds(const KubeSettings& settings);
// The offers, one per zone of the nodes; of a shared kind one for all zones (region ""), unless a region is asked for.
std::vector<Offer> kube_volume_offers(const Value::Array& nodes, const KubeSettings& settings, const VolumeWish& wish);

// A volume's id is "volume-NAME", with the claim's name; "": the id is a machine's.
std::string kube_claim_in(const std::string& id);
Value kube_claim(const CreateRequest& request, const KubeSettings& settings);
Machine kube_volume(const Value& claim);
// The name of a pod that has not ended and has the claim; "": there is none.
std::string kube_user_of(const Value::Array& pods, const std::string& claim);

// Adds the volumes of the request to the spec of its pod, below kube_mounts.
constexpr const char* kube_mounts = "/mnt/rille/";
void kube_mount(Value& pod_spec, const CreateRequest& request);
// The folders of the request's volumes, separated by spaces.
std::string kube_folders(const CreateRequest& request);

}  // namespace rille::provider
