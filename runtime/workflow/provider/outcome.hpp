// What an error says about what was asked for: whether it is surely not done. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "runtime/core/base/result.hpp"

namespace rille::provider {

// A create call is sent by the time that its lease's row names, or not at all: what leaves later is not covered by the
// proof that nothing was made, and could be a second machine (docs/design/leases.md, "An answer that was lost"). Asked
// when nothing but the sending is left: by Api and by each driver that has another way. timeout, is_late: it is over.
// What was made for the machine stays, for who tries again. send_by_wall_us 0: no limit.
Result<> in_time(std::int64_t send_by_wall_us, std::int64_t now_wall_us);
inline constexpr std::string_view late_code = "too_late";
inline bool is_late(const Error& e) { return e.code == late_code; }

// Whether the provider has surely not done it: only then may the next offer be tried, and what was made beside the
// machine be taken away.
inline bool is_definitive(const Error& e) {
  if (e.http_status == 429) return false;  // asked too often: that says nothing about the offer
  switch (e.kind) {
    case ErrorKind::capacity:
    case ErrorKind::quota:
    case ErrorKind::auth:
    case ErrorKind::invalid:
    case ErrorKind::config: return true;
    default: return false;
  }
}

// The error of asking what became of an order that was accepted. It is about that question, as a right that is missing
// for it, and not about the machine, which may be there: so it is network, with the error as its cause.
inline Error left_open(Error e) {
  if (e.kind == ErrorKind::cancelled || e.kind == ErrorKind::network || e.kind == ErrorKind::timeout) return e;
  Error out = e;
  out.kind = ErrorKind::network;
  out.http_status = 0;
  out.message = "it was accepted, and what became of it cannot be asked: " + e.message;
  return std::move(out).with_cause(std::move(e));
}

}  // namespace rille::provider
