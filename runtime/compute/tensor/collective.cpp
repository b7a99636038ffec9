#include "runtime/compute/tensor/collective.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/compute/tensor/failure.hpp"
#include "runtime/compute/tensor/ops.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

namespace {

using collective::Kind;
using collective::Operation;
using collective::Piece;

// A communication operation as the payload of a node.
class Exchange final : public kernels::Payload {
 public:
  Exchange(Ranks ranks, const Operation& op) : ranks_(std::move(ranks)), op_(op) {}
  const char* name() const override { return collective::name_of(op_.kind); }
  bool same(const kernels::Payload& o) const override {
    const auto* other = dynamic_cast<const Exchange*>(&o);
    return other && other->ranks_ == ranks_ && other->op_ == op_;
  }

  void run(const kernels::Call& c) const override {
    std::vector<Piece> pieces;
    switch (op_.kind) {
      case Kind::all_gather:
      case Kind::reduce_scatter: pieces.push_back({c.in[0].data, c.out[0].data, op_.count}); break;
      case Kind::send: pieces.push_back({c.in[0].data, nullptr, op_.count}); break;
      case Kind::sendrecv:
        pieces = {{c.in[0].data, nullptr, op_.count}, {nullptr, c.out[0].data, op_.incoming.count}};
        break;
      default:
        for (int i = 0; i < c.n_out; ++i) pieces.push_back({c.out[i].data, c.out[i].data, c.out[i].count()});
    }
    if (auto ran = ranks_->run(op_, pieces); !ran) fail_with(c, ran.error());
  }

 private:
  Ranks ranks_;
  Operation op_;
};

// FNV-1a hash of all sizes, which differs if any tensor has another shape on another rank.
std::uint64_t digest(const std::vector<Tensor>& tensors) {
  std::uint64_t h = 0xcbf29ce484222325u;
  const auto add = [&h](std::int64_t n) { h = (h ^ std::uint64_t(n)) * 0x100000001b3u; };
  for (const auto& t : tensors) {
    add(t.rank());
    for (int i = 0; i < t.rank(); ++i) add(t.size(i));
  }
  return h;
}

Operation operation_on(Kind kind, const std::vector<Tensor>& tensors) {
  Operation op;
  op.kind = kind;
  op.dtype = tensors[0].dtype();
  op.tensors = int(tensors.size());
  for (const auto& t : tensors) op.count += t.count();
  if (tensors.size() == 1) op.shape = tensors[0].shape();
  else op.shapes = digest(tensors);
  return op;
}

Result<void> check_rank_operand(const Ranks& ranks, Kind kind, const Tensor& t) {
  const char* const verb = collective::name_of(kind);
  if (!t) return make_error(ErrorKind::invalid, fmt::format("{}: an empty tensor handle", verb));
  if (!ranks->takes(*t.device())) {
    return make_error(
        ErrorKind::invalid,
        fmt::format("{}: the tensor is on {}, but the communicator was made for {}", verb, t.device()->name(),
                    ranks->place()),
        fmt::format("t:to(\"{}\") moves it; device = .. chooses when the communicator is made", ranks->place()));
  }
  return success();
}

// Returns `t` without history, to be written. Error state: gradients are recorded and `t` is a computed tensor.
Result<Tensor> target(const Ranks& ranks, Kind kind, const Tensor& t) {
  RILLE_CHECK(check_rank_operand(ranks, kind, t));
  if (t.graph().grad_enabled() && t.requires_grad() && !t.is_leaf()) {
    return make_error(ErrorKind::state,
                      fmt::format("{}: {}{} would be overwritten, but gradients flow through it",
                                  collective::name_of(kind), rille::name_of(t.dtype()), to_string(t.shape())),
                      "pass t:detach()");
  }
  return t.detach();
}

Result<void> give(Graph& g, const Ranks& ranks, const Operation& op, const std::vector<Tensor>& in,
                  const std::vector<Tensor>& out) {
  RILLE_CHECK(check(op, ranks->rank(), ranks->world()));
  RILLE_CHECK(record_launch(g, std::make_shared<Exchange>(ranks, op), in, out, nullptr));
  if (!g.tracing()) g.flush();
  return success();
}

// Runs an operation that writes its tensors. A tensor that is not contiguous is exchanged through a contiguous copy.
Result<void> in_place(const Ranks& ranks, Operation op, const std::vector<Tensor>& tensors) {
  Graph& g = tensors[0].graph();
  std::vector<Tensor> whole;
  for (const auto& t : tensors) {
    RILLE_TRY(auto c, contiguous(t));
    whole.push_back(std::move(c));
  }
  RILLE_CHECK(give(g, ranks, op, whole, whole));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Tensor t = tensors[i];
    if (!t.is(whole[i])) RILLE_CHECK(copy_(t, whole[i]));
  }
  return success();
}

// Several tensors are sent as one message, which is assembled in a separate buffer; this limits its size in bytes.
// Reduced values have the same bits however the tensors are split into messages.
constexpr std::int64_t message_bytes_max = 25 << 20;

