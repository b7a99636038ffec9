#include "runtime/workflow/provider/cloud/wait.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::provider::cloud {

namespace {
constexpr std::int64_t wait_max_ms = 5'000;
constexpr std::size_t digest_chars = 10;
}  // namespace

Async<> Patience::next(std::string what, CancelToken token) {
  const std::int64_t left_ms = (ends_ns_ - loop_.clock().monotonic_ns()) / 1'000'000;
  if (left_ms <= 0)
    co_return make_error(ErrorKind::network,
                         fmt::format("{}: not finished after {}", what, format_duration_ms(limit_ms_)),
                         "the provider is slow: look at the machine in its console, then run the script again");
  const std::int64_t ms = std::min(left_ms, wait_ms_);
  wait_ms_ = std::min(wait_max_ms, wait_ms_ * 2);
  co_return co_await sleep_for(loop_, ms, std::move(token));
}

std::string resource_name(const std::string& tag, std::size_t length_max) {
  std::string out;
  for (const char c : tag) {
    const bool upper = c >= 'A' && c <= 'Z', fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    out += upper ? static_cast<char>(c + 32) : fits ? c : '-';
  }
  if (out.empty() || out.front() < 'a') out = "r" + out;
  if (out == tag && out.size() <= length_max && out.back() != '-') return out;
  out.resize(std::min(out.size(), length_max - digest_chars - 1));
  return out + "-" + derive_hex({"name", tag}, digest_chars);
}

}  // namespace rille::provider::cloud
