// Volumes of a cloud that attaches them to machines which run already. A machine's tags name the volumes that it shall
// have, so whoever looks at the machine can attach what is missing, and no process has to remember it. Loop thread
// only.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider::cloud {

inline constexpr const char* mount_key = "rille-volume-";  // "rille-volume-1", ..: ids of volumes, by spaces

// The tags that name the machine's volumes, with at most `ids_per_tag` ids in one, as a tag's value is limited.
std::vector<std::pair<std::string, std::string>> mount_tags(const CreateRequest& request, std::size_t ids_per_tag);
// Adds the ids in a tag of mount_tags(); any other tag is ignored.
void read_mount_tag(const std::string& key, const std::string& value, std::vector<std::string>& ids);

// A disk that the machine has, or gets at the moment (`ready` is false).
struct Attached {
  std::string id;
  bool ready = true;
};
// The error for an unknown volume has http_status 404.
using Attach = std::function<Async<>(std::string id, CancelToken token)>;

// Attaches the volumes of `wanted` that are not in `there`; until all are ready, `machine` is pending, and its details
// say that it costs already (lifetime.hpp) and what is wrong (`problem`; `hopeless`: there is no such volume). Fails if
// a call is not permitted.
Async<> attach_missing(std::vector<std::string> wanted, std::vector<Attached> there, Machine& machine, Attach attach,
                       CancelToken token);

}  // namespace rille::provider::cloud
