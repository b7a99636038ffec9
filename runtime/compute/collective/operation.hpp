// A collective operation as a value: each rank sends it to the others before it starts, and they must match. Ranks
// count from 0.
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

const char* name_of(Kind kind);  // "all_reduce", the name in scripts

struct Operation {
  Kind kind = Kind::barrier;
  DType dtype = DType::f32;
  Reduce reduce = Reduce::sum;
  int peer = 0;              // broadcast: the rank with the values; send and receive: the other rank
  int tensors = 1;           // in one message; with several, shape is empty
  kernels::Dims shape;       // of each rank's input
  std::int64_t count = 0;    // elements of each rank's input (reduce_scatter: of its output), over all tensors
  std::uint64_t shapes = 0;  // of several tensors: a digest of their shapes
  bool operator==(const Operation&) const = default;
};

// The memory of one tensor. all_gather writes world * count elements, reduce_scatter reads as many. `in` may equal
// `out` if both have the same length.
struct Piece {
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;
};

// "all_reduce sum of f32[2, 3]", "broadcast from rank 0 of 12 tensors, f32, 4096 elements"
std::string describe(const Operation& op);
// Checked before anything is sent. invalid: a type that cannot be reduced, no such rank, this rank itself.
Result<> check(const Operation& op, int rank, int world);
// Whether the operation of rank `rank` matches that of rank `other`.
bool fits(const Operation& mine, int rank, const Operation& theirs, int other);

}  // namespace rille::collective
