// What hosts, batch systems and clusters print: sinfo, squeue, the scripts on an ssh host, Kubernetes objects, a
// kubeconfig. The first byte chooses. Nothing crashes, hangs or grows without bound; counts and sizes are not negative.
#include <unistd.h>

#include "runtime/core/loop/command.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/workflow/provider/kubernetes/access.hpp"
#include "runtime/workflow/provider/kubernetes/objects.hpp"
#include "runtime/workflow/provider/slurm/job.hpp"
#include "runtime/workflow/provider/ssh/answers.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

constexpr std::int64_t now_us = 1'764'000'000'000'000;

std::vector<OfferQuery> queries() {
  std::vector<OfferQuery> out;
  for (const char* text : {"{}", R"({"gpu":"cpu","vcpus":3,"memory":"1GB"})", R"({"gpu":"A100:3"})",
                           R"({"gpu":["H100:8","A100"]})", R"({"gpu":"any","spot":true})"})
    out.push_back(OfferQuery::from_value(Value::from_json(text).value()).value());
  return out;
}

void check_offers(const std::vector<Offer>& offers) {
  fuzz_check(offers.size() < 10'000, "a cluster of a few nodes has a few sizes");
  for (const Offer& o : offers) {
    fuzz_check(o.gpu_count >= 0 && o.vcpus > 0 && o.memory_bytes > 0 && o.gpu_memory_bytes >= 0, "an offer has sizes");
    fuzz_check(o.price_micros_per_hour >= -1, "a price is not negative");
    fuzz_check(Offer::from_value(o.to_value()).ok(), "an offer that is made can be read");
  }
}

void check_slurm_nodes(const std::string& text) {
  const std::vector<SlurmNode> nodes = read_slurm_nodes(text);
  for (const SlurmNode& node : nodes)
    for (const auto& [type, count] : node.gpus) fuzz_check(count > 0, "a node has GPUs or has none");
  SlurmSettings settings;
  settings.price_micros_per_gpu_hour = 1'000'000;
  for (const OfferQuery& query : queries()) check_offers(slurm_offers(nodes, settings, query));
}

void check_slurm_queue(const std::string& text) {
  for (const SlurmJob& job : read_slurm_queue(text)) {
    (void)job.ended(), (void)job.can_start(), (void)job.sent_back();
    fuzz_check(slurm_folder(job.tag).size() == 22, "a folder's name has one length");
    fuzz_check(job.submitted_s >= 0 && job.ends_s >= 0 && job.preempted_s >= 0, "an instant is not negative");
    fuzz_check(job.submitted_s < 9'000'000'000 && job.ends_s < 9'000'000'000, "an instant fits in microseconds");
  }
}

void check_slurm_error(const std::string& text) {
  CommandResult failed;
  failed.status.code = 1;
  failed.err = text;
  const Error error = slurm_error("sbatch", failed, {"sbatch", "--partition=gpu", "--gres=gpu:1"});
  fuzz_check(!error.message.empty() && !error.hint.empty(), "an error says why");
}

void check_ssh(const std::string& text, bool machines) {
  SshHost host;
  host.name = host.address = "gpu1";
  if (machines) {
    const Result<std::vector<Machine>> read = read_ssh_machines(host, text);
    if (read)
      for (const Machine& m : *read)
        fuzz_check(
            m.created_wall_us >= 0 && m.expires_wall_us >= 0 && m.notice_wall_us >= 0 && m.id.starts_with("gpu1/"),
            "an instant is one, and the machine is of this host");
    return;
  }
  const SshProbe probe = read_ssh_probe(text);
  fuzz_check(probe.cpus >= 0 && probe.live >= 0 && probe.gpu_count >= 0, "a count is not negative");
  fuzz_check(probe.memory_bytes >= 0 && probe.gpu_memory_bytes >= 0, "a size is not negative");
}

void check_kube(const std::string& text) {
  (void)read_quantity(text);
  const Result<Value> told = Value::from_json(text);
  if (!told) return;
  KubeSettings settings;
  const Value::Array nodes = (*told)["nodes"].as_array() ? *(*told)["nodes"].as_array() : Value::Array();
  const Value::Array pods = (*told)["pods"].as_array() ? *(*told)["pods"].as_array() : Value::Array();
  for (const OfferQuery& query : queries()) check_offers(kube_offers(nodes, pods, settings, query));
  const Machine machine = kube_machine((*told)["job"], pods.empty() ? Value() : pods[0], now_us);
  fuzz_check(machine.expires_wall_us >= 0, "an instant is one");
  if (!pods.empty()) (void)kube_unschedulable(pods[0]);
}

// Only JSON: for YAML the reader asks kubectl.
void check_kubeconfig(const std::string& text) {
  const Result<Value> json = Value::from_json(text);
  if (!json || !json->as_object()) return;
  static const TempDir folder;
  static const std::unique_ptr<Loop> loop = Loop::create().value();
  const std::string file = folder.file("config");
  fuzz_check(store::write_file_atomic(file, text, 0600).ok(), "a file can be written");
  const std::string cache = folder.file("cache");
  const Result<KubeAccess> access = run_blocking(*loop, find_kube_access(*loop, file, "", cache, {}));
  if (!access) return fuzz_check(!access.error().message.empty(), "a refusal says why");
  fuzz_check(!access->server.empty(), "access has a server");
  fuzz_check(access->client_certificate.empty() == access->client_key.empty(), "a certificate has its key");
  std::filesystem::remove_all(cache);
  fuzz_check(folder.entries() == 1, "only the cache is written to");
}

constexpr const char* sinfo =
    "n1 |gpu* |mixed |4/28/0/32 |64000 |8000 |gpu:a100:4(S:0-1) |gpu:a100:1(IDX:0) |\n"
    "n3 |gpu* |idle |0/32/0/32 |64000 |0 |gpu:h100:8,gpu:2 |gpu:h100:0(IDX:N/A) |\n"
    "c1 |cpu |allocated |8/0/0/8 |16000 |16000 |(null) |gpu:0 |\n";
constexpr const char* squeue =
    "7|RUNNING|0|n1|1764000000|gpu|rille-ab-main-box-0123456789abcdef|None|1764003600|N/A|\n"
    "8|PENDING|1||1764000000|gpu|rille-cd|PartitionTimeLimit|N/A|1764000900|\n";
constexpr const char* probe =
    "cpus 64\nmemory 528280616\nlive 1\ngpu 81920, NVIDIA A100-SXM4-80GB\ngpu 81920, NVIDIA A100\n";
constexpr const char* machines =
    "/home/me/i-0123456789abcdef\n{\"id\":\"gpu1/"
    "i-0123456789abcdef\",\"tag\":\"rille-x\",\"created_wall_us\":1764000000000000,"
    "\"expires_wall_us\":1764003600000000,\"terminating\":false}\n\n{\"deadline_wall_us\":1764000900000000}\n";
constexpr const char* kube = R"({"nodes":[{"metadata":{"name":"a","labels":{"topology.kubernetes.io/zone":"z",
  "nvidia.com/gpu.memory":"81920","nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB"}},"spec":{"taints":[
  {"key":"nvidia.com/gpu","effect":"NoSchedule"}]},"status":{"conditions":[{"type":"Ready","status":"True"}],
  "allocatable":{"cpu":"31500m","memory":"64Gi","nvidia.com/gpu":"4"}}},{"metadata":{"name":"b"},"status":{
  "conditions":[{"type":"Ready","status":"True"}],"allocatable":{"cpu":"8","memory":"32Gi"}}}],
  "pods":[{"metadata":{"name":"p","deletionTimestamp":"2026-11-27T02:03:04Z","annotations":{"rille/tag":"rille-x"}},
  "spec":{"nodeName":"a","containers":[{"resources":{"requests":{"cpu":"2","memory":"4Gi"},"limits":{
  "nvidia.com/gpu":"1"}}}]},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
  "message":"0/2 nodes"}],"containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff"}}}]}}],
  "job":{"metadata":{"name":"j","creationTimestamp":"2025-11-24T16:00:00Z","annotations":{"rille/tag":"rille-x",
  "rille/expires":"1764003600000000"}},"spec":{"suspend":false},"status":{"conditions":[]}}})";
