#include "runtime/workflow/provider/slurm/slurm.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "runtime/core/base/id.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "runtime/workflow/provider/slurm/cluster.hpp"
#include "runtime/workflow/provider/slurm/job.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

// As sinfo and squeue of Slurm 22.05 say it, with less padding.
constexpr const char* sinfo =
    "n1 |gpu* |mixed |4/28/0/32 |64000 |8000 |gpu:a100:4(S:0-1) |gpu:a100:1(IDX:0) |\n"
    "n2 |gpu* |idle |0/32/0/32 |64000 |0 |gpu:a100:4(S:0-1) |gpu:a100:0(IDX:N/A) |\n"
    "n2 |short |idle |0/32/0/32 |64000 |0 |gpu:a100:4(S:0-1) |gpu:a100:0(IDX:N/A) |\n"
    "n3 |gpu* |down* |0/0/32/32 |64000 |0 |gpu:h100:8 |gpu:h100:0 |\n"
    "n4 |gpu* |idle* |0/32/0/32 |64000 |0 |gpu:h100:8 |gpu:h100:0 |\n"
    "c1 |cpu |allocated |8/0/0/8 |16000 |16000 |(null) |gpu:0 |\n";

std::vector<Offer> offers(const SlurmSettings& settings, const Value& query) {
  return slurm_offers(read_slurm_nodes(sinfo), settings, OfferQuery::from_value(query).value());
}
Value gpu(const char* words) { return Value().set("gpu", words); }

std::string ids_of(const std::vector<Offer>& all) {
  std::string out;
  for (const Offer& o : all) (out += out.empty() ? "" : " ") += o.id;
  return out;
}

CommandResult said(const char* text) {
  CommandResult out;
  out.status.code = 1;
  out.err = text;
  return out;
}

}  // namespace

TEST_CASE("slurm: GRES of several types, with sockets and indices") {
  using Gpus = std::map<std::string, int>;
  CHECK(read_slurm_gres("gpu:h100:4(S:0-1),gpu:a100:2") == Gpus{{"a100", 2}, {"h100", 4}});
  CHECK(read_slurm_gres("gpu:8,shard:32,nic:mlx:2") == Gpus{{"", 8}});
  CHECK(read_slurm_gres("gpu:h100:2(IDX:0,3)") == Gpus{{"h100", 2}});
  CHECK(read_slurm_gres("(null)").empty());
}

TEST_CASE("slurm: numbers that no node has") {
  CHECK(read_slurm_gres("gpu:a:9223372036854775807,gpu:a:2147483647,gpu:b:-4") ==
        std::map<std::string, int>{{"a", 65536}});
  const std::vector<SlurmNode> nodes = read_slurm_nodes(
      "n1|gpu|idle|0/99999999999/0/99999999999|9223372036854775807|-1|gpu:a:2147483647|gpu:a:0|\n"
      "n2|gpu|idle|0/-1/0/-1|-5|0|(null)|(null)|\n");
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[1].cpus == 0);
  const std::vector<Offer> all = slurm_offers(nodes, {}, {});
  REQUIRE_FALSE(all.empty());  // it ends, though doubling a count of GPUs until 2147483647 does not
  for (const Offer& o : all) CHECK((o.vcpus > 0 && o.memory_bytes > 0 && o.gpu_count >= 0));
  CHECK(read_slurm_queue("7|RUNNING|0|n1|9223372036854775807|gpu|rille-a|None|-1|N/A|\n").at(0).ends_s == 0);
}

TEST_CASE("slurm: what is offered is what a node can give, what is free first") {
  SlurmSettings settings;
  settings.price_micros_per_gpu_hour = 1'000'000;
  settings.gpus["a100"] = "NVIDIA A100-SXM4-80GB";
  CHECK(ids_of(offers(settings, gpu("A100-80GB"))) ==
        "gpu/a100:1 short/a100:1 gpu/a100:2 short/a100:2 gpu/a100:4 short/a100:4");
  const std::vector<Offer> three = offers(settings, gpu("A100:3"));
  REQUIRE(ids_of(three) == "gpu/a100:3 short/a100:3");
  CHECK(three[0].vcpus == 24);
  CHECK(three[0].memory_bytes == 48000LL << 20);
  CHECK(three[0].price_micros_per_hour == 3'000'000);
  CHECK(three[0].region == "gpu");
  CHECK(offers(settings, gpu("A100:5")).empty());
  CHECK(offers(settings, gpu("H100")).empty());  // they do not answer
  CHECK(ids_of(offers(settings, gpu("cpu"))) == "cpu");
  settings.wait_ms = 0;
  CHECK(offers(settings, gpu("cpu")).empty());
  settings.partitions = {"short"};
  CHECK(ids_of(offers(settings, gpu("A100:1"))) == "short/a100:1");
  const std::vector<Offer> wide = offers(settings, gpu("A100:1").set("vcpus", 30));
  REQUIRE(wide.size() == 1);
  CHECK(wide[0].vcpus == 30);
}

