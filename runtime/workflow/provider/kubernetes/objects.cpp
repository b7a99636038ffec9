#include "runtime/workflow/provider/kubernetes/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/gpu_facts.hpp"
#include "runtime/workflow/provider/gpus.hpp"
#include "runtime/workflow/provider/kubernetes/claims.hpp"
#include "runtime/workflow/provider/rent_options.hpp"

namespace rille::provider {

namespace {

constexpr const char* gpu_resource = "nvidia.com/gpu";
constexpr const char* product_label = "nvidia.com/gpu.product";
// Node labels that name the GPU model; the first that a node has is used: NVIDIA's GPU feature discovery, Google's,
// CoreWeave's, Karpenter's. The last is the machine type, which every cloud sets; the settings map it to a GPU model.
// https://kubernetes.io/docs/reference/labels-annotations-taints/#nodekubernetesioinstance-type
constexpr const char* gpu_labels[] = {product_label, "cloud.google.com/gke-accelerator", "gpu.nvidia.com/class",
                                      "karpenter.k8s.aws/instance-gpu-name", "node.kubernetes.io/instance-type"};
constexpr const char* memory_labels[] = {"nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory"};  // in MiB
constexpr const char* zone_label = "topology.kubernetes.io/zone";
constexpr int small_machine_cpus = 4;
constexpr std::int64_t deadline_margin_s = 60;

struct Amount {
  double cpus = 0, memory = 0, gpus = 0;
  static Amount of(const Value& v) {
    const auto read = [&](const char* key, double most) {
      const Value& one = v[key];
      const double number = one.as_number() ? *one.as_number() : 0;
      return amounts::bounded(one.as_string() ? read_quantity(*one.as_string()) : number, most);
    };
    return {read("cpu", amounts::count_max), read("memory", amounts::bytes_max), read(gpu_resource, amounts::gpus_max)};
  }
  void take(const Amount& other) {
    cpus -= other.cpus;
    memory -= other.memory;
    gpus -= other.gpus;
  }
};

struct Node {
  std::string zone, label, product;  // label: the first of gpu_labels on the node; product: its value; "": no label
  std::string model;
  std::int64_t gpu_memory_bytes = 0;
  Amount all, free;
};

const Value::Array& items(const Value& v) {
  static const Value::Array none;
  return v.as_array() ? *v.as_array() : none;
}

bool has_condition(const Value& object, const char* type, const char* status) {
  for (const Value& c : items(object["status"]["conditions"]))
    if (c.text("type") == type && c.text("status") == status) return true;
  return false;
}

Value::Array tolerations_of(const KubeSettings& settings, bool with_gpus) {
  Value::Array out = items(settings.tolerations);
  if (with_gpus) out.push_back(Value().set("key", gpu_resource).set("operator", "Exists").set("effect", "NoSchedule"));
  return out;
}

bool tolerates(const Value& toleration, const Value& taint) {
  const std::string effect = toleration.text("effect"), key = toleration.text("key");
  if (!effect.empty() && effect != taint.text("effect")) return false;
  if (toleration.text("operator") == "Exists") return key.empty() || key == taint.text("key");
  return key == taint.text("key") && toleration.text("value") == taint.text("value");
}

// Whether the scheduler accepts the node for kube_job's pod: the node selector matches and all taints are tolerated.
bool takes_our_pods(const Value& node, const KubeSettings& settings) {
  const Value& labels = node["metadata"]["labels"];
  for (const auto& [label, value] :
       settings.node_selector.as_object() ? *settings.node_selector.as_object() : Value::Object())
    if (Value(labels.text(label)) != value) return false;
  const Value::Array ours = tolerations_of(settings, true);  // true: a machine on a GPU node always has GPUs
  for (const Value& taint : items(node["spec"]["taints"])) {
    const bool soft = taint.text("effect") == "PreferNoSchedule";
    const auto fits = [&taint](const Value& t) { return tolerates(t, taint); };
    if (!soft && std::none_of(ours.begin(), ours.end(), fits)) return false;
  }
  return true;
}

// Bytes of one GPU: from its name ("A100 80GB"), else from the table if all variants have one size. 0: unknown.
std::int64_t memory_in(const std::string& model) {
  const std::size_t space = model.rfind(' ');
  if (space != model.npos && model.ends_with("GB"))
    return amounts::bytes(std::floor(number_at(model.substr(space + 1))), amounts::gib);
  double memory = 0;
  for (const GpuFacts& row : gpu_facts()) {
    if (gpu_model(gpu_without_memory(row.model)) != model) continue;
    if (memory > 0 && row.memory_bytes != memory) return 0;
    memory = row.memory_bytes;
  }
  return static_cast<std::int64_t>(memory);
}

// The GPU model for a label's value. Google's names in `known` do not state the memory size:
// https://cloud.google.com/kubernetes-engine/docs/concepts/gpus
std::string model_of(const std::string& product, const KubeSettings& settings) {
  static const std::map<std::string, std::string> known{{"nvidia-tesla-a100", "A100-40GB"},
                                                        {"nvidia-h100-mega-80gb", "H100-80GB"}};
  const auto at = known.find(product);
  return gpu_model(settings.gpus.text(product, at == known.end() ? product : at->second));
}

void tell_gpu(Node& node, const Value& labels, const KubeSettings& settings) {
  for (const char* label : gpu_labels) {
    node.label = label, node.product = labels.text(label);
    if (!node.product.empty()) break;
  }
  if (node.product.empty()) node.label.clear();
  const bool is_type = node.label == *std::rbegin(gpu_labels);
  if (!is_type || !settings.gpus.text(node.product).empty()) node.model = model_of(node.product, settings);
  for (const char* label : memory_labels)
    if (node.gpu_memory_bytes == 0)
      node.gpu_memory_bytes = amounts::bytes(std::floor(read_quantity(labels.text(label))), amounts::mib);
  if (node.gpu_memory_bytes == 0) node.gpu_memory_bytes = memory_in(node.model);
}

// The GPU in an offer's id: "NVIDIA-A100-SXM4-80GB", or with its label: "cloud.google.com/gke-accelerator=nvidia-l4".
std::string product_of(const Node& node) {
  return node.label.empty() || node.label == product_label ? node.product : node.label + "=" + node.product;
}

std::map<std::string, Node> read_nodes(const Value::Array& nodes, const Value::Array& pods,
                                       const KubeSettings& settings) {
  std::map<std::string, Node> out;
  for (const Value& v : nodes) {
    if (v["spec"].boolean("unschedulable") || !has_condition(v, "Ready", "True")) continue;
    if (!takes_our_pods(v, settings)) continue;
    const Value& labels = v["metadata"]["labels"];
    Node node;
    node.zone = labels.text(zone_label);
    node.all = node.free = Amount::of(v["status"]["allocatable"]);
    if (node.all.gpus > 0) tell_gpu(node, labels, settings);
    out[v["metadata"].text("name")] = std::move(node);
  }
  for (const Value& v : pods) {
    const auto node = out.find(v["spec"].text("nodeName"));
    const std::string phase = v["status"].text("phase");
    if (node == out.end() || phase == "Succeeded" || phase == "Failed") continue;
    for (const Value& c : items(v["spec"]["containers"])) {
      Amount used = Amount::of(c["resources"]["requests"]);
      used.gpus = Amount::of(c["resources"]["limits"]).gpus;
      node->second.free.take(used);
    }
  }
  return out;
}

std::string region_of(const Node& node) { return node.zone.empty() ? "cluster" : node.zone; }

void offer_sizes(const Node& node, const KubeSettings& settings, const OfferQuery& query,
                 std::map<std::string, Offer>& out) {
  const int free = amounts::count(node.free.gpus), all = static_cast<int>(node.all.gpus);
  std::vector<int> counts = all == 0 ? std::vector<int>{0} : query.counts();
  if (counts.empty()) {
    for (int n = 1; n <= free; n *= 2) counts.push_back(n);
    if (free > 0 && counts.back() != free) counts.push_back(free);
    for (const GpuWish& one : query.gpus)
      if (one.count > 0 && std::find(counts.begin(), counts.end(), one.count) == counts.end())
        counts.push_back(one.count);
  }
  for (const int count : counts) {
    if (count > free || (all > 0 && count == 0)) continue;
    const double share = all > 0 ? double(count) / all : small_machine_cpus / std::max(1.0, node.all.cpus);
    Offer o;
    o.vcpus = std::max({1, query.vcpus, static_cast<int>(std::min(node.all.cpus * share, node.free.cpus))});
    o.memory_bytes =
        std::max(query.memory_bytes, static_cast<std::int64_t>(std::min(node.all.memory * share, node.free.memory)));
    if (o.vcpus > node.free.cpus || double(o.memory_bytes) > node.free.memory || o.memory_bytes <= 0) continue;
    o.provider = "kubernetes";
    o.region = region_of(node);
    o.id = node.zone + (count ? fmt::format("/{}:{}", product_of(node), count) : "/cpu");
    o.gpu_count = count;
    if (count > 0) {
      o.gpu = node.model.empty() ? "GPU" : node.model;
      o.gpu_memory_bytes = node.gpu_memory_bytes;
    }
    if (settings.price_micros_per_gpu_hour == price_unknown) o.price_micros_per_hour = price_unknown;
    else o.price_micros_per_hour = settings.price_micros_per_gpu_hour * std::max(1, count);
    if (o.matches(query)) out.emplace(o.id, std::move(o));
  }
}

// The script that keeps the pod running; $6 names the folders of volumes below /mnt/rille. It ends when the instance
// directory is gone (the agent has ended), at the time $3 (seconds since 1970; 0: no limit), or if no agent starts
// within $4 seconds (0: no limit). On SIGTERM, which comes alike for an eviction and a release, it writes a notice for
// the agent and ends once no call runs and no result of a preempted call waits to be fetched, at the latest after the
// grace period of $5 seconds.
constexpr const char* keep_script = R"sh(umask 077
dir=$1 grace=$5 leaving=
told() {
  [ -z "$leaving" ] || return 0
  leaving=$(($(date +%s) + grace))
  printf '{"deadline_wall_us":%s000000}\n' "$leaving" >"$dir/notice.new" && mv "$dir/notice.new" "$dir/notice.json"
}
works() {
  for call in "$dir"/calls/*; do
    [ -e "$call/spec.json" ] || continue
    [ -e "$call/result.json" ] || return 0
    case $(cat "$call/result.json") in *'"code":"preempted"'*) return 0 ;; esac
  done
  return 1
}
trap told TERM
mkdir -p "$dir/work" || exit 1
for at in $6; do ln -sfn "/mnt/rille/$at" "$dir/work/$at" || exit 1; done
printf '%s\n' "$2" >"$dir/machine.new" && mv "$dir/machine.new" "$dir/machine.json" || exit 1
quiet_until=$(($(date +%s) + $4))
while [ -e "$dir/machine.json" ]; do
  now=$(date +%s)
  [ "$3" -eq 0 ] || [ "$now" -lt "$3" ] || exit 0
  [ "$4" -eq 0 ] || [ -e "$dir/agent.lock" ] || [ "$now" -lt "$quiet_until" ] || exit 0
  [ -z "$leaving" ] || { works && [ "$now" -lt "$leaving" ]; } || exit 0
  sleep 1 &
  wait $!
done)sh";

constexpr const char* enter_script = R"sh(tries=50
while [ ! -e "$0" ] && [ "$tries" -gt 0 ]; do
  tries=$((tries - 1))
  sleep 0.1
done
exec "$@")sh";

}  // namespace

double read_quantity(const std::string& text) {
  std::string_view rest;
  const double number = number_at(text, &rest);
  static const std::map<std::string, double, std::less<>> units{
      {"", 1},     {"m", 1e-3},    {"k", 1e3},        {"M", 1e6},           {"G", 1e9},
      {"T", 1e12}, {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0}};
  const auto unit = units.find(rest);
  return unit == units.end() ? 0 : number * unit->second;
}

std::vector<Offer> kube_offers(const Value::Array& nodes, const Value::Array& pods, const KubeSettings& settings,
                               const OfferQuery& query) {
  std::map<std::string, Offer> found;
  for (const auto& [name, node] : read_nodes(nodes, pods, settings)) offer_sizes(node, settings, query, found);
  std::vector<Offer> out;
  for (auto& [id, offer] : found) out.push_back(std::move(offer));
  std::stable_sort(out.begin(), out.end(),
                   [](const Offer& a, const Offer& b) { return a.price_micros_per_hour < b.price_micros_per_hour; });
  return out;
}

std::vector<std::string> kube_zones(const Value::Array& nodes, const KubeSettings& settings) {
  std::vector<std::string> out;
  for (const auto& [name, node] : read_nodes(nodes, {}, settings)) out.push_back(region_of(node));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string kube_name(const std::string& tag) { return "rille-" + derive_hex({"kubernetes", tag}, 20); }

Value kube_job(const CreateRequest& request, const KubeSettings& settings, std::int64_t now_us) {
  Value file;
  file.set("id", kube_name(request.tag)).set("tag", request.tag).set("created_wall_us", now_us);
  request.tell_end(file);
  file.set("terminating", false);
  Value amounts;
  amounts.set("cpu", std::to_string(request.offer.vcpus)).set("memory", std::to_string(request.offer.memory_bytes));
  Value limits = amounts;
  if (request.offer.gpu_count > 0) limits.set(gpu_resource, std::to_string(request.offer.gpu_count));
  if (request.offer.gpu_count > 0) amounts.set(gpu_resource, std::to_string(request.offer.gpu_count));
  Value container;
  container.set("name", "rille").set("image", image_in(request, settings.image));
  container.set("volumeMounts", Value::Array{Value().set("name", "shm").set("mountPath", "/dev/shm")});
  const std::string ends = std::to_string((request.expires_wall_us + 999'999) / 1'000'000);
  const std::string patience = std::to_string((request.orphan_after_ms + 999) / 1000);
  container.set("command", Value::Array{"/bin/sh", "-c", keep_script, "sh", kube_directory, file.to_json(), ends,
                                        patience, std::to_string(settings.grace_s), kube_folders(request)});
  container.set("resources", Value().set("limits", std::move(limits)).set("requests", std::move(amounts)));

  Value selector = settings.node_selector.as_object() ? settings.node_selector : Value(Value::Object{});
  const std::size_t slash = request.offer.id.find('/'), colon = request.offer.id.rfind(':');
  if (slash > 0 && slash != std::string::npos) selector.set(zone_label, request.offer.id.substr(0, slash));
  if (request.offer.gpu_count > 0 && colon > slash + 1) {
    const std::string product = request.offer.id.substr(slash + 1, colon - slash - 1);
    const std::size_t is = product.find('=');
    if (is == product.npos) selector.set(product_label, product);
    else selector.set(product.substr(0, is), product.substr(is + 1));
  }
  Value spec;
  spec.set("restartPolicy", "Never").set("terminationGracePeriodSeconds", settings.grace_s);
  spec.set("automountServiceAccountToken", false);
  spec.set("containers", Value::Array{std::move(container)}).set("nodeSelector", std::move(selector));
  spec.set("tolerations", tolerations_of(settings, request.offer.gpu_count > 0));
  // A larger /dev/shm, limited by the pod's memory: the default of 64 MB is too small for data loaders and NCCL.
  spec.set("volumes", Value::Array{Value().set("name", "shm").set("emptyDir", Value().set("medium", "Memory"))});
  kube_mount(spec, request);
  const std::string priority = request.extra.text("priority_class", settings.priority_class);
  if (!priority.empty()) spec.set("priorityClassName", priority);
  if (!settings.service_account.empty()) spec.set("serviceAccountName", settings.service_account);
  if (!settings.pull_secret.empty())
    spec.set("imagePullSecrets", Value::Array{Value().set("name", settings.pull_secret)});

  Value labels = settings.labels;
  labels.set(kube_tag_label, kube_name(request.tag));
  const Value notes =
      Value().set(kube_tag_annotation, request.tag).set("rille/expires", std::to_string(request.expires_wall_us));
  Value job_spec;
  job_spec.set("backoffLimit", 0).set("ttlSecondsAfterFinished", 300);
  if (request.expires_wall_us > 0)
    job_spec.set("activeDeadlineSeconds",
                 std::max<std::int64_t>(1, (request.expires_wall_us - now_us) / 1'000'000) + deadline_margin_s);
  job_spec.set(
      "template",
      Value().set("metadata", Value().set("labels", labels).set("annotations", notes)).set("spec", std::move(spec)));
  Value out;
  out.set("apiVersion", "batch/v1").set("kind", "Job").set("spec", std::move(job_spec));
  out.set("metadata", Value().set("name", kube_name(request.tag)).set("labels", labels).set("annotations", notes));
  return out;
}

std::vector<std::string> kube_enter() {
  return {"/bin/sh", "-c", enter_script, std::string(kube_directory) + "/" + InstanceFile::name};
}

std::string kube_unschedulable(const Value& pod) {
  for (const Value& c : items(pod["status"]["conditions"]))
    if (c.text("type") == "PodScheduled" && c.text("status") == "False") return c.text("message", c.text("reason"));
  return "";
}

namespace {

constexpr std::int64_t pod_due_us = 60'000'000;  // a Job without a pod for a minute is blocked; a second is normal

// Sets the reason why containers do not start, and `hopeless` if waiting is no use (two failed pulls of the image).
void note_waiting(const Value& pod, Value& details) {
  constexpr std::string_view hopeless[] = {"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
                                           "CreateContainerConfigError"};
  for (const Value& c : items(pod["status"]["containerStatuses"])) {
    const Value& waiting = c["state"]["waiting"];
    const std::string reason = waiting.text("reason"), message = waiting.text("message");
    if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") continue;
    details.set("problem", message.empty() ? reason : reason + ": " + message);
    const bool known = std::find(std::begin(hopeless), std::end(hopeless), reason) != std::end(hopeless);
    if (known) details.set("hopeless", true);
  }
}

}  // namespace

Machine kube_machine(const Value& job, const Value& pod, std::int64_t now_us) {
  Machine m;
  const Value& notes = (job.is_null() ? pod : job)["metadata"]["annotations"];
  m.tag = notes.text(kube_tag_annotation);
  const std::string expires = notes.text("rille/expires", "0");
  m.expires_wall_us = std::max(0LL, std::strtoll(expires.c_str(), nullptr, 10));
  const std::string phase = pod["status"].text("phase"), ends = pod["metadata"].text("deletionTimestamp");
  const Result<std::int64_t> ends_us = parse_utc(ends);  // deletionTimestamp is the end of the grace period
  const bool evicted = !job.is_null() && job["metadata"].text("deletionTimestamp").empty() && phase == "Running" &&
                       ends_us && now_us < *ends_us;
  if (job.is_null()) m.state = pod.is_null() ? MachineState::gone : MachineState::terminating;
  else if (evicted) m.state = MachineState::live;
  else if (has_condition(job, "Failed", "True") || has_condition(job, "Complete", "True")) m.state = MachineState::gone;
  else if (!ends.empty() || phase == "Failed" || phase == "Succeeded") m.state = MachineState::terminating;
  else m.state = phase == "Running" ? MachineState::live : MachineState::pending;
  if (evicted) m.notice_wall_us = *ends_us;
  m.details.set("pod", pod["metadata"].text("name")).set("node", pod["spec"].text("nodeName"));
  if (m.state == MachineState::pending && pod.is_null() && job["spec"].boolean("suspend")) {
    m.details.set("problem", "the Job is suspended: its queue has not admitted it");  // queued by Kueue
  } else if (m.state == MachineState::pending && pod.is_null()) {
    m.details.set("problem", fmt::format("the Job has no pod yet: `kubectl describe job {}` says why, as a quota would",
                                         job["metadata"].text("name")));
    const Result<std::int64_t> made_us = parse_utc(job["metadata"].text("creationTimestamp"));
    if (made_us && now_us - *made_us > pod_due_us) m.details.set("hopeless", true);
  } else if (m.state == MachineState::pending) {
    note_waiting(pod, m.details);
  }
  for (const Value& c : items(pod["status"]["conditions"]))
    if (c.text("type") == "DisruptionTarget" && c.text("status") == "True") m.details.set("evicted", c.text("reason"));
  return m;
}

std::string kube_policy() {
  return R"json({
  "apiVersion": "v1", "kind": "List", "items": [
    { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
      "metadata": { "name": "rille", "namespace": "default" },
      "rules": [
        { "apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "list", "delete"] },
        { "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"] },
        { "apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["create", "get", "list", "delete"] },
        { "apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"] } ] },
    { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
      "metadata": { "name": "rille", "namespace": "default" },
      "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "rille" },
      "subjects": [ { "kind": "ServiceAccount", "name": "rille", "namespace": "default" } ] },
    { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "rille" },
      "rules": [ { "apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"] } ] },
    { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "rille" },
      "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "rille" },
      "subjects": [ { "kind": "ServiceAccount", "name": "rille", "namespace": "default" } ] }
  ]
}
)json";
}

}  // namespace rille::provider
