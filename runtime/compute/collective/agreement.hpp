// Checks that all ranks make the same call: before an operation's data is exchanged, each rank sends the other ranks
// a message head that describes its operation; the heads must match. Threads: as for class Mesh.
#pragma once

#include <vector>

#include "runtime/compute/collective/mesh.hpp"
#include "runtime/compute/collective/operation.hpp"

namespace rille::collective {

class Agreement {
 public:
  explicit Agreement(Mesh& mesh) : mesh_(mesh), pair_numbers_(std::size_t(mesh.world())) {}
  // Queues this rank's head for sending and the other ranks' heads for receiving; data may be queued after it.
  void open(const Operation& op);
  Result<> compare_all(const Operation& op);  // waits for the other ranks' heads and compares them
  // As open and compare_all, but with the rank op.peer only: for send and receive.
  void open_pair(const Operation& op);
  Result<> compare_pair(const Operation& op);
  // Calls open and compare_all; for operations whose data does not go through the mesh.
  Result<> agree(const Operation& op);

 private:
  Result<> compare(const Operation& op, int other, std::uint64_t number, const std::byte* theirs) const;

  Mesh& mesh_;
  std::uint64_t number_ = 0;                 // counts the operations of all ranks together
  std::vector<std::uint64_t> pair_numbers_;  // for each rank: counts the send and receive operations with that rank
  std::byte head_[head_bytes] = {};
  std::vector<std::byte> heads_;
};

}  // namespace rille::collective
