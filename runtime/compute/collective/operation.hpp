// A collective operation as a value: before the operation starts, each rank sends this value to the other ranks, and
// all values must match. Ranks count from 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/fold.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::collective {

using Reduce = kernels::Fold;
// Parses "sum", "mean" (or "avg"), "max", "min" or "prod". Error invalid lists these names.
Result<Reduce> parse_reduce(std::string_view name);

enum class Kind : std::uint8_t { all_reduce, broadcast, all_gather, reduce_scatter, barrier, send, receive, sendrecv };

const char* name_of(Kind kind);  // the operation's name in scripts: "all_reduce"

// The data that a sendrecv receives.
struct Incoming {
  int from = 0;
  DType dtype = DType::f32;
  kernels::Dims shape;
  std::int64_t count = 0;
  bool operator==(const Incoming&) const = default;
};

struct Operation {
  Kind kind = Kind::barrier;
  DType dtype = DType::f32;
  Reduce reduce = Reduce::sum;
  // broadcast: the rank with the values; send and receive: the other rank; sendrecv: the rank to which it sends
  int peer = 0;
  int tensors = 1;      // number of tensors in the message; if more than 1, `shape` is empty
  kernels::Dims shape;  // shape of each rank's input
  // elements of all tensors of each rank's input together; for reduce_scatter, of each rank's output
  std::int64_t count = 0;
  std::uint64_t shapes = 0;  // for several tensors: a digest of all their shapes
  Incoming incoming;         // for a sendrecv; the members above describe the data that it sends
  // For a send or receive that is a half of a sendrecv: how many of its halves involve the same other rank, 1 or 2;
  // else 0.
  int halves = 0;
  bool operator==(const Operation&) const = default;
};

// The memory of one tensor. all_gather writes world * count elements to `out`, reduce_scatter reads world * count
// from `in`. `in` may equal `out` if input and output have equal length.
struct Piece {
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;
};

// Describes an operation for errors: "all_reduce sum of f32[2, 3]", "broadcast from rank 0 of 12 tensors, f32, 4096
// elements".
std::string describe(const Operation& op);
// Checks the operation before anything is sent. invalid: a dtype that cannot be reduced; `peer` or `incoming.from` is
// not a rank, or is this rank (allowed only if both are, in a sendrecv).
Result<> check(const Operation& op, int rank, int world);
// Whether the operation is between this rank and one or two others: send, receive or sendrecv.
bool is_pair(Kind kind);
// The two messages of a sendrecv as the other ranks see them: a send to `peer`, and a receive.
Operation sending_half(const Operation& op);
Operation receiving_half(const Operation& op);
// Whether a sendrecv only copies within this rank.
inline bool to_itself(const Operation& op, int rank) { return op.kind == Kind::sendrecv && op.peer == rank; }
// Whether rank `rank`'s operation `mine` matches rank `other`'s operation `theirs`. For the halves of a sendrecv, not
// for a whole one.
bool fits(const Operation& mine, int rank, const Operation& theirs, int other);

}  // namespace rille::collective
