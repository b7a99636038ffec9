#include "runtime/compute/collective/operation.hpp"

#include <fmt/format.h>

namespace rille::collective {

namespace {

constexpr const char* reduces[] = {"sum", "mean", "max", "min", "prod"};
constexpr const char* kinds[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter",
                                 "barrier",    "send",      "recv",       "sendrecv"};

bool folds(const Operation& op) { return op.kind == Kind::all_reduce || op.kind == Kind::reduce_scatter; }

std::string operand(DType dtype, const kernels::Dims& shape) {
  std::string sizes;
  for (int i = 0; i < shape.n; ++i) sizes += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return fmt::format("{}[{}]", rille::name_of(dtype), sizes);
}

std::string operand(const Operation& op) {
  if (op.tensors == 1) return operand(op.dtype, op.shape);
  return fmt::format("{} tensors, {}, {} elements", op.tensors, rille::name_of(op.dtype), op.count);
}

Result<> check_ranks(const Operation& op, int rank, int world) {
  if (!is_pair(op.kind) && op.kind != Kind::broadcast) return success();
  const auto none = [world](int r) { return r < 0 || r >= world; };
  if (none(op.peer) || (op.kind == Kind::sendrecv && none(op.incoming.from))) {
    return make_error(ErrorKind::invalid, fmt::format("{}: there is no such rank", describe(op)),
                      fmt::format("ranks are 0 to {}", world - 1));
  }
  if ((op.kind == Kind::send || op.kind == Kind::receive) && op.peer == rank) {
    return make_error(ErrorKind::invalid, fmt::format("{}: a rank cannot exchange data with itself", describe(op)),
                      "copy the tensor, or use comm:sendrecv, which may send to its own rank");
  }
  if (op.kind != Kind::sendrecv || (op.peer != rank && op.incoming.from != rank)) return success();
  if (op.peer != op.incoming.from) {
    return make_error(ErrorKind::invalid,
                      fmt::format("{}: rank {} exchanges data with itself and with another rank", describe(op), rank),
                      "what a rank sends to itself it must receive in the same call");
  }
  if (op.dtype != op.incoming.dtype || op.shape != op.incoming.shape) {
    return make_error(ErrorKind::invalid, fmt::format("{}: rank {} receives what it sends", describe(op), rank),
                      "both tensors must have the same shape and type");
  }
  return success();
}

}  // namespace

bool is_pair(Kind kind) { return kind == Kind::send || kind == Kind::receive || kind == Kind::sendrecv; }

Operation sending_half(const Operation& op) {
  Operation half = op;
  half.kind = Kind::send;
  half.incoming = {};
  half.halves = op.peer == op.incoming.from ? 2 : 1;
  return half;
}

Operation receiving_half(const Operation& op) {
  Operation half;
  half.kind = Kind::receive;
  half.peer = op.incoming.from;
  half.dtype = op.incoming.dtype;
  half.shape = op.incoming.shape;
  half.count = op.incoming.count;
  half.halves = op.peer == op.incoming.from ? 2 : 1;
  return half;
}

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
  const char* const pair = op.halves ? kinds[int(Kind::sendrecv)] : kind;
  switch (op.kind) {
    case Kind::barrier: return kind;
    case Kind::all_reduce:
    case Kind::reduce_scatter: return fmt::format("{} {} of {}", kind, reduces[int(op.reduce)], operand(op));
    case Kind::all_gather: return fmt::format("{} of {}", kind, operand(op));
    case Kind::broadcast: return fmt::format("{} from rank {} of {}", kind, op.peer, operand(op));
    case Kind::receive: return fmt::format("{} from rank {} of {}", pair, op.peer, operand(op));
    case Kind::send: return fmt::format("{} to rank {} of {}", pair, op.peer, operand(op));
    case Kind::sendrecv:
      return fmt::format("{} to rank {} of {}, from rank {} of {}", kind, op.peer, operand(op), op.incoming.from,
                         operand(op.incoming.dtype, op.incoming.shape));
  }
  return "?";
}

Result<> check(const Operation& op, int rank, int world) {
  RILLE_CHECK(check_ranks(op, rank, world));
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
    answer.halves = mine.halves;
  }
  return answer == mine;
}

}  // namespace rille::collective