TEST_CASE("slurm: a job's states, and those that cannot start") {
  const std::vector<SlurmJob> jobs = read_slurm_queue(
      "12 |RUNNING |0 |n1 |1795310496 |gpu |rille-a-b-g1-x1 |None |1795310526 |1795310500 |\n"
      "13 |PENDING |1 | |1795310496 |gpu |rille-a-c-g1-x1 |BeginTime |N/A |N/A |\n"
      "14 |PENDING |0 | |1795310496 |short |rille-a-d-g1-x1 |PartitionTimeLimit |N/A |N/A |\n"
      "15 |NODE_FAIL |0 |n2 |1795310496 |gpu |rille-a-e-g1-x1 |None |1795310500 |N/A |\n"
      "slurm_load_jobs error\n");
  REQUIRE(jobs.size() == 4);
  CHECK((jobs[0].id == "12" && jobs[0].tag == "rille-a-b-g1-x1" && jobs[0].nodes == "n1" && !jobs[0].ended()));
  CHECK(jobs[0].submitted_s == 1795310496);
  CHECK((jobs[0].ends_s == 1795310526 && jobs[0].preempted_s == 1795310500));
  CHECK((jobs[1].sent_back() && jobs[1].can_start()));
  CHECK(jobs[3].preempted_s == 0);
  CHECK_FALSE(jobs[2].can_start());
  CHECK(jobs[3].ended());
}

TEST_CASE("slurm: a reserved node is free only for a rent that names the reservation") {
  const std::vector<SlurmNode> nodes = read_slurm_nodes(
      "n1 |gpu |reserved |0/32/0/32 |64000 |0 |gpu:a100:4 |gpu:a100:0 |\n"
      "n2 |big |idle |0/32/0/32 |64000 |0 |gpu:a100:4 |gpu:a100:0 |\n");
  SlurmSettings settings;
  const OfferQuery query = OfferQuery::from_value(gpu("A100:4")).value();
  CHECK(ids_of(slurm_offers(nodes, settings, query)) == "big/a100:4 gpu/a100:4");
  settings.wait_ms = 0;
  CHECK(ids_of(slurm_offers(nodes, settings, query)) == "big/a100:4");
}

