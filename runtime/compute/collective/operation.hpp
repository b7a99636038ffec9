// What the ranks of a communicator do together, as a value: each rank tells the others which one it is about to do, and
// they must agree. Ranks count from 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/fold.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::collective {

using Reduce = kernels::Fold;
// "sum", "mean" (or "avg"), "max", "min", "prod". invalid: lists them.
Result<Reduce> parse_reduce(std::string_view name);

enum class Kind : std::uint8_t { all_reduce, broadcast, all_gather, reduce_scatter, barrier, send, receive };

const char* name_of(Kind kind);  // "all_reduce", as scripts call it

struct Operation {
  Kind kind = Kind::barrier;
  DType dtype = DType::f32;
  Reduce reduce = Reduce::sum;
  int peer = 0;              // of broadcast: whose values; of send and receive: the other side
  int tensors = 1;           // that go together; then shape is empty
  kernels::Dims shape;       // of what each rank gives
  std::int64_t count = 0;    // elements that each rank gives (reduce_scatter: gets), of all tensors
  std::uint64_t shapes = 0;  // of several: a digest of their shapes
  bool operator==(const Operation&) const = default;
};

// Memory of one tensor. all_gather writes world * count elements, reduce_scatter reads as many. `in` may be `out` where
// both have the same length.
struct Piece {
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;
};

// "all_reduce sum of f32[2, 3]", "broadcast from rank 0 of 12 tensors, f32, 4096 elements"
std::string describe(const Operation& op);
// Before anything is sent. invalid: a type that cannot be folded, no such rank, oneself.
Result<> check(const Operation& op, int rank, int world);
// Whether what rank `rank` does fits to what rank `other` does.
bool fits(const Operation& mine, int rank, const Operation& theirs, int other);

}  // namespace rille::collective
