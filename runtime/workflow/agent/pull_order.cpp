// The request `pull` as it crosses the channel.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/id.hpp"
#include "runtime/workflow/agent/heard.hpp"
#include "runtime/workflow/agent/peers.hpp"
#include "runtime/workflow/agent/pull.hpp"

namespace rille::agent {

namespace {
constexpr int parallel_max = 64;
constexpr std::size_t share_machines_max = 64;
}  // namespace

Value pull_header(const PullRequest& r, const PullAddress& address, std::int64_t now_wall_us) {
  Value header;
  header.set("path", r.path).set("key", r.key).set("size", r.size_bytes).set("version", r.version);
  header.set("sha256", r.sha256).set("part_bytes", r.part_bytes).set("parallel", r.parallel);
  header.set("bytes_per_second_max", r.bytes_per_second_max).set("url", address.url);
  Value::Array headers;
  for (const auto& [name, value] : address.headers) headers.push_back(Value::Array{name, value});
  header.set("headers", std::move(headers));
  if (address.expires_wall_us > 0)
    header.set("expires_in_ms", std::max<std::int64_t>(1, (address.expires_wall_us - now_wall_us) / 1000));
  if (!address.share) return header;
  Value::Array machines;
  for (const auto& machine : address.share->machines) machines.push_back(Value::Array(machine.begin(), machine.end()));
  Value share;
  share.set("id", address.share->id).set("key", address.share->key).set("machines", std::move(machines));
  return header.set("share", std::move(share));
}

Result<std::optional<PullShare>> pull_share_from(const Value& header, const std::string& body) {
  const Value& told = header["share"];
  if (told.is_null()) return std::optional<PullShare>();
  PullShare out;
  out.id = told.text("id"), out.key = told.text("key"), out.digests = body;
  const auto hex = [](const std::string& text, std::size_t chars) {
    return text.size() == chars && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  };
  const Value::Array* machines = told["machines"].as_array();
  bool fits = hex(out.id, PeerLink::id_chars) && hex(out.key, PeerLink::key_chars) && machines &&
              machines->size() <= share_machines_max;
  for (std::size_t i = 0; fits && i < machines->size(); ++i) {
    const Value::Array* addresses = (*machines)[i].as_array();
    std::vector<std::string>& machine = out.machines.emplace_back();
    for (std::size_t n = 0; addresses && n < std::min(addresses->size(), Peers::addresses_max); ++n)
      if (const std::string* address = (*addresses)[n].as_string()) machine.push_back(*address);
  }
  if (fits) return std::optional(std::move(out));
  return make_error(ErrorKind::invalid, "pull: an id, a key and the machines of a share are required",
                    "use the same version of rille here and on the instance");
}

Result<PullOrder> pull_order_from(const Value& header) {
  PullOrder out;
  PullRequest& r = out.request;
  r.path = header.text("path"), r.key = header.text("key"), r.version = header.text("version");
  r.sha256 = header.text("sha256");
  r.size_bytes = header.integer("size", -1);
  r.part_bytes = header.integer("part_bytes", r.part_bytes);
  r.parallel = static_cast<int>(std::clamp<std::int64_t>(header.integer("parallel", r.parallel), 1, parallel_max));
  r.bytes_per_second_max = header.integer("bytes_per_second_max");
  out.url = header.text("url");
  out.expires_in_ms = header.integer("expires_in_ms");
  const Value::Array* headers = header["headers"].as_array();
  for (std::size_t i = 0; headers && i < headers->size(); ++i) {
    const Value::Array* pair = (*headers)[i].as_array();
    const std::string* name = pair && pair->size() == 2 ? (*pair)[0].as_string() : nullptr;
    const std::string* value = name ? (*pair)[1].as_string() : nullptr;
    if (value) out.headers.emplace_back(*name, *value);
  }
  const auto plain = [](const std::string& s) {
    return std::all_of(s.begin(), s.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
  };
  const bool fits = !r.key.empty() && r.key.size() <= 1024 && r.version.size() <= 1024 && plain(r.version) &&
                    r.size_bytes >= -1 && r.size_bytes <= file_bytes_max && r.part_bytes > 0 &&
                    r.part_bytes <= file_bytes_max && r.bytes_per_second_max >= 0 && out.expires_in_ms >= 0 &&
                    (r.sha256.empty() || is_sha256_hex(r.sha256)) && !out.url.empty();
  if (!fits)
    return make_error(
        ErrorKind::invalid,
        fmt::format("pull '{}': a key, an address, a size, a part size and a version in range are required",
                    r.path.substr(0, 200)),
        "use the same version of rille here and on the instance");
  return out;
}

}  // namespace rille::agent
