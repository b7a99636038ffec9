#include "runtime/core/base/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rille {

namespace {
constexpr std::array<std::string_view, 17> kind_names = {
    "invalid", "config", "auth",      "quota",  "capacity", "network",    "timeout",  "cancelled", "budget",
    "state",   "io",     "integrity", "device", "memory",   "divergence", "internal", "denied"};
}

std::string_view to_string(ErrorKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

ErrorKind error_kind_from(std::string_view name) {
  for (std::size_t i = 0; i < kind_names.size(); ++i)
    if (kind_names[i] == name) return static_cast<ErrorKind>(i);
  return ErrorKind::internal;
}

std::string Error::summary() const {
  std::string out = fmt::format("{}: {}", to_string(kind), message);
  if (!hint.empty()) out += "\n  hint: " + hint;
  return out;
}

std::int64_t size_bytes(const Error& e) {
  std::size_t bytes = 0;
  for (const Error* at = &e; at; at = at->cause.get())
    bytes += sizeof *at + at->message.size() + at->hint.size() + at->provider.size() + at->operation.size() +
             at->code.size() + at->request_id.size() + at->resource.size() + at->traceback.size();
  return static_cast<std::int64_t>(bytes);
}

Error errno_error(std::string_view operation, std::string_view path, int errno_value) {
  char text[128];
  const char* shown = strerror_r(errno_value, text, sizeof text);
  Error e = make_error(ErrorKind::io, fmt::format("{} '{}': {}", operation, path, shown));
  e.operation = operation;
  e.code = fmt::format("errno {}", errno_value);
  if (errno_value == ENOSPC || errno_value == EDQUOT) e.hint = "free some space on that disk, then run it again";
  if (errno_value == EACCES || errno_value == EPERM) e.hint = "check the owner and mode of that path";
  return e;
}

}  // namespace rille