constexpr const char* kubeconfig =
    R"({"current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u",
  "namespace":"n"}}],"clusters":[{"name":"k","cluster":{"server":"https://10.0.0.1:6443",
  "certificate-authority-data":"LS0tLS1CRUdJTg==","extensions":[{"name":"client.authentication.k8s.io/exec",
  "extension":{"a":1}}]}}],"users":[{"name":"u","user":{"client-certificate-data":"YQ==","client-key-data":"Yg=="}},
  {"name":"v","user":{"exec":{"command":"false","apiVersion":"client.authentication.k8s.io/v1"}}}]})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0: check_slurm_nodes(text); break;
    case 1: check_slurm_queue(text); break;
    case 2: check_slurm_error(text); break;
    case 3: check_ssh(text, false); break;
    case 4: check_ssh(text, true); break;
    case 5: check_kube(text); break;
    default: check_kubeconfig(text);
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> out;
  for (const char* text : {sinfo, squeue, "sbatch: error: Batch job submission failed: Invalid partition name\n", probe,
                           machines, kube, kubeconfig})
    out.push_back(std::string(1, static_cast<char>(out.size())) + text);
  return out;
}

std::vector<std::string> fuzz_words() {
  return {"|",
          "\n",
          "gpu:",
          "gpu:2147483647",
          "gpu:a100:1073741825",
          "(S:0-1)",
          "(",
          "[",
          "/0/0/",
          "idle",
          "reserved",
          "RUNNING",
          "N/A",
          "cpus ",
          "memory ",
          "gpu ",
          "Ti",
          "m\"",
          "1e18Ti",
          "\"nvidia.com/gpu\":\"2147483648\"",
          "\"nvidia.com/gpu\":\"1e308\"",
          "\"memory\":\"1e300Ti\"",
          "\"cpu\":\"-1\"",
          "0001-01-01T00:00:00Z",
          "9999-12-31T23:59:59Z"};
}
