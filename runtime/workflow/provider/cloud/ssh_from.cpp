#include "runtime/workflow/provider/cloud/ssh_from.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "runtime/core/base/error.hpp"

namespace rille::provider::cloud {

namespace {

constexpr std::size_t ranges_max = 50;

// Whether the text is an IPv4 range such as "203.0.113.0/24".
bool is_range(const std::string& text) {
  int parts[5] = {}, used = 0;
  const int read =
      std::sscanf(text.c_str(), "%3d.%3d.%3d.%3d/%2d%n", &parts[0], &parts[1], &parts[2], &parts[3], &parts[4], &used);
  if (read != 5 || static_cast<std::size_t>(used) != text.size()) return false;
  for (int i = 0; i < 4; ++i)
    if (parts[i] < 0 || parts[i] > 255) return false;
  return parts[4] >= 0 && parts[4] <= 32;
}

}  // namespace

Result<std::vector<std::string>> read_ssh_from(const std::string& provider, const Value& setting) {
  const auto wrong = [&](const std::string& what) {
    return make_error(ErrorKind::config, fmt::format("{}: ssh_from = {}: {}", provider, setting.to_json(), what),
                      "\"203.0.113.0/24\", or a list");
  };
  std::vector<std::string> out;
  if (setting.is_null()) out.emplace_back("0.0.0.0/0");
  if (setting.as_string()) out.push_back(*setting.as_string());
  if (const Value::Array* list = setting.as_array())
    for (const Value& one : *list) out.push_back(one.as_string() ? *one.as_string() : one.to_json());
  for (const std::string& range : out)
    if (!is_range(range)) return wrong(fmt::format("'{}' is not a range of IPv4 addresses", range));
  if (out.empty() || out.size() > ranges_max) return wrong(fmt::format("expected 1 to {} address ranges", ranges_max));
  return out;
}

}  // namespace rille::provider::cloud
