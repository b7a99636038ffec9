#include "runtime/workflow/engine/gpu_check.hpp"

#include <catch2/catch.hpp>

using namespace rille;
using namespace rille::engine;

namespace {

lease::Lease rented(const char* provider, int gpus) {
  lease::Lease l;
  l.id = "l-1";
  l.name = "box";
  l.provider = provider;
  l.machine_id = "i-1";
  l.request.offer.provider = provider;
  l.request.offer.id = "us-east-1/p4d.24xlarge";
  l.request.offer.gpu = "A100";
  l.request.offer.gpu_count = gpus;
  return l;
}

}  // namespace

TEST_CASE("a machine that shows fewer GPUs than its offer has is named, with what to do") {
  const std::optional<Error> none = gpus_missing(rented("aws", 8), {0, true});
  REQUIRE(none);
  CHECK(none->kind == ErrorKind::device);
  CHECK(none->code == "gpus_missing");
  CHECK(none->message ==
        "the machine of 'box' (i-1) was rented as us-east-1/p4d.24xlarge of aws with 8 A100 but shows none");
  for (const char* way : {"\"image\" in the settings of aws", "setup = true", "gpu_check = false"})
    CHECK_THAT(none->hint, Catch::Contains(way));
  const std::optional<Error> fewer = gpus_missing(rented("aws", 8), {7, true});
  REQUIRE(fewer);
  CHECK_THAT(fewer->message, Catch::EndsWith("with 8 A100 but shows 7"));
  CHECK_FALSE(gpus_missing(rented("aws", 8), {8, true}));
  CHECK_FALSE(gpus_missing(rented("slurm", 2), {8, true}));  // those of the node
  CHECK_FALSE(gpus_missing(rented("local", 0), {0, true}));
}

TEST_CASE("one device file may stand for several GPUs") {
  CHECK_FALSE(gpus_missing(rented("azure", 8), {1, false}));      // AMD's driver
  CHECK_FALSE(gpus_missing(rented("kubernetes", 4), {1, true}));  // slices of a card
  CHECK(gpus_missing(rented("kubernetes", 4), {0, true}));
}
