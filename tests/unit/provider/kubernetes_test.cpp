#include <catch2/catch.hpp>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/kubernetes/claims.hpp"
#include "runtime/workflow/provider/kubernetes/objects.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

Value json(const char* text) { return Value::from_json(text).value(); }

const Value nodes = json(R"([
  {"metadata": {"name": "a", "labels": {"topology.kubernetes.io/zone": "z", "nvidia.com/gpu.memory": "81920",
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
    "allocatable": {"cpu": "31500m", "memory": "64Gi", "nvidia.com/gpu": "4"}}},
  {"metadata": {"name": "off"}, "spec": {"unschedulable": true}, "status": {
    "conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "8", "memory": "64Gi"}}},
  {"metadata": {"name": "ill"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}],
    "allocatable": {"cpu": "8", "memory": "64Gi"}}}])");
const Value pods = json(R"([
  {"spec": {"nodeName": "a", "containers": [{"resources": {"requests": {"cpu": "2", "memory": "4Gi"},
    "limits": {"nvidia.com/gpu": "1"}}}]}, "status": {"phase": "Running"}},
  {"spec": {"nodeName": "a", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "3"}}}]},
    "status": {"phase": "Succeeded"}}])");

}  // namespace

TEST_CASE("kubernetes: quantities") {
  CHECK(read_quantity("1500m") == 1.5);
  CHECK(read_quantity("2Gi") == 2147483648.0);
  CHECK(read_quantity("3G") == 3e9);
  CHECK(read_quantity("12") == 12);
  CHECK(read_quantity("1x") == 0);
}

TEST_CASE("kubernetes: what is free on nodes that take pods") {
  OfferQuery query;
  query.gpu = "A100-80GB";
  KubeSettings settings;
  const std::vector<Offer> all = kube_offers(*nodes.as_array(), *pods.as_array(), settings, query);
  REQUIRE(all.size() == 3);
  CHECK(all[0].id == "z/NVIDIA-A100-SXM4-80GB:1");
  CHECK(all[0].vcpus == 7);
  CHECK(all[0].memory_bytes == 16LL << 30);
  CHECK(all[0].price_micros_per_hour == price_unknown);
  CHECK(all[2].gpu_count == 3);
  query.count = 4;
  CHECK(kube_offers(*nodes.as_array(), *pods.as_array(), settings, query).empty());
  query.gpu = "cpu";
  CHECK(kube_offers(*nodes.as_array(), *pods.as_array(), settings, query).empty());
}

TEST_CASE("kubernetes: quantities that no node has") {
  for (const char* gpus : {"2147483647", "1e300", "1e300Ti", "-1", "nan"}) {
    INFO(gpus);
    Value node = (*nodes.as_array())[0];
    node.set("status",
             Value(node["status"])
                 .set("allocatable", Value().set("cpu", "1e300").set("memory", "1e300Ti").set("nvidia.com/gpu", gpus)));
    OfferQuery query;
    query.gpu = "A100";
    const std::vector<Offer> all = kube_offers(Value::Array{node}, {}, {}, query);
    CHECK(all.size() < 100);
    for (const Offer& o : all) CHECK((o.gpu_count > 0 && o.vcpus > 0 && o.memory_bytes > 0));
  }
}

TEST_CASE("kubernetes: nodes whose taints or labels keep the pods away are not offered") {
  OfferQuery query;
  query.gpu = "A100";
  KubeSettings settings;
  const auto offers = [&](const char* spec) {
    Value node = (*nodes.as_array())[0];
    node.set("spec", json(spec));
    return kube_offers(Value::Array{node}, {}, settings, query).size();
  };
  CHECK(offers("{}") > 0);
  CHECK(offers(R"({"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]})") > 0);
  CHECK(offers(R"({"taints": [{"key": "slow", "effect": "PreferNoSchedule"}]})") > 0);
  const char* const owned = R"({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]})";
  CHECK(offers(owned) == 0);
  settings.tolerations = json(R"([{"key": "team", "value": "y"}])");
  CHECK(offers(owned) == 0);
  settings.tolerations = json(R"([{"key": "team", "value": "x"}])");
  CHECK(offers(owned) > 0);
  settings.tolerations = json(R"([{"operator": "Exists"}])");
  CHECK(offers(owned) > 0);
  settings.node_selector = json(R"({"pool": "train"})");
  CHECK(offers("{}") == 0);
  settings.node_selector = json(R"({"topology.kubernetes.io/zone": "z"})");
  CHECK(offers("{}") > 0);
}

