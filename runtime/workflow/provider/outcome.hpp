// What an error says about what was asked for: whether it is surely not done. Pure; any thread.
#pragma once

#include <utility>

#include "runtime/core/base/result.hpp"

namespace rille::provider {

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
