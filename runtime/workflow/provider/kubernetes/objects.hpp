// The objects of Kubernetes that are read and made: nodes and pods into offers, an order into a Job, a Job and its pod
// into a machine's state. Plain values and pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct KubeSettings {
  std::string name_space, image, priority_class, service_account, pull_secret;
  Value node_selector, tolerations;  // more of both
  Value labels;                      // of the Job and its pod
  Value gpus;                        // {"p4d.24xlarge": "A100-40GB"}: of a label's value the model
  Micros price_micros_per_gpu_hour = price_unknown;
  std::int64_t wait_ms = 300'000;  // for a pod to find a node
  std::int64_t grace_s = 30;       // that a pod has to end which is told to
};

constexpr const char* kube_tag_label = "rille-tag";
constexpr const char* kube_tag_annotation = "rille/tag";  // the whole, where a label has no room
constexpr const char* kube_directory = "/tmp/rille";      // of an instance, in its container

// "1500m" -> 1.5; "2Gi" -> 2147483648. 0: it is no quantity.
double read_quantity(const std::string& text);

// Machines that fit on a node now: 1, 2, 4, .. GPUs up to all that are free, with their share of the rest.
std::vector<Offer> kube_offers(const Value::Array& nodes, const Value::Array& pods, const KubeSettings& settings,
                               const OfferQuery& query);

std::string kube_name(const std::string& tag);
Value kube_job(const CreateRequest& request, const KubeSettings& settings, std::int64_t now_us);

// The words before a command in the pod: it waits until the pod's script has made the instance's folder, since a pod
// runs, and takes commands, before that.
std::vector<std::string> kube_enter();

// `pod` null: there is none. Neither channel nor id. A pod that shall end though its Job stays is evicted: a machine
// that lives, with a notice, until its grace is over.
Machine kube_machine(const Value& job, const Value& pod, std::int64_t now_us);
// The least that it must be allowed, as objects for `kubectl apply`.
std::string kube_policy();

// Why no node takes the pod; "" if one does, or nobody has looked.
std::string kube_unschedulable(const Value& pod);

}  // namespace rille::provider
