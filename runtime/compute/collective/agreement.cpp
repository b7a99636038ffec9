#include "runtime/compute/collective/agreement.hpp"

#include <fmt/format.h>

namespace rille::collective {

void Agreement::open(const Operation& op) {
  encode_head(op, ++number_, head_);
  heads_.resize(std::size_t(mesh_.world()) * head_bytes);
  for (int r = 0; r < mesh_.world(); ++r) {
    if (r == mesh_.rank()) continue;
    mesh_.send(r, head_, head_bytes);
    mesh_.receive(r, heads_.data() + std::size_t(r) * head_bytes, head_bytes);
  }
}

Result<> Agreement::compare_all(const Operation& op) {
  RILLE_CHECK(mesh_.turn_until_received());
  for (int r = 0; r < mesh_.world(); ++r)
    if (r != mesh_.rank()) RILLE_CHECK(compare(op, r, number_, heads_.data() + std::size_t(r) * head_bytes));
  return success();
}

void Agreement::open_pair(const Operation& op) {
  encode_head(op, ++pair_numbers_[std::size_t(op.peer)], head_);
  heads_.resize(std::size_t(mesh_.world()) * head_bytes);
  mesh_.send(op.peer, head_, head_bytes);
  mesh_.receive(op.peer, heads_.data(), head_bytes);
}

Result<> Agreement::compare_pair(const Operation& op) {
  RILLE_CHECK(mesh_.turn_until_received());
  return compare(op, op.peer, pair_numbers_[std::size_t(op.peer)], heads_.data());
}

Result<> Agreement::agree(const Operation& op) {
  if (op.kind == Kind::send || op.kind == Kind::receive) {
    open_pair(op);
    RILLE_CHECK(compare_pair(op));
  } else {
    open(op);
    RILLE_CHECK(compare_all(op));
  }
  return mesh_.turn_until_done();
}

Result<> Agreement::compare(const Operation& op, int other, std::uint64_t number, const std::byte* theirs) const {
  auto head = decode_head(theirs);
  if (!head) return std::move(head).error();
  const bool same = fits(op, mesh_.rank(), head->operation, other);
  if (same && head->number == number) return success();
  return make_error(
      ErrorKind::invalid,
      fmt::format("the ranks are at different calls: rank {} is at {} (call {}), rank {} at {} (call {})", mesh_.rank(),
                  describe(op), number, other, describe(head->operation), head->number),
      same ? "one rank skipped a call or made an additional one: all ranks must make the same calls in the same order"
           : "all ranks must make the same calls in the same order, with the same shapes and types");
}

}  // namespace rille::collective
