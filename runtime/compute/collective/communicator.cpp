// The CPU's communicator: for each operation, the data that is sent, received and reduced (folded).
#include "runtime/compute/collective/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/compute/collective/agreement.hpp"
#include "runtime/compute/collective/mesh.hpp"
#include "runtime/core/base/build_id.hpp"
#include "runtime/core/net/loopback.hpp"

namespace rille::collective {

namespace {

// Up to this size every rank sends its whole tensor to every rank, and each rank reduces everything: one exchange.
// Above it, each rank reduces only its share and sends the result: two exchanges, but each element is reduced once.
constexpr std::size_t direct_bytes_max = 32u << 10;
constexpr std::size_t block_bytes = 128u << 10;       // a share is received and reduced in blocks of this size
constexpr std::size_t spread_bytes_min = 256u << 10;  // larger broadcasts are sent in parts, see broadcast()
constexpr std::int64_t share_step = 64;               // each share begins at a multiple of this many elements

struct Span {
  std::int64_t at = 0, end = 0;  // positions of elements: first, and one past the last
  std::int64_t count() const { return end - at; }
};

class CpuCommunicator final : public Communicator {
 public:
  CpuCommunicator(std::unique_ptr<Mesh> mesh, std::shared_ptr<Stop> stop)
      : mesh_(std::move(mesh)), stop_(std::move(stop)), agreement_(*mesh_), rank_(mesh_->rank()),
        world_(mesh_->world()) {}

  int rank() const override { return rank_; }
  int world() const override { return world_; }
  std::string transport() const override {
    if (world_ == 1) return "nothing";
    return mesh_->shared_links() == 0            ? "tcp"
           : mesh_->shared_links() == world_ - 1 ? "shared memory"
                                                 : "shared memory and tcp";
  }
  std::string place() const override { return "cpu"; }
  std::string host() const override { return mesh_->host(); }
  bool takes(const device::Device& device) const override { return device.kind() == device::Kind::cpu; }
  void stop(Error why) override { stop_->now(std::move(why)); }
  void leave() override { mesh_->leave(); }
  void hurry(std::int64_t ms) override { mesh_->hurry(ms); }

  Result<> run(const Operation& op, const std::vector<Piece>& pieces) override {
    RILLE_CHECK(check(op, rank_, world_));
    if (pieces.size() > 1 && op.kind != Kind::all_reduce && op.kind != Kind::broadcast && op.kind != Kind::sendrecv)
      return make_error(
          ErrorKind::internal, describe(op) + ": several pieces",
          "an operation that takes one tensor was given several: this is a bug of Rille: please report it");
    RILLE_CHECK(mesh_->begin(describe(op)));
    auto ran = is_pair(op.kind)    ? run_pair(op, pieces)
               : pieces.size() > 1 ? run_packed(op, pieces)
                                   : run_one(op, pieces.empty() ? Piece{} : pieces[0]);
    if (!ran) return mesh_->fail(agreement_.explain(std::move(ran).error(), op));
    return success();
  }

 private:
  std::size_t bytes(std::int64_t count) const { return std::size_t(count) * size_; }
  // Returns share r of n elements: the part that rank r reduces.
  Span share(std::int64_t n, int r) const {
    const std::int64_t steps = (n + share_step - 1) / share_step;
    return {std::min(n, steps * r / world_ * share_step), std::min(n, steps * (r + 1) / world_ * share_step)};
  }

  // Copies several pieces into one message; copying costs little compared with sending several messages.
  Result<> run_packed(const Operation& op, const std::vector<Piece>& pieces) {
    const auto size = size_bytes(op.dtype);
    std::size_t total = 0;
    for (const auto& p : pieces) total += std::size_t(p.count) * size;
    packed_.resize(total);
    std::size_t at = 0;
    for (const auto& p : pieces) {
      const auto n = std::size_t(p.count) * size;
      if (n) std::memcpy(packed_.data() + at, p.in, n);
      at += n;
    }
    RILLE_CHECK(run_one(op, {packed_.data(), packed_.data(), op.count}));
    at = 0;
    for (const auto& p : pieces) {
      const auto n = std::size_t(p.count) * size;
      if (n && p.out) std::memcpy(p.out, packed_.data() + at, n);
      at += n;
    }
    return success();
  }

  Result<> run_one(const Operation& op, const Piece& piece) {
    size_ = size_bytes(op.dtype);
    const auto* const in = static_cast<const std::byte*>(piece.in);
    auto* const out = static_cast<std::byte*>(piece.out);
    switch (op.kind) {
      case Kind::barrier: return agreement_.agree(op);
      case Kind::all_reduce: return all_reduce(op, in, out);
      case Kind::reduce_scatter: return reduce_scatter(op, in, out);
      case Kind::all_gather: return all_gather(op, in, out);
      case Kind::broadcast: return broadcast(op, in, out);
      case Kind::send:
      case Kind::receive:
      case Kind::sendrecv: break;  // run_pair
    }
    return success();
  }