TEST_CASE("kubernetes: the GPU comes from any known label of the node, and the pod selects that label") {
  KubeSettings settings;
  settings.image = "debian";
  const auto offer = [&](const char* labels) {
    Value node = (*nodes.as_array())[0];
    node.set("metadata", Value().set("name", "a").set("labels", json(labels)));
    OfferQuery query;
    query.count = 1;
    const std::vector<Offer> all = kube_offers(Value::Array{node}, {}, settings, query);
    REQUIRE(all.size() == 1);
    return all[0];
  };
  const auto selector = [&](const Offer& o) {
    CreateRequest request;
    request.tag = "rille-0123-x-g1-x1900000000";
    request.offer = o;
    return kube_job(request, settings, 0)["spec"]["template"]["spec"]["nodeSelector"].to_json();
  };
  const Offer gke = offer(R"({"topology.kubernetes.io/zone": "z", "cloud.google.com/gke-accelerator": "nvidia-l4"})");
  CHECK(gke.id == "z/cloud.google.com/gke-accelerator=nvidia-l4:1");
  CHECK(gke.gpu == "L4");
  CHECK(gke.gpu_memory_bytes == 24'000'000'000);
  CHECK(selector(gke) == R"({"cloud.google.com/gke-accelerator":"nvidia-l4","topology.kubernetes.io/zone":"z"})");
  const Offer older = offer(R"({"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"})");
  CHECK(older.gpu == "A100 40GB");
  CHECK(older.gpu_memory_bytes == 40LL << 30);
  CHECK(offer(R"({"gpu.nvidia.com/class": "A100_PCIE_80GB"})").gpu == "A100 80GB");
  const Offer karpenter = offer(R"({"karpenter.k8s.aws/instance-gpu-name": "a100",
                                    "karpenter.k8s.aws/instance-gpu-memory": "40960"})");
  CHECK(karpenter.gpu == "A100");
  CHECK(karpenter.gpu_memory_bytes == 40LL << 30);
  const char* const type_only = R"({"node.kubernetes.io/instance-type": "p4d.24xlarge"})";
  CHECK(offer(type_only).gpu == "GPU");
  settings.gpus = json(R"({"p4d.24xlarge": "A100-40GB"})");
  CHECK(offer(type_only).gpu == "A100 40GB");
  CHECK(selector(offer(type_only)) == R"({"node.kubernetes.io/instance-type":"p4d.24xlarge"})");
  CHECK(offer("{}").gpu == "GPU");
  CHECK(selector(offer("{}")) == "{}");
}

TEST_CASE("kubernetes: the Job that is ordered") {
  CreateRequest request;
  request.tag = "rille-0123-x-g1-x1900000000";
  request.offer.id = "z/NVIDIA-A100-SXM4-80GB:2";
  request.offer.gpu_count = 2;
  request.offer.vcpus = 8;
  request.offer.memory_bytes = 1LL << 34;
  request.expires_wall_us = 100'000'000;
  KubeSettings settings;
  settings.image = "debian";
  settings.priority_class = "low";
  settings.pull_secret = "registry";
  settings.labels = json(R"({"kueue.x-k8s.io/queue-name": "team"})");
  const Value job = kube_job(request, settings, 40'000'000);
  CHECK(job["metadata"].text("name") == kube_name(request.tag));
  CHECK(job["spec"].integer("activeDeadlineSeconds") == 120);
  CHECK(job["spec"].integer("backoffLimit", -1) == 0);
  const Value& pod = job["spec"]["template"]["spec"];
  CHECK(pod["nodeSelector"].text("nvidia.com/gpu.product") == "NVIDIA-A100-SXM4-80GB");
  CHECK(pod["nodeSelector"].text("topology.kubernetes.io/zone") == "z");
  CHECK(pod.text("priorityClassName") == "low");
  CHECK(pod["imagePullSecrets"].to_json() == R"([{"name":"registry"}])");
  CHECK(job["metadata"]["labels"].text("kueue.x-k8s.io/queue-name") == "team");
  CHECK(job["spec"]["template"]["metadata"]["labels"].text(kube_tag_label) == kube_name(request.tag));
  CHECK((*pod["volumes"].as_array())[0].to_json() == R"({"emptyDir":{"medium":"Memory"},"name":"shm"})");
  request.extra.set("priority_class", "urgent");  // the rent's own word
  CHECK(kube_job(request, settings, 40'000'000)["spec"]["template"]["spec"].text("priorityClassName") == "urgent");
  CHECK((*pod["containers"].as_array())[0]["resources"]["limits"].text("nvidia.com/gpu") == "2");
  const Value::Array& command = *(*pod["containers"].as_array())[0]["command"].as_array();
  CHECK(command[4] == Value("/tmp/rille"));
  CHECK(command[6] == Value("100"));   // it ends then
  CHECK(command[7] == Value("1800"));  // and when no runner has come for so long
  CHECK(command[8] == Value("30"));    // and so long after its delete time
  CHECK(pod.integer("terminationGracePeriodSeconds") == 30);
  CHECK(kube_machine(job, Value(), 0).tag == request.tag);
  CHECK(kube_machine(job, Value(), 0).state == MachineState::pending);
}

