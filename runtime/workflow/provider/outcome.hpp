// Whether an error proves that a request had no effect. Pure; any thread.
#pragma once

#include <utility>

#include "runtime/core/base/result.hpp"

namespace rille::provider {

// Whether the request certainly had no effect. Only then may the next offer be tried, and the security group and
// address that were made for the machine be removed.
inline bool is_definitive(const Error& e) {
  if (e.http_status == 429) return false;  // throttled: the offer may still be available
  switch (e.kind) {
    case ErrorKind::capacity:
    case ErrorKind::quota:
    case ErrorKind::auth:
    case ErrorKind::invalid:
    case ErrorKind::config: return true;
    default: return false;
  }
}

// Turns an error from polling an accepted create call into kind network, with the original error as cause: that error
// is about the poll (a missing permission, for example), and the machine may exist.
inline Error left_open(Error e) {
  if (e.kind == ErrorKind::cancelled || e.kind == ErrorKind::network || e.kind == ErrorKind::timeout) return e;
  Error out = e;
  out.kind = ErrorKind::network;
  out.http_status = 0;
  out.message = "the request was accepted, but its outcome cannot be read: " + e.message;
  return std::move(out).with_cause(std::move(e));
}

}  // namespace rille::provider
