#include "runtime/workflow/provider/cloud/attaching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "runtime/workflow/provider/lifetime.hpp"

namespace rille::provider::cloud {

std::vector<std::pair<std::string, std::string>> mount_tags(const CreateRequest& request, std::size_t ids_per_tag) {
  std::vector<std::pair<std::string, std::string>> out;
  const std::vector<Mount> mounts = mounts_in(request);
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    if (i % ids_per_tag == 0) out.emplace_back(fmt::format("{}{}", mount_key, i / ids_per_tag + 1), "");
    std::string& ids = out.back().second;
    ids += (ids.empty() ? "" : " ") + mounts[i].own_id();
  }
  return out;
}

void read_mount_tag(const std::string& key, const std::string& value, std::vector<std::string>& ids) {
  if (!key.starts_with(mount_key)) return;
  std::string id;
  for (std::istringstream all(value); all >> id;) ids.push_back(id);
}

Async<> attach_missing(std::vector<std::string> wanted, std::vector<Attached> there, Machine& machine, Attach attach,
                       CancelToken token) {
  for (const std::string& id : wanted) {
    const auto known = std::find_if(there.begin(), there.end(), [&id](const Attached& a) { return a.id == id; });
    if (known != there.end() && known->ready) continue;
    if (machine.state == MachineState::live) mark_costs(machine);
    machine.state = MachineState::pending;
    if (known != there.end()) continue;
    const Result<> attached = co_await attach(id, token);
    if (attached) continue;
    const Error& why = attached.error();
    if (token.cancelled() || why.kind == ErrorKind::auth) co_return why;
    machine.details.set("problem", fmt::format("its volume {} is not attached: {}", id, why.message));
    if (why.http_status == 404) machine.details.set("hopeless", true);
  }
  co_return success();
}

}  // namespace rille::provider::cloud
