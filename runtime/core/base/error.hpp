// The one error type. An Error is a value: it travels in a Result until an edge (Lua, C, the command) shows it.
// The fields are the same on both sides of every edge and cross it without loss (error_to_value, error_from_value).
// May move between threads; do not share while writing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rille {

enum class ErrorKind : std::uint8_t {
  invalid,     // the caller's argument is wrong
  config,      // settings or installation are wrong
  auth,        // credentials refused
  quota,       // a provider's quota is exhausted
  capacity,    // nothing to rent at present; expected in normal operation
  network,     // a transfer failed
  timeout,     // a time limit expired
  cancelled,   // cancelled on request
  budget,      // the action would exceed the spending limit
  state,       // the operation does not fit the object's state
  io,          // a file or disk operation failed
  integrity,   // data is damaged or does not match its checksum
  device,      // a compute device failed
  memory,      // out of memory, host or device
  divergence,  // a resumed script does not follow its journal
  internal,    // a bug in Rille
  denied,      // the run lacks a grant
};

std::string_view to_string(ErrorKind kind);
// The kind with that name; `internal` for an unknown name.
ErrorKind error_kind_from(std::string_view name);

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string message;  // what failed, naming the value; one line
  std::string hint;     // what the user can do next; may be empty
  bool retryable = false;
  std::int64_t retry_after_ms = -1;  // how long the peer asked to wait before a retry; -1: the peer did not say
  std::string provider, operation, code, request_id, resource;
  int http_status = 0;  // HTTP status of the answer; 0: no HTTP answer
  std::shared_ptr<const Error> cause;
  std::string traceback;  // the script's stack traceback; script frames come first

  // "kind: message", then the hint on its own line. Never the traceback.
  std::string summary() const;

  Error&& with_hint(std::string text) && {
    hint = std::move(text);
    return std::move(*this);
  }
  Error&& with_operation(std::string text) && {
    operation = std::move(text);
    return std::move(*this);
  }
  Error&& with_resource(std::string text) && {
    resource = std::move(text);
    return std::move(*this);
  }
  Error&& with_cause(Error e) && {
    cause = std::make_shared<const Error>(std::move(e));
    return std::move(*this);
  }
  Error&& with_retry() && {
    retryable = true;
    return std::move(*this);
  }
};

inline Error make_error(ErrorKind kind, std::string message, std::string hint = {}) {
  Error e;
  e.kind = kind;
  e.message = std::move(message);
  e.hint = std::move(hint);
  return e;
}

std::int64_t size_bytes(const Error& e);  // counts its texts and its causes

// An io error that names the operation, the path and the errno text.
Error errno_error(std::string_view operation, std::string_view path, int errno_value);

}  // namespace rille
