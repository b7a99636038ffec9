#include "runtime/workflow/provider/gpu_facts.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "runtime/workflow/provider/gpus.hpp"

using namespace rille::provider;

namespace {
constexpr std::int64_t mib = 1 << 20;

std::string found(std::string_view model, std::int64_t memory_bytes = 0) {
  const GpuFacts* facts = gpu_facts(model, memory_bytes);
  return facts ? gpu_name(*facts) : "none";
}
}  // namespace

TEST_CASE("each row of the table is found again by its own name") {
  std::set<std::string> names;
  for (const GpuFacts& row : gpu_facts()) {
    INFO(gpu_name(row));
    CHECK(names.insert(gpu_name(row)).second);
    CHECK(gpu_facts(gpu_name(row)) == &row);
    CHECK(gpu_model(gpu_name(row)) == row.model);
    CHECK(gpu_facts(row.model, static_cast<std::int64_t>(row.memory_bytes)) != nullptr);
  }
}

TEST_CASE("the rates of the table hold together") {
  for (const GpuFacts& row : gpu_facts()) {
    INFO(gpu_name(row));
    CHECK(row.fp32 > 0);
    CHECK((row.tf32 == 0 || row.tf32 >= row.fp32));
    CHECK((row.bf16 == 0 || row.bf16 == row.fp16));
    CHECK((row.bf16 == 0) == (row.capability < 80));
    CHECK((row.fp8 == 0) == (row.capability < 89));
    CHECK(row.memory_bytes >= 8e9);
    CHECK(row.bytes_per_s >= 100e9);
    CHECK((row.power_w > 0 && row.year >= 2016));
    CHECK_FALSE(row.source.empty());
  }
}

TEST_CASE("a GPU is found in whatever way it is written") {
  CHECK(found("NVIDIA A100-SXM4-80GB") == "A100 80GB SXM");
  CHECK(found("A100", 40536 * mib) == "A100 40GB SXM");
  CHECK(found("A100") == "A100 80GB SXM");
  CHECK(found("NVIDIA A100-PCIE-40GB", 40536 * mib) == "A100 40GB PCIe");
  CHECK(found("H100", 81559 * mib) == "H100 80GB SXM");
  CHECK(found("NVIDIA H100 PCIe", 81559 * mib) == "H100 80GB PCIe");
  CHECK(found("H100", 95830 * mib) == "H100 94GB NVL");
  CHECK(found("H200", 143771 * mib) == "H200");
  CHECK(found("B200", 183359 * mib) == "B200");
  CHECK(found("Tesla V100-SXM2-32GB") == "V100 32GB SXM");
  CHECK(found("T4", 15360 * mib) == "T4");
  CHECK(found("4090") == "RTX 4090");
  CHECK(found("A6000", 49140 * mib) == "RTX A6000");
  CHECK(found("Quadro RTX 6000") == "RTX 6000");
  CHECK(found("NVIDIA RTX 6000 Ada Generation") == "RTX 6000 ADA");
  CHECK(found("NVIDIA RTX PRO 6000 Blackwell Server Edition") == "RTX PRO 6000");
}

TEST_CASE("a Ti or a Super is a GPU of its own") {
  CHECK(found("NVIDIA GeForce RTX 3080", 10240 * mib) == "RTX 3080");
  CHECK(found("NVIDIA GeForce RTX 3080 Ti", 12288 * mib) == "RTX 3080 Ti");
  CHECK(found("RTX 3090") == "RTX 3090");
  CHECK(found("3090 Ti", 24564 * mib) == "RTX 3090 Ti");
  CHECK(found("RTX 4080", 16376 * mib) == "RTX 4080");
  CHECK(found("RTX 4080S", 16376 * mib) == "RTX 4080 Super");
  CHECK(found("NVIDIA GeForce RTX 4080 SUPER") == "RTX 4080 Super");
  CHECK(found("RTX 5070 Ti") == "RTX 5070 Ti");
  CHECK(found("RTX 5070") == "none");
  CHECK(found("5080", 16303 * mib) == "RTX 5080");
  CHECK(found("RTX 2080 Ti", 11264 * mib) == "RTX 2080 Ti");
  CHECK(found("NVIDIA A100X", 81920 * mib) == "A100X");
  CHECK(found("A100", 81920 * mib) == "A100 80GB SXM");
}

TEST_CASE("missing rates are derived from other cards with the same chip, in proportion to fp32") {
  for (const auto& [model, of] : {std::pair("RTX 3080", "RTX 3090"),
                                  {"RTX 3080 Ti", "RTX 3090"},
                                  {"RTX 3090 Ti", "RTX 3090"},
                                  {"RTX 4080", "RTX 4090"},
                                  {"RTX 4080 Super", "RTX 4090"},
                                  {"RTX 5080", "RTX 5090"},
                                  {"RTX 5070 Ti", "RTX 5090"},
                                  {"A100X", "A100"}}) {
    INFO(model);
    const GpuFacts &facts = *gpu_facts(model), &known = *gpu_facts(of);
    CHECK_FALSE(facts.confirmed);
    CHECK(facts.capability == known.capability);
    for (const char* rate : {"tf32", "fp16", "bf16", "fp8", "int8"})
      CHECK(rate_of(facts, rate) / facts.fp32 == Approx(rate_of(known, rate) / known.fp32).epsilon(0.01));
  }
}

TEST_CASE("a GPU that is not in the table has no facts, and a slice does not have those of the whole GPU") {
  CHECK(found("RTX 3070 Ti") == "none");
  CHECK(found("RTX 4090 Super") == "none");
  CHECK(found("RTX 3080", 12288 * mib) == "none");  // another card than that of 10 GB, and no Ti
  CHECK(found("NVIDIA GeForce RTX 4090 Laptop GPU") == "none");
  CHECK(found("A10", 4'000'000'000) == "none");
  CHECK(found("A100 MIG 1g.10gb", 9728 * mib) == "none");
  CHECK(found("AMD MI300X") == "none");
  CHECK(found("RTX") == "none");
  CHECK(found("") == "none");
}

TEST_CASE("rates by the name of a precision") {
  const GpuFacts& h100 = *gpu_facts("H100");
  CHECK(rate_of(h100, "bf16") == 989.5e12);
  CHECK(rate_of(h100, "fp8") == 1979e12);
  CHECK(rate_of(*gpu_facts("T4"), "bf16") == 0);
  CHECK(rate_of(h100, "fp64") == 0);
}