TEST_CASE("kubernetes: a volume is a claim, and a pod mounts it") {
  KubeSettings settings;
  CHECK(kube_volume_kinds(settings).size() == 1);
  settings.storage_classes = json(R"({"fast": "ReadWriteOnce", "nfs": "ReadWriteMany"})");
  const std::vector<VolumeKind> kinds = kube_volume_kinds(settings);
  REQUIRE(kinds.size() == 3);
  CHECK(kinds[0].name == "default");
  CHECK_FALSE(kinds[1].shared);
  CHECK(kinds[2].name == "nfs");
  CHECK(kinds[2].shared);

  CreateRequest request;
  request.tag = "rille-0123-v-g1-x1900000000";
  request.disk_bytes = 10'000'000'000;
  tell_volume(request.extra, {"nfs", true, true});
  const Value claim = kube_claim(request, settings);
  CHECK(claim["metadata"].text("name") == kube_name(request.tag));
  CHECK(claim["spec"].to_json() ==
        R"({"accessModes":["ReadWriteMany"],"resources":{"requests":{"storage":"10000000000"}},)"
        R"("storageClassName":"nfs"})");
  Value ordinary{Value::Object{}};
  tell_volume(ordinary, {"default", false, true});
  request.extra = ordinary;
  CHECK(kube_claim(request, settings)["spec"]["accessModes"].to_json() == R"(["ReadWriteOnce"])");
  CHECK(kube_claim(request, settings)["spec"]["storageClassName"].is_null());  // the cluster's own choice

  const Machine volume = kube_volume(claim);
  CHECK(volume.id == "volume-" + kube_name(request.tag));
  CHECK(volume.tag == request.tag);
  CHECK(volume.state == MachineState::live);
  CHECK(kube_claim_in(volume.id) == kube_name(request.tag));
  CHECK(kube_claim_in(kube_name(request.tag)).empty());
  for (const char* ends :
       {R"({"status": {"phase": "Lost"}})", R"({"metadata": {"deletionTimestamp": "2026-11-01T00:00:00Z"}})"})
    CHECK(kube_volume(json(ends)).state == MachineState::terminating);

  CreateRequest box;
  box.tag = "rille-0123-b-g1-x1900000000";
  box.offer.id = "z/cpu";
  tell_mounts(box.extra, {{"data", volume.id, "l-1", "", true, "nfs"}});
  const Value pod = kube_job(box, settings, 0)["spec"]["template"]["spec"];
  CHECK((*pod["volumes"].as_array())[1].to_json() ==
        R"({"name":"volume-1","persistentVolumeClaim":{"claimName":")" + kube_name(request.tag) + "\"}}");
  const Value& container = (*pod["containers"].as_array())[0];
  CHECK((*container["volumeMounts"].as_array())[1].to_json() == R"({"mountPath":"/mnt/rille/data","name":"volume-1"})");
  CHECK(container["command"].as_array()->back() == Value("data"));
  const Value::Array pods{Value().set("metadata", Value().set("name", "p")).set("spec", pod)};
  CHECK(kube_user_of(pods, kube_name(request.tag)) == "p");
  CHECK(kube_user_of(pods, "another").empty());
}

TEST_CASE("kubernetes: volumes are sold in the zones of the nodes, and a shared one in all of them") {
  const auto node = [](const char* name, const char* zone) {
    Value labels{Value::Object{}};
    if (*zone) labels.set("topology.kubernetes.io/zone", zone);
    return Value()
        .set("metadata", Value().set("name", name).set("labels", labels))
        .set("status", json(R"({"conditions": [{"type": "Ready", "status": "True"}]})"));
  };
  KubeSettings settings;
  settings.storage_classes = json(R"({"nfs": "ReadWriteMany"})");
  const Value::Array nodes{node("1", "b"), node("2", "a"), node("3", "a")};
  VolumeWish wish;
  wish.kind = "default";
  const auto regions = [&](const Value::Array& of) {
    std::vector<std::string> out;
    for (const Offer& o : kube_volume_offers(of, settings, wish)) out.push_back(o.region);
    return out;
  };
  CHECK(regions(nodes) == std::vector<std::string>{"a", "b"});
  CHECK(regions({node("1", "")}) == std::vector<std::string>{"cluster"});
  wish.region = "b";
  CHECK(regions(nodes) == std::vector<std::string>{"b"});
  wish.kind = "nfs";
  CHECK(regions(nodes) == std::vector<std::string>{"b"});
  wish.region = "";
  CHECK(regions(nodes) == std::vector<std::string>{""});
}

