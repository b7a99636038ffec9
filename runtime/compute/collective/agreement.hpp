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
  // For send, receive and sendrecv: queues the heads; the other rank's head is compared when it arrives, while the mesh
  // turns. Data to send may be queued afterwards. `receive` queues the memory to receive into: it is called when the
  // sender's head has arrived and matches. `op` must stay valid until the mesh has turned.
  Result<> open_pair(const Operation& op, std::function<void()> receive);
  // The whole agreement, for operations whose data does not go through the mesh.
  Result<> agree(const Operation& op);
  // The error of a send or receive that timed out. If another rank is waiting for this one, the hint says so and names
  // sendrecv.
  Error explain(Error why, const Operation& op);

 private:
  // A half of the current operation for which the other rank's head has not arrived.
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
  std::uint64_t number_ = 0;                // counts the operations that all ranks make together
  std::vector<std::uint64_t> sent_, came_;  // per rank: number of messages of send and receive to it, and from it
  std::byte own_heads_[2][head_bytes] = {};
  std::vector<std::byte> heads_;  // heads of the other ranks
  const Operation* pair_ = nullptr;
  std::vector<Awaited> awaited_;
  // Per rank: the receiving half of its sendrecv with this rank, if this rank's operation was a receive only.
  std::vector<std::optional<Head>> early_;
};

}  // namespace rille::collective
