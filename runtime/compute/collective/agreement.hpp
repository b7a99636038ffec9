// Before the numbers of an operation: each rank tells the others which one it is about to do, and they must fit.
// Threads: the mesh's.
#pragma once

#include <vector>

#include "runtime/compute/collective/mesh.hpp"
#include "runtime/compute/collective/operation.hpp"

namespace rille::collective {

class Agreement {
 public:
  explicit Agreement(Mesh& mesh) : mesh_(mesh), pair_numbers_(std::size_t(mesh.world())) {}
  // Queues the head for all other ranks, and theirs; what is sent behind it may be queued then.
  void open(const Operation& op);
  Result<> compare_all(const Operation& op);  // waits for their heads
  // The same with one rank: op.peer.
  void open_pair(const Operation& op);
  Result<> compare_pair(const Operation& op);
  // All of it, for who has no numbers to send here.
  Result<> agree(const Operation& op);

 private:
  Result<> compare(const Operation& op, int other, std::uint64_t number, const std::byte* theirs) const;

  Mesh& mesh_;
  std::uint64_t number_ = 0;                 // of operations of all ranks
  std::vector<std::uint64_t> pair_numbers_;  // of those with each other rank
  std::byte head_[head_bytes] = {};
  std::vector<std::byte> heads_;
};

}  // namespace rille::collective