TEST_CASE("kubernetes: what a Job and its pod say of the machine") {
  const Value job = json(R"({"status": {"active": 1}})"), running = json(R"({"status": {"phase": "Running"}})");
  CHECK(kube_machine(job, running, 0).state == MachineState::live);
  CHECK(kube_machine(Value(), running, 0).state == MachineState::terminating);
  CHECK(kube_machine(Value(), Value(), 0).state == MachineState::gone);
  CHECK(kube_machine(json(R"({"status": {"conditions": [{"type": "Failed", "status": "True"}]}})"), running, 0).state ==
        MachineState::gone);
  const Value pulls = json(R"({"status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting":
    {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"no/such:image\""}}}]}})");
  const Machine stuck = kube_machine(job, pulls, 0);
  CHECK(stuck.state == MachineState::pending);
  CHECK(stuck.details.text("problem") == "ImagePullBackOff: Back-off pulling image \"no/such:image\"");
  CHECK(stuck.details.boolean("hopeless"));
  const Value begins = json(R"({"status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting":
    {"reason": "ContainerCreating"}}}]}})");
  CHECK(kube_machine(job, begins, 0).details["problem"].is_null());
  const Value podless = json(R"({"metadata": {"name": "j", "creationTimestamp": "2026-11-22T10:00:00Z"}})");
  const std::int64_t made_us = parse_utc("2026-11-22T10:00:00Z").value();
  const Machine early = kube_machine(podless, Value(), made_us + 59'000'000);
  CHECK(early.details.text("problem").find("`kubectl describe job j` says why") != std::string::npos);
  CHECK_FALSE(early.details.boolean("hopeless"));
  CHECK(kube_machine(podless, Value(), made_us + 61'000'000).details.boolean("hopeless"));
  Value queued = podless;
  queued.set("spec", json(R"({"suspend": true})"));
  const Machine waits = kube_machine(queued, Value(), made_us + 61'000'000);
  CHECK(waits.details.text("problem").find("queue") != std::string::npos);
  CHECK_FALSE(waits.details.boolean("hopeless"));
  CHECK(kube_unschedulable(json(R"({"status": {"conditions": [{"type": "PodScheduled", "status": "False",
    "message": "0/5 nodes"}]}})")) == "0/5 nodes");
}

TEST_CASE("kubernetes: a pod that shall end though its Job stays has a notice, until its grace is over") {
  const Value job = json(R"({"status": {"active": 1}})");
  const Value evicted = json(R"({"metadata": {"name": "p", "deletionTimestamp": "2026-11-22T10:00:30Z"},
    "status": {"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True",
    "reason": "EvictionByEvictionAPI"}]}})");
  const std::int64_t ends_us = parse_utc("2026-11-22T10:00:30Z").value(), before_us = ends_us - 1'000'000;
  const Machine there = kube_machine(job, evicted, before_us);
  CHECK(there.state == MachineState::live);
  CHECK(there.notice_wall_us == ends_us);
  CHECK(there.details.text("evicted") == "EvictionByEvictionAPI");
  CHECK(kube_machine(job, evicted, ends_us).state == MachineState::terminating);
  CHECK(kube_machine(job, evicted, ends_us).notice_wall_us == 0);
  // Older clusters call the Job failed as soon as its pod shall end.
  const Value failed = json(R"({"status": {"conditions": [{"type": "Failed", "status": "True"}]}})");
  CHECK(kube_machine(failed, evicted, before_us).notice_wall_us == ends_us);
  CHECK(kube_machine(failed, evicted, ends_us).state == MachineState::gone);
  // A pod that we have released is not evicted, and neither is one that a user deletes with its Job.
  CHECK(kube_machine(Value(), evicted, before_us).state == MachineState::terminating);
  const Value deleted = json(R"({"metadata": {"deletionTimestamp": "2026-11-22T10:00:00Z"}})");
  CHECK(kube_machine(deleted, evicted, before_us).state == MachineState::terminating);
  const Value pending = json(R"({"metadata": {"deletionTimestamp": "2026-11-22T10:00:30Z"},
    "status": {"phase": "Pending"}})");
  CHECK(kube_machine(job, pending, before_us).state == MachineState::terminating);
}
