#include "runtime/compute/collective/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rille::collective {

namespace {

bool answers(Kind theirs, Kind mine) { return theirs == (mine == Kind::send ? Kind::receive : Kind::send); }

constexpr const char* at_once = "comm:sendrecv, which sends and receives at once";

}  // namespace

Agreement::Agreement(Mesh& mesh)
    : mesh_(mesh), sent_(std::size_t(mesh.world())), came_(std::size_t(mesh.world())),
      heads_(std::size_t(mesh.world()) * head_bytes), early_(std::size_t(mesh.world())) {}

void Agreement::open(const Operation& op) {
  encode_head(op, ++number_, own_heads_[0]);
  for (int r = 0; r < mesh_.world(); ++r) {
    if (r == mesh_.rank()) continue;
    mesh_.send(r, own_heads_[0], head_bytes);
    mesh_.receive(r, head_of(r), head_bytes);
  }
}

Result<> Agreement::compare_all(const Operation& op) {
  for (int r = 0; r < mesh_.world(); ++r)  // a rank with an early head waits until this rank sends
    if (const auto& early = early_[std::size_t(r)]) return differ(op, op, r, number_, *early);
  RILLE_CHECK(mesh_.turn_until_received());
  for (int r = 0; r < mesh_.world(); ++r) {
    if (r == mesh_.rank()) continue;
    RILLE_TRY(const auto head, decode_head(head_of(r)));
    RILLE_CHECK(compare(op, op, r, number_, head));
  }
  return success();
}

Result<> Agreement::open_pair(const Operation& op, std::function<void()> receive) {
  pair_ = &op;
  awaited_.clear();
  if (op.kind != Kind::send) {
    const Operation half = op.kind == Kind::sendrecv ? receiving_half(op) : op;
    awaited_.push_back({half, ++came_[std::size_t(half.peer)], std::move(receive)});
  }
  if (op.kind != Kind::receive) {
    const Operation half = op.kind == Kind::sendrecv ? sending_half(op) : op;
    awaited_.push_back({half, ++sent_[std::size_t(half.peer)], {}});
  }
  for (std::size_t i = 0; i < awaited_.size(); ++i) {
    encode_head(awaited_[i].half, awaited_[i].number, own_heads_[i]);
    mesh_.send(awaited_[i].half.peer, own_heads_[i], head_bytes);
  }
  const int first = awaited_.front().half.peer, second = awaited_.back().half.peer;
  RILLE_CHECK(listen(first));
  return second == first ? success() : listen(second);
}

bool Agreement::awaits(int other) const {
  return std::any_of(awaited_.begin(), awaited_.end(), [other](const auto& a) { return a.half.peer == other; });
}

// Takes the next head of that rank when it arrives, if one is awaited.
Result<> Agreement::listen(int other) {
  if (!awaits(other)) return success();
  if (const auto early = std::exchange(early_[std::size_t(other)], std::nullopt)) return take(other, *early, true);
  mesh_.receive(other, head_of(other), head_bytes, [this, other]() -> Result<> {
    RILLE_TRY(const auto head, decode_head(head_of(other)));
    return take(other, head, false);
  });
  return success();
}

Result<> Agreement::take(int other, const Head& head, bool early) {
  const auto found = std::find_if(awaited_.begin(), awaited_.end(), [&](const auto& a) {
    return a.half.peer == other && answers(head.operation.kind, a.half.kind);
  });
  if (found != awaited_.end()) {
    RILLE_CHECK(compare(*pair_, found->half, other, found->number, head));
    const auto then = std::move(found->then);
    awaited_.erase(found);
    if (then) then();
    return listen(other);
  }
  const auto mine = std::find_if(awaited_.begin(), awaited_.end(), [&](const auto& a) { return a.half.peer == other; });
  // The head of the sending half follows.
  const bool more = head.operation.kind == Kind::receive && head.operation.halves == 2 && !early;
  if (!more) return differ(*pair_, mine->half, other, mine->number, head);
  RILLE_CHECK(listen(other));
  early_[std::size_t(other)] = head;
  return success();
}

Result<> Agreement::agree(const Operation& op) {
  if (is_pair(op.kind)) {
    RILLE_CHECK(open_pair(op, {}));
  } else {
    open(op);
    RILLE_CHECK(compare_all(op));
  }
  return mesh_.turn_until_done();
}

Result<> Agreement::compare(const Operation& op, const Operation& part, int other, std::uint64_t number,
                            const Head& head) const {
  if (fits(part, mesh_.rank(), head.operation, other) && head.number == number) return success();
  return differ(op, part, other, number, head);
}

// `part` is `op`, or the half of it that involves rank `other`.
Error Agreement::differ(const Operation& op, const Operation& part, int other, std::uint64_t number,
                        const Head& head) const {
  const bool same = fits(part, mesh_.rank(), head.operation, other);
  const bool alike = is_pair(part.kind) && head.operation.kind == part.kind && head.operation.peer == mesh_.rank();
  return make_error(
      ErrorKind::invalid,
      fmt::format("the ranks are at different calls: rank {} is at {} (call {}), rank {} at {} (call {})", mesh_.rank(),
                  describe(op), number, other, describe(head.operation), head.number),
      same ? "one rank skipped a call or made an additional one: all ranks must make the same calls in the same order"
      : alike ? fmt::format("where each rank waits for the other one, use {}", at_once)
              : "all ranks must make the same calls in the same order, with the same shapes and types");
}

Error Agreement::explain(Error why, const Operation& op) {
  if (why.kind != ErrorKind::timeout || !why.resource.empty() || (op.kind != Kind::send && op.kind != Kind::receive))
    return why;
  for (int r = 0; r < mesh_.world(); ++r) {
    if (r == mesh_.rank() || !mesh_.unasked(r, head_of(r), head_bytes)) continue;
    const auto head = decode_head(head_of(r));
    if (!head || !is_pair(head->operation.kind) || head->operation.peer != mesh_.rank()) continue;
    why.hint = fmt::format("meanwhile rank {} waits at {}: where each rank waits for the next one, use {}", r,
                           describe(head->operation), at_once);
    break;
  }
  return why;
}

}  // namespace rille::collective