// Sends one type after the other, in the order in which the types first occur.
Result<void> by_type(const Ranks& ranks, Operation how, const std::vector<Tensor>& given) {
  std::vector<Tensor> left;
  for (const auto& t : given) {
    RILLE_TRY(auto own, target(ranks, how.kind, t));
    left.push_back(std::move(own));
  }
  while (!left.empty()) {
    NoGrad guard(left[0].graph());
    const DType dtype = left[0].dtype();
    const auto rest =
        std::stable_partition(left.begin(), left.end(), [&](const auto& t) { return t.dtype() == dtype; });
    std::int64_t bytes = 0;
    auto end = left.begin();
    do bytes += end->count() * std::int64_t(size_bytes(dtype));
    while (++end != rest && bytes + end->count() * std::int64_t(size_bytes(dtype)) <= message_bytes_max);
    const std::vector<Tensor> now(left.begin(), end);
    Operation op = operation_on(how.kind, now);
    op.reduce = how.reduce;
    op.peer = how.peer;
    RILLE_CHECK(in_place(ranks, op, now));
    left.erase(left.begin(), end);
  }
  return success();
}

Result<Tensor> resized(const Tensor& t, std::int64_t first) {
  Dims shape = t.shape();
  shape[0] = first;
  return zeros(t.graph(), shape, t.dtype());
}

Result<void> check_first(const Ranks& ranks, Kind kind, const Tensor& t) {
  RILLE_CHECK(check_rank_operand(ranks, kind, t));
  if (t.rank() > 0) return success();
  return make_error(
      ErrorKind::invalid,
      fmt::format("{}: expected a tensor with at least one dimension, got a scalar", collective::name_of(kind)),
      "t:reshape(1) makes a tensor of one dimension");
}

}  // namespace

bool is_collective(const kernels::Payload* payload) { return dynamic_cast<const Exchange*>(payload) != nullptr; }

Result<void> all_reduce_(const Ranks& ranks, const std::vector<Tensor>& tensors, collective::Reduce how) {
  Operation op;
  op.kind = Kind::all_reduce;
  op.reduce = how;
  return by_type(ranks, op, tensors);
}

Result<void> broadcast_(const Ranks& ranks, const std::vector<Tensor>& tensors, int from) {
  Operation op;
  op.kind = Kind::broadcast;
  op.peer = from;
  return by_type(ranks, op, tensors);
}

Result<Tensor> all_gather(const Ranks& ranks, const Tensor& t) {
  RILLE_CHECK(check_first(ranks, Kind::all_gather, t));
  NoGrad guard(t.graph());
  RILLE_TRY(const auto mine, contiguous(t.detach()));
  RILLE_TRY(auto out, resized(t, t.size(0) * ranks->world()));
  RILLE_CHECK(give(t.graph(), ranks, operation_on(Kind::all_gather, {mine}), {mine, out}, {out}));
  return out;
}

Result<Tensor> reduce_scatter(const Ranks& ranks, const Tensor& t, collective::Reduce how) {
  RILLE_CHECK(check_first(ranks, Kind::reduce_scatter, t));
  if (t.size(0) % ranks->world() != 0) {
    return make_error(ErrorKind::invalid, fmt::format("reduce_scatter: {} cannot be divided into {} parts along its "
                                                      "first dimension",
                                                      to_string(t.shape()), ranks->world()));
  }
  NoGrad guard(t.graph());
  RILLE_TRY(const auto mine, contiguous(t.detach()));
  RILLE_TRY(auto out, resized(t, t.size(0) / ranks->world()));
  Operation op = operation_on(Kind::reduce_scatter, {mine});
  op.count = out.count();
  op.reduce = how;
  RILLE_CHECK(give(t.graph(), ranks, op, {mine, out}, {out}));
  return out;
}

Result<void> send_to(const Ranks& ranks, const Tensor& t, int to) {
  RILLE_CHECK(check_rank_operand(ranks, Kind::send, t));
  NoGrad guard(t.graph());
  RILLE_TRY(const auto mine, contiguous(t.detach()));
  Operation op = operation_on(Kind::send, {mine});
  op.peer = to;
  return give(t.graph(), ranks, op, {mine}, {});
}

Result<void> receive_(const Ranks& ranks, const Tensor& t, int from) {
  RILLE_TRY(const auto own, target(ranks, Kind::receive, t));
  NoGrad guard(t.graph());
  Operation op = operation_on(Kind::receive, {own});
  op.peer = from;
  return in_place(ranks, op, {own});
}

Result<void> sendrecv_(const Ranks& ranks, const Tensor& t, int to, const Tensor& into, int from) {
  RILLE_CHECK(check_rank_operand(ranks, Kind::sendrecv, t));
  RILLE_TRY(const auto own, target(ranks, Kind::sendrecv, into));
  NoGrad guard(t.graph());
  const bool shared = t.impl()->storage == own.impl()->storage;
  RILLE_TRY(const auto sent, shared ? clone(t.detach()) : contiguous(t.detach()));
  RILLE_TRY(const auto whole, contiguous(own));
  Operation op = operation_on(Kind::sendrecv, {sent});
  op.peer = to;
  op.incoming = {from, whole.dtype(), whole.shape(), whole.count()};
  RILLE_CHECK(give(t.graph(), ranks, op, {sent, whole}, {whole}));
  if (Tensor back = own; !own.is(whole)) RILLE_CHECK(copy_(back, whole));
  return success();
}

Result<void> barrier(const Ranks& ranks, Graph& g) { return give(g, ranks, {}, {}, {}); }

Result<void> average_gradients(const Ranks& ranks, const std::vector<Tensor>& parameters) {
  if (parameters.empty() || !parameters[0].graph().modes().last_part()) return success();
  std::vector<Tensor> grads;
  for (const auto& p : parameters)
    if (Tensor g = p.grad()) grads.push_back(std::move(g));
  return all_reduce_(ranks, grads, collective::Reduce::mean);
}

}  // namespace rille::tensor