  Result<> run_pair(const Operation& op, const std::vector<Piece>& pieces) {
    const Piece sent = pieces.empty() ? Piece{} : pieces.front(), got = pieces.empty() ? Piece{} : pieces.back();
    const std::size_t out_bytes = std::size_t(op.count) * size_bytes(op.dtype);
    if (to_itself(op, rank_)) {
      if (out_bytes) std::memmove(got.out, sent.in, out_bytes);
      return success();
    }
    const Operation from = op.kind == Kind::sendrecv ? receiving_half(op) : op;
    RILLE_CHECK(agreement_.open_pair(op, [this, from, got] {
      mesh_->receive(from.peer, got.out, std::size_t(from.count) * size_bytes(from.dtype));
    }));
    if (op.kind != Kind::receive) mesh_->send(op.peer, sent.in, out_bytes);
    return mesh_->turn_until_done();
  }

  // Computes out = in[0] op in[1] op .., n elements each, where in[r] is rank r's input. This rank's input is `mine`;
  // the inputs of the other ranks are in `others`, in the order of ranks, `apart` bytes from one to the next.
  void fold(const Operation& op, const std::byte* mine, const std::byte* others, std::size_t apart, std::byte* out,
            std::int64_t n) {
    views_.resize(std::size_t(world_) + 1);
    for (int r = 0; r <= world_; ++r) {
      auto& v = views_[std::size_t(r)] = {};
      v.dtype = op.dtype;
      v.shape.push(n);
      v.strides.push(1);
      const std::byte* from = r == world_ ? out : r == rank_ ? mine : others + std::size_t(r - (r > rank_)) * apart;
      v.data = const_cast<std::byte*>(from);
    }
    kernels::Attrs attrs;
    attrs.i[0] = std::int64_t(op.reduce);
    kernels::Call call;
    call.in = views_.data();
    call.n_in = world_;
    call.out = views_.data() + world_;
    call.n_out = 1;
    call.attrs = &attrs;
    kernels::fold(call);
  }

  Result<> all_reduce(const Operation& op, const std::byte* in, std::byte* out) {
    const auto n = op.count;
    if (bytes(n) > direct_bytes_max && world_ > 1) {
      agreement_.open(op);
      for (int r = 0; r < world_; ++r)
        if (r != rank_) mesh_->send(r, in + bytes(share(n, r).at), bytes(share(n, r).count()));
      RILLE_CHECK(agreement_.compare_all(op));
      const Span mine = share(n, rank_);
      RILLE_CHECK(fold_share(op, in + bytes(mine.at), out + bytes(mine.at), mine.count(), true));
      for (int r = 0; r < world_; ++r)
        if (r != rank_) mesh_->receive(r, out + bytes(share(n, r).at), bytes(share(n, r).count()));
      return mesh_->turn_until_done();
    }
    agreement_.open(op);
    staging_.resize(std::size_t(world_) * bytes(n));
    for (int r = 0; r < world_; ++r)
      if (r != rank_) mesh_->send(r, in, bytes(n));
    RILLE_CHECK(agreement_.compare_all(op));
    for (int r = 0; r < world_; ++r)
      if (r != rank_) mesh_->receive(r, staging_.data() + std::size_t(r - (r > rank_)) * bytes(n), bytes(n));
    RILLE_CHECK(mesh_->turn_until_done());
    fold(op, in, staging_.data(), bytes(n), out, n);
    return success();
  }

  // Receives the other ranks' data for this rank's share in blocks, and reduces each block while the next blocks
  // arrive. With `spread`, sends each reduced block to the other ranks at once.
  Result<> fold_share(const Operation& op, const std::byte* in, std::byte* out, std::int64_t n, bool spread) {
    const auto block = std::int64_t(block_bytes / size_);
    staging_.resize(std::size_t(world_) * block_bytes);
    for (std::int64_t at = 0; at < n; at += block) {
      const std::int64_t m = std::min(block, n - at);
      for (int r = 0; r < world_; ++r)
        if (r != rank_) mesh_->receive(r, staging_.data() + std::size_t(r - (r > rank_)) * block_bytes, bytes(m));
      RILLE_CHECK(mesh_->turn_until_received());
      fold(op, in + bytes(at), staging_.data(), block_bytes, out + bytes(at), m);
      for (int r = 0; r < world_ && spread; ++r)
        if (r != rank_) mesh_->send(r, out + bytes(at), bytes(m));
    }
    return success();
  }

  Result<> reduce_scatter(const Operation& op, const std::byte* in, std::byte* out) {
    const auto n = op.count;
    agreement_.open(op);
    for (int r = 0; r < world_; ++r)
      if (r != rank_) mesh_->send(r, in + bytes(n) * std::size_t(r), bytes(n));
    RILLE_CHECK(agreement_.compare_all(op));
    RILLE_CHECK(fold_share(op, in + bytes(n) * std::size_t(rank_), out, n, false));
    return mesh_->turn_until_done();
  }

