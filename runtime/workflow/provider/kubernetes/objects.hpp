// Conversions of Kubernetes objects: nodes and pods to offers, a create request to a Job, a Job and its pod to a
// machine. Plain values and pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct KubeSettings {
  std::string name_space, image, priority_class, service_account, pull_secret;
  Value node_selector, tolerations;  // added to those that Rille sets in the pod
  Value labels;                      // set on the Job and its pod
  Value storage_classes;             // access mode by the name of a storage class: {"nfs": "ReadWriteMany"}
  Value gpus;                        // GPU model by the value of a node's label: {"p4d.24xlarge": "A100-40GB"}
  Micros price_micros_per_gpu_hour = price_unknown;
  std::int64_t wait_ms = 300'000;  // how long create waits until a pod is scheduled
  std::int64_t grace_s = 30;       // termination grace period of a pod, in seconds
};

constexpr const char* kube_tag_label = "rille-tag";
constexpr const char* kube_tag_annotation = "rille/tag";  // holds the full tag, which may be too long for a label
constexpr const char* kube_directory = "/tmp/rille";      // folder of the agent's files in the container

// Parses a Kubernetes quantity: "1500m" is 1.5, "2Gi" is 2147483648. 0: not a quantity.
double read_quantity(const std::string& text);

// The machines that fit on the nodes now: with 1, 2, 4, .. GPUs up to all free GPUs of a node, each with a proportional
// share of the node's CPUs and memory.
std::vector<Offer> kube_offers(const Value::Array& nodes, const Value::Array& pods, const KubeSettings& settings,
                               const OfferQuery& query);

// The zones of the nodes that take our pods; "cluster": of nodes without a zone. Offer::region has the same.
std::vector<std::string> kube_zones(const Value::Array& nodes, const KubeSettings& settings);

std::string kube_name(const std::string& tag);
Value kube_job(const CreateRequest& request, const KubeSettings& settings, std::int64_t now_us);

// The words before each command that is run in the pod. They wait until the pod's script has made the instance
// directory, since a pod accepts commands before that.
std::vector<std::string> kube_enter();

// The state of a machine from its Job and pod; `pod` null: no pod. Does not set the machine's channel and id. If a pod
// is terminating but its Job is not, the pod is being evicted: the machine is live, with a preemption notice for the
// end of the pod's grace period.
Machine kube_machine(const Value& job, const Value& pod, std::int64_t now_us);
// The minimal permissions that Rille needs, as input for `kubectl apply`.
std::string kube_policy();

// Why the pod cannot be scheduled; "": it is scheduled, or the scheduler has not decided yet.
std::string kube_unschedulable(const Value& pod);

}  // namespace rille::provider
