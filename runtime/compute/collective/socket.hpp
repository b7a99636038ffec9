// TCP between ranks: non-blocking sockets, waits with a time limit, and a way to end a wait from another thread.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::collective {

using store::Fd;
using Instant = std::chrono::steady_clock::time_point;

// Ends waits from any thread, with a reason.
class Stop {
 public:
  Stop();
  void now(Error why);                     // the first reason is kept
  int fd() const { return event_.get(); }  // readable once stopped
  bool asked() const { return asked_.load(std::memory_order_acquire); }
  Error why() const;

 private:
  Fd event_;
  std::atomic<bool> asked_{false};
  mutable std::mutex mutex_;
  Error why_;
};

// The end of a wait. `stop` must outlive it.
struct Limit {
  Instant end;
  const Stop* stop = nullptr;
  Limit(std::int64_t ms, const Stop& s)
      : end(std::chrono::steady_clock::now() + std::chrono::milliseconds(ms)), stop(&s) {}
  int left_ms() const;  // 0: expired
  // timeout: expired, with an empty message; or the reason of the Stop.
  Result<> wait(int fd, short events) const;
  Result<> pause(int ms) const;
};

struct Address {
  std::string host;
  int port = 0;
};
// "10.0.0.1:29500", "[::1]:29500", "node1:29500". invalid: the message says what is accepted.
Result<Address> parse_address(std::string_view text);
std::string to_string(const Address& address);

Result<Fd> listen_at(const Address& address);                       // port 0: any
Result<Fd> connect_to(const Address& address, const Limit& limit);  // retries until the limit
Result<Fd> connect_to_one_of(std::span<const Address> addresses, const Limit& limit);
Fd accept_from(int listener);  // invalid Fd: no connection is waiting
Address local_address(int fd);
Address remote_address(int fd);

}  // namespace rille::collective
