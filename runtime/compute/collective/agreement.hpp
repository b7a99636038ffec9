// Checks that all ranks make the same call: before an operation's data is exchanged, each rank sends the other ranks
// a message head that describes its operation; the heads must match. Threads: as for class Mesh.
//
// send, receive and sendrecv concern two ranks, or three. A sendrecv is a send for one rank and a receive for the
// other, so it meets their send, receive or sendrecv. If both halves concern one rank, their heads go together, the
// receive first: that rank may do the two in any order.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runtime/compute/collective/mesh.hpp"
#include "runtime/compute/collective/message.hpp"

namespace rille::collective {

class Agreement {
 public:
  explicit Agreement(Mesh& mesh);
  // Queues this rank's head for sending and the other ranks' heads for receiving; data may be queued after it.
  void open(const Operation& op);
  Result<> compare_all(const Operation& op);  // waits for the other ranks' heads and compares them
  // For send, receive and sendrecv: queues the heads, and compares the other rank's when they come, while the mesh
  // turns. Data to be sent may be queued after it. `receive` queues what is to be received: it is called when the
  // sender's head has come and matches. `op` must stay valid until the mesh has turned.
  Result<> open_pair(const Operation& op, std::function<void()> receive);
  // Does all of this, for operations whose data does not go through the mesh.
  Result<> agree(const Operation& op);
  // The error of a send or receive that waited in vain. If another rank waits for this one meanwhile, the hint says so
  // and names sendrecv.
  Error explain(Error why, const Operation& op);

 private:
  // A half of the present operation for which the other rank's head has not come.
  struct Awaited {
    Operation half;
    std::uint64_t number;
    std::function<void()> then;
  };
  bool awaits(int other) const;
  Result<> listen(int other);
  Result<> take(int other, const Head& head, bool early);
  Result<> compare(const Operation& op, const Operation& part, int other, std::uint64_t number, const Head& head) const;
  Error differ(const Operation& op, const Operation& part, int other, std::uint64_t number, const Head& head) const;
  std::byte* head_of(int other) { return heads_.data() + std::size_t(other) * head_bytes; }

  Mesh& mesh_;
  std::uint64_t number_ = 0;                // counts the operations of all ranks together
  std::vector<std::uint64_t> sent_, came_;  // for each rank: counts the messages of send and receive to it, and from it
  std::byte own_heads_[2][head_bytes] = {};
  std::vector<std::byte> heads_;  // of the others
  const Operation* pair_ = nullptr;
  std::vector<Awaited> awaited_;
  // For each rank: the receiving half of its sendrecv with this rank, while this rank has only received.
  std::vector<std::optional<Head>> early_;
};

}  // namespace rille::collective