TEST_CASE("slurm: what is submitted") {
  CreateRequest request;
  request.tag = "rille-0123-x-g1-x1900000000";
  request.offer.id = "gpu/h100:2";
  request.offer.vcpus = 8;
  request.offer.memory_bytes = 3000LL << 20;
  request.expires_wall_us = 1'000'000'000 + 90'000'000;
  SlurmSettings settings;
  settings.qos = "high";
  settings.options = {"--nice"};
  const std::vector<std::string> words = slurm_submit_words(request, settings, 1'000'000'000);
  const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  CHECK(words[0] == "sbatch");
  CHECK(has("--partition=gpu"));
  CHECK(has("--gres=gpu:h100:2"));
  CHECK(has("--cpus-per-task=8"));
  CHECK(has("--mem=3000M"));
  CHECK(has("--no-requeue"));
  CHECK(has("--time=2"));
  CHECK(has("--deadline=now+12minutes"));  // and the queue, and a margin
  CHECK(has("--qos=high"));
  CHECK(has("--comment=rille-0123-x-g1-x1900000000"));
  CHECK(words.back() == "--nice");
  CHECK_FALSE(has("--reservation=team"));
  request.extra.set("qos", "urgent").set("reservation", "team");
  const std::vector<std::string> said_by_rent = slurm_submit_words(request, settings, 1'000'000'000);
  const std::vector<std::string> tail(said_by_rent.end() - 3, said_by_rent.end());
  CHECK(tail == std::vector<std::string>{"--qos=urgent", "--reservation=team", "--nice"});
  CHECK(slurm_ask("cpu").gres.empty());
  CHECK(slurm_script(request, settings, 1'000'000'000).starts_with("#!/bin/sh\n"));
}

TEST_CASE("slurm: what refusals mean; what is not known may have had an effect") {
  const auto kind = [](const char* text) { return slurm_error("sbatch", said(text)).kind; };
  CHECK(kind("sbatch: error: Batch job submission failed: Requested node configuration is not available\n") ==
        ErrorKind::capacity);
  CHECK(kind("sbatch: error: Batch job submission failed: Invalid partition name specified\n") == ErrorKind::config);
  CHECK(kind("sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, "
             "user's size and/or time limits)\n") == ErrorKind::quota);
  CHECK(kind("sbatch: error: Batch job submission failed: Requested reservation is invalid\n") == ErrorKind::config);
  CHECK(kind("sbatch: error: Batch job submission failed: Access denied to requested reservation\n") ==
        ErrorKind::auth);
  CHECK(kind("sbatch: error: Batch job submission failed: Requested reservation not usable now\n") ==
        ErrorKind::capacity);
  CHECK(kind("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n") ==
        ErrorKind::network);
  const Error e = slurm_error("sbatch", said("sbatch: error: Unable to contact slurm controller (connect failure)\n"));
  CHECK(e.retryable);
  CHECK(e.message == "sbatch fails: Unable to contact slurm controller (connect failure)");
  CHECK(e.hint.find("scontrol ping") != std::string::npos);
}

// A login node in a file: it takes each job, and then refuses to say what became of it.
TEST_CASE("slurm: a job that was taken is open, whatever is said of it then") {
  const std::string root = std::filesystem::temp_directory_path() / ("rille-slurm-unit-" + random_hex(4));
  std::filesystem::create_directories(root);
  const auto written = [&root](const char* name, const char* text) {
    std::ofstream(root + "/" + name) << text;
    return Value(Value::Array{"sh", root + "/" + name});
  };
  const Value looks = written("looks", R"sh(case "$*" in
  *sbatch*) cat >/dev/null; echo 7 ;;
  *) echo "squeue: error: Access/permission denied" >&2; exit 1 ;;
esac)sh");
  const Value refuses = written("refuses", R"sh(case "$*" in
  *) cat >/dev/null; echo "sbatch: error: Batch job submission failed: Access/permission denied" >&2; exit 1 ;;
esac)sh");
  const std::unique_ptr<Loop> loop = Loop::create().value();
  const auto create = [&](const Value& via) {
    Setup setup{*loop, root, root, Value().set("via", via)};
    const std::unique_ptr<Provider> provider = make_slurm_provider(std::move(setup)).value();
    CreateRequest request;
    request.tag = "rille-0123456789ab-open-g1-x1900000000";
    request.offer.id = "gpu";
    return run_blocking(*loop, provider->create(std::move(request), {}));
  };
  const auto open = create(looks);
  REQUIRE_FALSE(open);
  INFO(open.error().message);
  CHECK(open.error().kind == ErrorKind::network);
  CHECK_FALSE(is_definitive(open.error()));
  REQUIRE(open.error().cause);
  CHECK(open.error().cause->kind == ErrorKind::auth);
  const auto refused = create(refuses);
  REQUIRE_FALSE(refused);
  INFO(refused.error().message);
  CHECK(is_definitive(refused.error()));
  std::filesystem::remove_all(root);
}

TEST_CASE("slurm: a refusal names what was asked for") {
  const std::vector<std::string> words{"sbatch", "--partition=gpu", "--mem=1M", "--account=proj9", "--partition=big"};
  const auto message = [&](const char* text) { return slurm_error("sbatch", said(text), words).message; };
  CHECK(message("sbatch: error: Batch job submission failed: Invalid account or account/partition combination "
                "specified\n") ==
        "sbatch refuses: Batch job submission failed: Invalid account or account/partition "
        "combination specified (--account=proj9 --partition=gpu --partition=big)");
  CHECK(message("sbatch: unrecognized option '--x'\nTry \"sbatch --help\" for more information\n") ==
        "sbatch refuses: sbatch: unrecognized option '--x'");
  CHECK(message("sbatch: error: Slurm temporarily unable to accept job\n").find("--") == std::string::npos);
}

TEST_CASE("slurm: a partition of the settings that there is not, with the nearest one") {
  SlurmSettings settings;
  const std::vector<SlurmNode> nodes = read_slurm_nodes(sinfo);
  CHECK(settings.partitions_in(nodes));
  settings.partitions = {"short", "cpu"};
  CHECK(settings.partitions_in(nodes));
  settings.partitions = {"cpu", "shrot"};
  const Result<> near = settings.partitions_in(nodes);
  REQUIRE_FALSE(near);
  CHECK(near.error().kind == ErrorKind::config);
  CHECK(near.error().message == "slurm: there is no partition 'shrot'");
  CHECK(near.error().hint == "did you mean 'short'?");
  settings.partitions = {"nope"};
  const Result<> far = settings.partitions_in(nodes);
  REQUIRE_FALSE(far);
  CHECK(far.error().hint.find("cpu, gpu, short") != std::string::npos);
}

TEST_CASE("slurm: settings") {
  const auto error = [](const char* json) {
    const auto read = SlurmSettings::read(Value::from_json(json).value());
    return read ? "" : read.error().message;
  };
  CHECK(error(R"({"price": 1, "wait": "10m", "gpus": {"a": "A100"}, "via": ["ssh", "x"]})").empty());
  CHECK(error(R"({"wait": "soon"})").find("wait = 'soon'") != std::string::npos);
  CHECK(error(R"({"price": "much"})").find("price") != std::string::npos);
  CHECK(error(R"({"directory": "x"})").find("not absolute") != std::string::npos);
}
