// The memory and disk that a run may use.
#include "runtime/core/base/use.hpp"

#include <catch2/catch.hpp>

namespace rille {

using Part = MemoryUse::Part;

TEST_CASE("memory: the parts count together, and the error says what each used", "[unit][base]") {
  MemoryUse use(100'000'000);
  REQUIRE(use.take(Part::tensors, 90'000'000));
  REQUIRE(use.take_lua(5'000'000, 0));
  CHECK(use.room_bytes() == 5'000'000);
  CHECK_FALSE(use.take(Part::tensors, 6'000'000));
  const Error e = use.error();
  CHECK(e.kind == ErrorKind::memory);
  CHECK(e.code == "memory_bytes");
  CHECK(e.message ==
        "the run's memory limit of 100.0 MB is reached: Lua 5.0 MB, tensors 90.0 MB; 6.0 MB more for tensors");
  CHECK(use.total_bytes() == 95'000'000);  // a refusal takes nothing
  CHECK_FALSE(use.take_lua(6'000'000, 0));
  CHECK(use.error().message.find("more for Lua") != std::string::npos);
  CHECK(use.take_lua(6'000'000, 1 << 20));  // a reserve is beyond the limit
  use.give(Part::tensors, 90'000'000);
  CHECK(use.take(Part::results, 80'000'000));
}

TEST_CASE("memory: what is held is given back", "[unit][base]") {
  const auto use = std::make_shared<MemoryUse>(100);
  {
    auto held = MemoryHeld::take(use, Part::results, 60);
    REQUIRE(held);
    CHECK_FALSE(MemoryHeld::take(use, Part::results, 60));
    const MemoryHeld moved = std::move(*held);
    CHECK(use->total_bytes() == 60);
  }
  CHECK(use->total_bytes() == 0);
  CHECK(MemoryHeld::take(nullptr, Part::results, 1 << 20));
  MemoryUse unlimited(0);
  CHECK(unlimited.take(Part::tensors, std::int64_t(1) << 50));
}

TEST_CASE("disk: the error names the limit, and a refusal counts nothing", "[unit][base]") {
  DiskUse use(1000);
  CHECK(use.take(600));
  const auto refused = use.take(600);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::quota);
  CHECK(refused.error().code == "disk_bytes");
  CHECK(refused.error().message.find("disk_bytes") != std::string::npos);
  CHECK(use.take(400));
  CHECK(DiskUse(0).take(std::int64_t(1) << 50));
  CHECK_FALSE(use.written(600));
  CHECK_FALSE(use.written(0));
  CHECK_FALSE(use.take(1));
  CHECK(DiskUse(0).written(std::int64_t(1) << 50));
  CHECK(use.add_beyond(600) == 600);
  CHECK(use.add_beyond(600) == 1200);
}

TEST_CASE("disk: a journal in memory is counted as memory, files are not", "[unit][base]") {
  const auto memory = std::make_shared<MemoryUse>(1000);
  DiskUse use(0, memory);
  CHECK(use.take(5000));
  CHECK(use.take_row(600));
  const auto refused = use.take_row(600);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == "memory_bytes");
}

}  // namespace rille
