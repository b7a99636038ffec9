// How the ranks of a communicator find each other. Rank 0 listens at the address; the others connect and identify
// themselves; every connection proves the token in both directions (connection.hpp). When all are connected, rank 0
// sends each the addresses of all others, and every pair connects twice: one connection for control, one for data.
//
// Errors name the missing rank or the difference: invalid (another world, a duplicate rank), config (another build),
// auth (another token), timeout, network; or the reason of the Stop. Rank 0 sends its error to all connected ranks, so
// that every rank ends with the same message. These calls block: any thread except the loop's.
#pragma once

#include <memory>

#include "runtime/compute/collective/connection.hpp"

namespace rille::collective {

inline constexpr int world_max = 256;

struct Invitation {
  int rank = 0, world = 1;
  Address address;    // where rank 0 listens
  std::string token;  // secret shared by all ranks; may be empty
  std::int64_t timeout_ms = 300'000;
  std::string build;             // must be equal at all ranks, as must `terms`
  std::string terms;             // "cpu, shared memory"
  std::string payload;           // of rank 0: any bytes, sent to all
  std::shared_ptr<Fd> listener;  // of rank 0: a listening socket; null: make one
};

struct Meeting {
  struct Peer {
    std::unique_ptr<Connection> control, data;
    bool same_host = false;  // the same machine, user and PID namespace
  };
  std::string payload;
  std::vector<Peer> peers;  // by rank; this rank's own is empty
};

Result<Meeting> meet(const Invitation& invitation, const Stop& stop);

// The parts of meet(), for its tests.
struct Roster {  // the addresses of all ranks
  struct Entry {
    std::string host;  // identifies machine, user and PID namespace
    Address at;
  };
  std::string session, payload;
  std::vector<Entry> ranks;
};
Result<Roster> receive_all(const Invitation& invitation, int listener, const Stop& stop);  // rank 0
Result<Roster> join(const Invitation& invitation, const Stop& stop, Fd& listener);         // the others
Result<Meeting> connect_all(const Invitation& invitation, const Roster& roster, int listener, const Stop& stop);

std::string host_id();
Result<Roster> roster_from(const Value& welcome, int world);  // integrity

}  // namespace rille::collective