  Result<> all_gather(const Operation& op, const std::byte* in, std::byte* out) {
    const auto n = bytes(op.count);
    agreement_.open(op);
    for (int r = 0; r < world_; ++r)
      if (r != rank_) mesh_->send(r, in, n);
    RILLE_CHECK(agreement_.compare_all(op));
    for (int r = 0; r < world_; ++r)
      if (r != rank_) mesh_->receive(r, out + n * std::size_t(r), n);
    if (n) std::memmove(out + n * std::size_t(rank_), in, n);
    return mesh_->turn_until_done();
  }

  // A large tensor is sent in parts, one to each rank, and each rank passes its part on to the other ranks. The
  // sender then sends only about twice the tensor's size, for any number of ranks.
  Result<> broadcast(const Operation& op, const std::byte* in, std::byte* out) {
    const auto n = op.count;
    const bool parts = world_ > 2 && bytes(n) >= spread_bytes_min;
    const bool root = op.peer == rank_;
    agreement_.open(op);
    for (int r = 0; root && r < world_; ++r) {
      if (r == rank_) continue;
      const Span s = parts ? share(n, r) : Span{0, n}, own = share(n, rank_);
      mesh_->send(r, in + bytes(s.at), bytes(s.count()));
      if (parts) mesh_->send(r, in + bytes(own.at), bytes(own.count()));
    }
    RILLE_CHECK(agreement_.compare_all(op));
    if (root) {
      RILLE_CHECK(mesh_->turn_until_done());
      if (out && out != in && n) std::memmove(out, in, bytes(n));
      return success();
    }
    const Span s = parts ? share(n, rank_) : Span{0, n}, first = share(n, op.peer);
    mesh_->receive(op.peer, out + bytes(s.at), bytes(s.count()));
    if (!parts) return mesh_->turn_until_done();
    RILLE_CHECK(mesh_->turn_until_received());
    mesh_->receive(op.peer, out + bytes(first.at), bytes(first.count()));
    for (int r = 0; r < world_; ++r) {
      if (r == rank_ || r == op.peer) continue;
      mesh_->send(r, out + bytes(s.at), bytes(s.count()));
      mesh_->receive(r, out + bytes(share(n, r).at), bytes(share(n, r).count()));
    }
    return mesh_->turn_until_done();
  }

  std::unique_ptr<Mesh> mesh_;
  std::shared_ptr<Stop> stop_;
  Agreement agreement_;
  int rank_, world_;
  std::size_t size_ = 1;  // bytes per element of the current operation
  std::vector<std::byte> staging_, packed_;
  std::vector<kernels::View> views_;
};

Result<> check(const Options& o) {
  if (o.world < 1 || o.world > world_max) {
    return make_error(ErrorKind::invalid,
                      fmt::format("world = {}: a communicator has 1 to {} ranks", o.world, world_max));
  }
  if (o.rank < 0 || o.rank >= o.world) {
    return make_error(ErrorKind::invalid, fmt::format("rank = {}: there is no such rank of {}", o.rank, o.world),
                      fmt::format("ranks are 0 to {}", o.world - 1));
  }
  return success();
}

}  // namespace

Result<std::unique_ptr<Mesh>> meet_ranks(const Options& o, const std::string& place, std::string& payload,
                                         const std::shared_ptr<Stop>& stop) {
  RILLE_CHECK(check(o));
  Meeting meeting;
  meeting.peers.resize(std::size_t(o.world));
  if (o.world > 1) {
    Invitation in;
    in.rank = o.rank;
    in.world = o.world;
    RILLE_TRY(in.address, parse_address(o.address));
    if (o.token.empty() && !net::is_loopback_host(in.address.host)) {
      return make_error(ErrorKind::invalid,
                        fmt::format("{}: other machines can reach this address, so a token is needed", o.address),
                        "pass token = .., a secret text that is equal at all ranks");
    }
    in.token = o.token;
    in.timeout_ms = o.timeout_ms;
    in.build = o.build.empty() ? std::string(build_id()) : o.build;
    in.terms = place + (o.shared_memory ? ", any transport" : ", TCP");
    in.payload = payload;
    in.listener = o.listener;
    RILLE_TRY(meeting, meet(in, *stop));
    payload = meeting.payload;
  }
  return Mesh::create(std::move(meeting), o.rank, o.shared_memory && o.world > 1, o.timeout_ms, stop);
}

Result<std::shared_ptr<Communicator>> Communicator::create(const Options& o, std::shared_ptr<Stop> stop) {
  std::string nothing;
  RILLE_TRY(auto mesh, meet_ranks(o, "the CPU", nothing, stop));
  return std::shared_ptr<Communicator>(std::make_shared<CpuCommunicator>(std::move(mesh), std::move(stop)));
}

}  // namespace rille::collective
