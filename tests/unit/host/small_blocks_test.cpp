#include "bindings/host/small_blocks.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

using rille::host::SmallBlocks;

TEST_CASE("small blocks do not overlap, and one that was given back is used again for its size") {
  SmallBlocks blocks;
  std::vector<unsigned char*> taken;
  for (std::size_t size = 1; size <= 512; ++size) {
    taken.push_back(static_cast<unsigned char*>(blocks.take(size)));
    REQUIRE(blocks.holds(taken.back()));
    std::memset(taken.back(), static_cast<int>(size % 251), size);
  }
  for (std::size_t size = 1; size <= 512; ++size)
    for (std::size_t i = 0; i < size; ++i) REQUIRE(taken[size - 1][i] == size % 251);
  blocks.give(taken[99], 100);
  CHECK(blocks.take(400) != taken[99]);
  CHECK(SmallBlocks::same_size(100, 97));
  CHECK(blocks.take(97) == taken[99]);
}

TEST_CASE("large blocks, and all once the piece is used up, come from elsewhere") {
  SmallBlocks blocks;
  int other = 0;
  CHECK_FALSE(blocks.holds(&other));
  CHECK(blocks.take(513) == nullptr);
  void* last = nullptr;
  std::size_t count = 0;
  for (void* block = blocks.take(512); block; block = blocks.take(512)) last = block, ++count;
  CHECK(count == SmallBlocks::piece_bytes / 512);
  CHECK_FALSE(blocks.holds(&other));
  blocks.give(last, 512);
  CHECK(blocks.take(16) == nullptr);
  CHECK(blocks.take(500) == last);
}
