// Before an operation's data is exchanged, each rank sends the others a head that describes its operation; the heads
// must match. Threads: the mesh's.
#pragma once

#include <vector>

#include "runtime/compute/collective/mesh.hpp"
#include "runtime/compute/collective/operation.hpp"

namespace rille::collective {

class Agreement {
 public:
  explicit Agreement(Mesh& mesh) : mesh_(mesh), pair_numbers_(std::size_t(mesh.world())) {}
  // Queues the head for all other ranks and the receipt of theirs; data may be queued behind it.
  void open(const Operation& op);
  Result<> compare_all(const Operation& op);  // waits for their heads
  // The same with a single rank: op.peer.
  void open_pair(const Operation& op);
  Result<> compare_pair(const Operation& op);
  // Opens and compares; for operations without data on the mesh.
  Result<> agree(const Operation& op);

 private:
  Result<> compare(const Operation& op, int other, std::uint64_t number, const std::byte* theirs) const;

  Mesh& mesh_;
  std::uint64_t number_ = 0;                 // of operations of all ranks
  std::vector<std::uint64_t> pair_numbers_;  // of operations with each single rank
  std::byte head_[head_bytes] = {};
  std::vector<std::byte> heads_;
};

}  // namespace rille::collective
