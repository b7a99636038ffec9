#include "runtime/compute/collective/operation.hpp"

#include <fmt/format.h>

namespace rille::collective {

namespace {

constexpr const char* reduces[] = {"sum", "mean", "max", "min", "prod"};
constexpr const char* kinds[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter", "barrier", "send", "recv"};

bool folds(const Operation& op) { return op.kind == Kind::all_reduce || op.kind == Kind::reduce_scatter; }

std::string operand(const Operation& op) {
  if (op.tensors != 1)
    return fmt::format("{} tensors, {}, {} elements", op.tensors, rille::name_of(op.dtype), op.count);
  std::string sizes;
  for (int i = 0; i < op.shape.n; ++i) sizes += fmt::format("{}{}", i ? ", " : "", op.shape[i]);
  return fmt::format("{}[{}]", rille::name_of(op.dtype), sizes);
}

}  // namespace

const char* name_of(Kind kind) { return kinds[int(kind)]; }

Result<Reduce> parse_reduce(std::string_view name) {
  for (std::size_t i = 0; i < std::size(reduces); ++i)
    if (name == reduces[i]) return Reduce(i);
  if (name == "avg") return Reduce::mean;
  return make_error(ErrorKind::invalid, fmt::format("'{}' is not the name of a reduction", name),
                    "the reductions are sum, mean, max, min and prod");
}

std::string describe(const Operation& op) {
  const char* const kind = kinds[int(op.kind)];
  switch (op.kind) {
    case Kind::barrier: return kind;
    case Kind::all_reduce:
    case Kind::reduce_scatter: return fmt::format("{} {} of {}", kind, reduces[int(op.reduce)], operand(op));
    case Kind::all_gather: return fmt::format("{} of {}", kind, operand(op));
    case Kind::broadcast:
    case Kind::receive: return fmt::format("{} from rank {} of {}", kind, op.peer, operand(op));
    case Kind::send: return fmt::format("{} to rank {} of {}", kind, op.peer, operand(op));
  }
  return "?";
}

Result<> check(const Operation& op, int rank, int world) {
  const bool to_one = op.kind == Kind::send || op.kind == Kind::receive;
  if ((to_one || op.kind == Kind::broadcast) && (op.peer < 0 || op.peer >= world)) {
    return make_error(ErrorKind::invalid, fmt::format("{}: there is no such rank", describe(op)),
                      fmt::format("ranks are 0 to {}", world - 1));
  }
  if (to_one && op.peer == rank) {
    return make_error(ErrorKind::invalid, fmt::format("{}: a rank cannot exchange data with itself", describe(op)));
  }
  if (folds(op) && !kernels::folds(op.dtype, op.reduce)) {
    return make_error(
        ErrorKind::invalid, fmt::format("{}: {} cannot be reduced this way", describe(op), rille::name_of(op.dtype)),
        is_integer(op.dtype) || op.dtype == DType::boolean
            ? "f16, bf16, f32, f64, i32 and i64 can be reduced, i32 and i64 without mean: cast the tensor first"
            : "");
  }
  return success();
}

bool fits(const Operation& mine, int rank, const Operation& theirs, int other) {
  Operation answer = theirs;
  if (mine.kind == Kind::send || mine.kind == Kind::receive) {
    const Kind wanted = mine.kind == Kind::send ? Kind::receive : Kind::send;
    if (theirs.kind != wanted || theirs.peer != rank || mine.peer != other) return false;
    answer.kind = mine.kind;
    answer.peer = mine.peer;
  }
  return answer == mine;
}

}  // namespace rille::collective
