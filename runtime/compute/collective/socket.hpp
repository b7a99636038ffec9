// TCP between ranks: sockets that never block by themselves, waits with an end, and a way to call a wait off from
// another thread.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/compute/collective/message.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::collective {

using store::Fd;
using Instant = std::chrono::steady_clock::time_point;

// Any thread. What waits with it ends with the reason.
class Stop {
 public:
  Stop();
  void now(Error why);                     // the first one stays
  int fd() const { return event_.get(); }  // readable from then on
  bool asked() const { return asked_.load(std::memory_order_acquire); }
  Error why() const;

 private:
  Fd event_;
  std::atomic<bool> asked_{false};
  mutable std::mutex mutex_;
  Error why_;
};

// The end of a wait. `stop` outlives it.
struct Limit {
  Instant end;
  const Stop* stop = nullptr;
  Limit(std::int64_t ms, const Stop& s)
      : end(std::chrono::steady_clock::now() + std::chrono::milliseconds(ms)), stop(&s) {}
  int left_ms() const;  // 0: over
  // timeout: over, with an empty message; or why it was called off.
  Result<> wait(int fd, short events) const;
  Result<> pause(int ms) const;
};

struct Address {
  std::string host;
  int port = 0;
};
// "10.0.0.1:29500", "[::1]:29500", "node1:29500". invalid: what is accepted.
Result<Address> parse_address(std::string_view text);
std::string to_string(const Address& address);
bool is_loopback(const Address& address);  // localhost, 127.x, ::1

Result<Fd> listen_at(const Address& address);                       // port 0: any
Result<Fd> connect_to(const Address& address, const Limit& limit);  // tries until then
Fd accept_from(int listener);                                       // invalid: nobody
Address local_address(int fd);
Address remote_address(int fd);

// Waits until all is sent. network: the other side is gone.
Result<> send_all(int fd, std::string_view bytes, const Limit& limit);
Result<> send_message(int fd, const Value& value, const Limit& limit);
// What is there, not more than belongs to one message. Nothing yet: no value. network: the other side is gone.
Result<std::optional<Value>> receive_some(int fd, MessageParser& parser);
Result<Value> receive_message(int fd, MessageParser& parser, const Limit& limit);

}  // namespace rille::collective
