#include "runtime/workflow/provider/gpus.hpp"

#include <catch2/catch.hpp>

using namespace rille::provider;

namespace {
constexpr std::int64_t mib_bytes = 1 << 20;
}

TEST_CASE("names of GPU models, as drivers and clouds write them") {
  CHECK(gpu_model("NVIDIA A100-SXM4-80GB") == "A100 80GB");
  CHECK(gpu_model("nvidia-h100-80gb") == "H100 80GB");
  CHECK(gpu_model("Tesla T4") == "T4");
  CHECK(gpu_model("NVIDIA H100 80GB HBM3") == "H100 80GB");
  CHECK(gpu_model("NVIDIA GeForce RTX 4090") == "RTX 4090");
  CHECK(gpu_model("NVIDIA GeForce RTX 4070 Ti SUPER") == "RTX 4070 Ti Super");
  CHECK(gpu_model("NVIDIA H200") == "H200");
  CHECK(gpu_model("RTX4090") == "RTX 4090");  // SkyPilot's and dstack's
  CHECK(gpu_model("RTX6000Ada") == "RTX 6000 ADA");
  CHECK(gpu_model("RTXA4000") == "RTX A4000");
  CHECK(gpu_model("H100SXM") == "H100");
  CHECK(gpu_model("A100PCIe") == "A100");
  CHECK(gpu_model("GTX1080Ti") == "GTX 1080 Ti");
  CHECK(gpu_model("RTX 6000Ada") == "RTX 6000 ADA");  // Vast's spelling
}

TEST_CASE("a model is meant by its words, not by a part of one") {
  CHECK(gpu_matches("A100 80GB", 81920 * mib_bytes, "A100"));
  CHECK(gpu_matches("A100 80GB", 81920 * mib_bytes, "a100-80gb"));
  CHECK(gpu_matches("A100 80GB", 81920 * mib_bytes, "NVIDIA A100-SXM4-80GB"));
  CHECK_FALSE(gpu_matches("A100 80GB", 81920 * mib_bytes, "A10"));
  CHECK_FALSE(gpu_matches("A100 40GB", 40536 * mib_bytes, "A100-80GB"));
  CHECK(gpu_matches("RTX 4090", 24564 * mib_bytes, "4090"));
  CHECK_FALSE(gpu_matches("RTX 4090", 24564 * mib_bytes, "RTX 4080"));
  CHECK_FALSE(gpu_matches("L40S", 46068 * mib_bytes, "L4"));
  CHECK_FALSE(gpu_matches("RTX 4070 Ti", 12282 * mib_bytes, "RTX 4070"));
  CHECK(gpu_matches("RTX 4070 Ti", 12282 * mib_bytes, "4070 ti"));
}

TEST_CASE("a memory of any size can be asked for, and none has it") {
  CHECK_FALSE(gpu_matches("A100", 80'000'000'000, "A100 " + std::string(400, '9') + "GB"));
}

TEST_CASE("a slice of a GPU is not that GPU") {
  const std::string slice = gpu_model("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb");
  CHECK_FALSE(gpu_matches(slice, 9856 * mib_bytes, "A100"));
  CHECK_FALSE(gpu_matches(slice, 9856 * mib_bytes, "A100-80GB"));
  CHECK(gpu_matches(slice, 9856 * mib_bytes, "A100-MIG-1g.10gb"));
}

TEST_CASE("an unknown name suggests a similar one") {
  CHECK(nearest_gpu("A1000") == "A100");
  CHECK(nearest_gpu("A100x8") == "A100:8");
  CHECK(nearest_gpu("RTX4091") == "RTX 4090");
  CHECK(nearest_gpu("RTXA4000").empty());
  CHECK(nearest_gpu("h1000") == "H100");
  CHECK(nearest_gpu("A100-80GB") == "");
  CHECK(nearest_gpu("RTX 4070").empty() == false);
  CHECK(nearest_gpu("Quantum 9").empty());
}

TEST_CASE("the memory of one GPU is a word of its model") {
  CHECK(gpu_matches("H100", 81559 * mib_bytes, "H100-80GB"));
  CHECK(gpu_matches("H100", 81559 * mib_bytes, "H100 80 GB"));
  CHECK_FALSE(gpu_matches("H100", 81559 * mib_bytes, "H100-94GB"));
  CHECK(gpu_matches("H200", 143771 * mib_bytes, "H200-141GB"));
  CHECK_FALSE(gpu_matches("H100", 0, "H100-80GB"));
  CHECK_FALSE(gpu_matches("T4", 15360 * mib_bytes, "T4-x"));
}

TEST_CASE("a GPU's name is known, or it is not") {
  for (const char* name : {"H200", "rtx4090", "A100-80GB", "24GB", "NVIDIA GPU"}) {
    INFO(name);
    CHECK(is_known_gpu(name));
  }
  for (const char* name : {"foo", "A100x8", "8"}) {
    INFO(name);
    CHECK_FALSE(is_known_gpu(name));
  }
}
