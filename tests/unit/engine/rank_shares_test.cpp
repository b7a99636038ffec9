#include "runtime/workflow/engine/rank_shares.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

using namespace rille;
using namespace rille::engine;

namespace {

Value share(const std::string& training, std::int64_t rank, const std::string& directory = "out/step-00000001") {
  Value told;
  told.set("training", training).set("rank", rank).set("world", std::int64_t{8}).set("directory", directory);
  return Value().set("step", std::int64_t{1}).set("share", told);
}

}  // namespace

TEST_CASE("where the shares of ranks are") {
  SharesTold told;
  told.note("a", nullptr, share("t", 0));
  told.note("b", nullptr, share("t", 1, "there/step-00000001"));
  REQUIRE(told.find("t", 1));
  CHECK(told.find("t", 0)->folder == "out");
  CHECK(told.find("t", 1)->folder == "there");
  CHECK_FALSE(told.find("t", 2));
  CHECK_FALSE(told.find("u", 0));
  told.note("c", nullptr, share("t", 1, "moved/step-00000002"));
  CHECK(told.find("t", 1)->folder == "moved");
  CHECK(told.find("t", 1)->lease == "c");
}

TEST_CASE("shares that make no sense are ignored") {
  SharesTold told;
  for (const Value& bad :
       {Value().set("step", std::int64_t{1}), share("", 0), share("t", -1), share("t", 8), share("t", 0, "nowhere")})
    told.note("a", nullptr, bad);
  CHECK_FALSE(told.find("t", 0));
  CHECK_FALSE(told.find("", 0));
}

TEST_CASE("a machine that tells of too many trainings loses its own oldest shares alone") {
  SharesTold told;
  told.note("honest", nullptr, share("real", 1));
  told.note("hostile", nullptr, share("real", 0));
  const auto count = static_cast<int>(shares_of_lease_max);
  for (int i = 0; i < 2 * count; ++i) told.note("hostile", nullptr, share(fmt::format("made up {}", i), i % 8));
  CHECK(told.find("real", 1));
  CHECK_FALSE(told.find("real", 0));
  CHECK_FALSE(told.find("made up 0", 0));
  CHECK_FALSE(told.find(fmt::format("made up {}", count - 1), (count - 1) % 8));
  CHECK(told.find(fmt::format("made up {}", count), count % 8));
  CHECK(told.find(fmt::format("made up {}", 2 * count - 1), (2 * count - 1) % 8));
}
