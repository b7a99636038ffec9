// Checks the batch arguments of rille.data's sets: a script can call the native functions with any numbers.
#pragma once

#include <cstdint>

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/data/pace.hpp"

namespace rille::lua {

struct Batch {
  std::int64_t rows = 0;
  int rank = 0, world = 1;
  std::uint64_t first = 0;  // index of the first row; for validation
};

// `at`: stack index of the number of rows.
inline Result<std::int64_t> batch_rows(lua_State* L, int at) {
  constexpr std::int64_t rows_max = 1 << 24;
  const std::int64_t rows = check_integer(L, at, "batch");
  if (rows < 1 || rows > rows_max)
    return make_error(ErrorKind::invalid, fmt::format("batch = {}: expected 1 to {}", rows, rows_max),
                      "set data.batch to the number of samples that one batch should have");
  return rows;
}

// next(set, batch size, rank, world)
inline Result<Batch> next_wanted(lua_State* L) {
  constexpr std::int64_t world_max = 1 << 20;
  RILLE_TRY(const std::int64_t rows, batch_rows(L, 2));
  const std::int64_t rank = check_integer(L, 3, "rank"), world = check_integer(L, 4, "world");
  if (world < 1 || world > world_max || rank < 0 || rank >= world)
    return make_error(
        ErrorKind::invalid,
        fmt::format("rank {} of {}: ranks count from 0, at most {} ranks are possible", rank, world, world_max));
  return Batch{rows, static_cast<int>(rank), static_cast<int>(world), 0};
}

// validation(set, number of the first row, from 0 on, batch size)
inline Result<Batch> validation_wanted(lua_State* L) {
  RILLE_TRY(const std::int64_t rows, batch_rows(L, 3));
  const std::int64_t first = check_integer(L, 2, "first");
  if (first < 0) return make_error(ErrorKind::invalid, "data:validation: batches count from 1");
  return Batch{rows, 0, 1, static_cast<std::uint64_t>(first)};
}

// Returns a Look that ends a long loop over data when the script must end.
inline data::Look look_at_limits(lua_State* L) {
  return [L] { LuaHost::of(L).check(L); };
}

// Returns a Room that counts memory in `held` and thus as long as `held` lives.
inline data::Room keep_room(lua_State* L, std::vector<MemoryHeld>& held) {
  return [L, &held](std::int64_t bytes) -> Result<> {
    RILLE_TRY(auto one, MemoryHeld::take(LuaHost::of(L).options().memory, MemoryUse::Part::tensors, bytes));
    held.push_back(std::move(one));
    return success();
  };
}

// Counts the host memory of a batch of `rows` rows of `shape` before it is filled. Tensors count their own memory.
inline Result<MemoryHeld> memory_for(lua_State* L, std::int64_t rows, std::vector<std::int64_t> shape, DType dtype) {
  shape.insert(shape.begin(), rows);
  RILLE_TRY(const Dims dims, tensor::make_dims(shape));
  return MemoryHeld::take(LuaHost::of(L).options().memory, MemoryUse::Part::tensors,
                          dims.count() * static_cast<std::int64_t>(size_bytes(dtype)));
}

}  // namespace rille::lua
