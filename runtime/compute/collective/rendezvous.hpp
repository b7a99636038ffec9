// How the ranks of a communicator find each other. Rank 0 listens at the address; the others come to it, show that they
// know the token, and say who they are. When all are there, each is told where all others listen, and every two of them
// connect twice: one connection for control, one for numbers.
//
// Errors name who is missing, or what differs: invalid (another world, a rank that is there twice), config (another
// build), auth (another token), timeout, network; or why it was called off. Whatever rank 0 finds, it tells all that
// have come, so that every rank ends with the same words. It blocks: any thread but the loop's.
#pragma once

#include <memory>

#include "runtime/compute/collective/socket.hpp"

namespace rille::collective {

inline constexpr int world_max = 256;

struct Invitation {
  int rank = 0, world = 1;
  Address address;    // where rank 0 listens
  std::string token;  // what all of them know; may be empty
  std::int64_t timeout_ms = 300'000;
  std::string build;             // must be the same everywhere, as must `terms`
  std::string terms;             // "cpu, shared memory"
  std::string gift;              // of rank 0: any bytes, for all
  std::shared_ptr<Fd> listener;  // of rank 0, which listens already; null: it begins to
};

struct Meeting {
  struct Peer {
    Fd control, data;
    MessageParser parser;    // of control
    bool same_host = false;  // and user, and numbering of processes
  };
  std::string gift;
  std::vector<Peer> peers;  // by rank; this rank's own is empty
};

Result<Meeting> meet(const Invitation& invitation, const Stop& stop);

// The parts, for meet() and its tests.
struct Roll {  // where everybody is
  struct Entry {
    std::string host;  // of which machine, user and numbering of processes
    Address at;
  };
  std::string session, gift;
  std::vector<Entry> ranks;
};
Result<Roll> receive_all(const Invitation& invitation, int listener, const Stop& stop);  // rank 0
Result<Roll> come(const Invitation& invitation, const Stop& stop, Fd& listener);         // the others
Result<Meeting> weave(const Invitation& invitation, const Roll& roll, int listener, const Stop& stop);

std::string host_id();
// Hexadecimal; of what was said, by who knows the token.
std::string proof_of(const std::string& token, std::string_view what, std::string_view nonce, const Value& said);
// Takes "proof" out and looks at it.
bool proves(const std::string& token, std::string_view what, std::string_view nonce, Value& said);
Result<Roll> roll_from(const Value& welcome, int world);  // integrity

}  // namespace rille::collective
