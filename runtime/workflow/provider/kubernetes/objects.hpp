// Conversions of Kubernetes objects: nodes and pods to offers, a create request to a Job, a Job and its pod to a
// machine. Plain values and pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct KubeSettings {
  std::string name_space, image, priority_class, service_account, pull_secret;
  Value node_selector, tolerations;  // added to the pod's
  Value labels;                      // of the Job and its pod
  Value gpus;                        // {"p4d.24xlarge": "A100-40GB"}: the GPU model by label value
  Micros price_micros_per_gpu_hour = price_unknown;
  std::int64_t wait_ms = 300'000;  // for a pod to be scheduled
  std::int64_t grace_s = 30;       // termination grace period of a pod
};

constexpr const char* kube_tag_label = "rille-tag";
constexpr const char* kube_tag_annotation = "rille/tag";  // the full tag, which may be too long for a label
constexpr const char* kube_directory = "/tmp/rille";      // the instance directory in the container

// "1500m" -> 1.5; "2Gi" -> 2147483648. 0: not a quantity.
double read_quantity(const std::string& text);

// The machines that fit on a node now: 1, 2, 4, .. GPUs up to all free ones, with their share of CPUs and memory.
std::vector<Offer> kube_offers(const Value::Array& nodes, const Value::Array& pods, const KubeSettings& settings,
                               const OfferQuery& query);

std::string kube_name(const std::string& tag);
Value kube_job(const CreateRequest& request, const KubeSettings& settings, std::int64_t now_us);

// The prefix of a command in the pod. It waits until the pod's script has made the instance directory, since a pod
// accepts commands before that.
std::vector<std::string> kube_enter();

// `pod` null: none. Sets neither channel nor id. A terminating pod whose Job remains is being evicted: a live machine
// with a notice for the end of its grace period.
Machine kube_machine(const Value& job, const Value& pod, std::int64_t now_us);
// The minimal permissions, as objects for `kubectl apply`.
std::string kube_policy();

// Why the pod cannot be scheduled; "": it can, or the scheduler has not decided yet.
std::string kube_unschedulable(const Value& pod);

}  // namespace rille::provider
