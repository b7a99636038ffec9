#include "runtime/workflow/lease/tag.hpp"

#include <fmt/format.h>

#include <charconv>

#include "runtime/core/base/id.hpp"

namespace rille::lease {

std::string tag_prefix(const std::string& install) { return "rille-" + install + "-"; }

std::string tag_of(const std::string& install, const Lease& lease) {
  return fmt::format("{}{}-g{}-x{}", tag_prefix(install), lease.id, lease.generation, lease.expires_us / 1'000'000);
}

std::string cluster_of(const std::string& install, const std::string& run, const std::string& name) {
  return tag_prefix(install) + "c" + derive_hex({"cluster", run, name}, 16);
}

std::optional<Tag> read_tag(const std::string& install, std::string_view tag) {
  std::string prefix = tag_prefix(install);
  std::size_t g = tag.rfind("-g"), x = tag.rfind("-x");
  if (!tag.starts_with(prefix) || g == tag.npos || x == tag.npos || g < prefix.size() || x < g) return std::nullopt;
  auto number = [](std::string_view digits, std::int64_t& out) {
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return error == std::errc() && end == digits.data() + digits.size() && out > 0;
  };
  Tag out;
  out.lease = tag.substr(prefix.size(), g - prefix.size());
  if (!number(tag.substr(g + 2, x - g - 2), out.generation) || !number(tag.substr(x + 2), out.expires_us))
    return std::nullopt;
  out.expires_us *= 1'000'000;
  return out;
}

std::int64_t absence_proven_us(const Lease& lease, const provider::Traits& traits) {
  // A provider that shows created machines at once needs no wait.
  if (traits.create_timeout_ms == 0 && traits.visibility_lag_ms == 0) return 0;
  std::int64_t made_by_us = lease.live_us ? lease.live_us : lease.send_by_us + traits.create_timeout_ms * 1000;
  return made_by_us + traits.visibility_lag_ms * 1000;
}

Async<std::vector<provider::Machine>> machines_of(provider::Provider* provider, std::string region, std::string tag,
                                                  CancelToken token) {
  RILLE_CO_TRY(provider::Listing listed,
               co_await provider->list_in(std::move(region), std::move(tag), std::move(token)));
  if (!listed.unasked.empty()) co_return std::move(*listed.unasked.front().problem);
  co_return std::move(listed.machines);
}

}  // namespace rille::lease
