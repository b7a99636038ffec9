#include "runtime/workflow/provider/aws/common.hpp"

#include <algorithm>
#include <utility>

#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/rent_options.hpp"

namespace rille::provider::aws {

namespace {

bool is_there(const Instance& i) { return i.state != "terminated"; }

}  // namespace

Async<Common::SharedIds> Common::ready(CreateRequest request, bool efa, CancelToken token) {
  SharedIds out;
  const std::string cluster = cluster_in(request);
  out.group = settings_.security_group;
  if (out.group.empty()) {
    GroupWish wish;
    wish.name = cluster.empty() ? request.tag : cluster;
    wish.tag = request.tag;
    wish.cluster = cluster;
    wish.vpc = settings_.vpc;
    wish.ssh_from = settings_.ssh_from;
    wish.efa = efa;
    wish.inner = efa || !cluster.empty();
    RILLE_CO_TRY(out.group, co_await group(std::move(wish), token));
  }
  if (!efa || cluster.empty()) co_return out;
  out.placement = cluster;
  if (placements_.contains(out.placement)) co_return out;
  RILLE_CO_CHECK(co_await ec2_.placement_group(out.placement, request.tag, token));
  placements_.insert(out.placement);
  co_return out;
}

// If several machines of one cluster are created at once, the first call makes the group and the others wait for it.
Async<std::string> Common::group(GroupWish wish, CancelToken token) {
  if (wish.cluster.empty()) co_return co_await ec2_.security_group(std::move(wish), std::move(token));
  const std::pair key(wish.cluster, wish.efa);
  while (true) {
    if (const auto known = groups_.find(key); known != groups_.end()) co_return known->second;
    const auto others = making_.find(wish.cluster);
    if (others == making_.end()) break;
    const Future<bool> over(loop_);
    others->second.push_back(over);
    const auto registration = token.on_cancel([over](const Error&) { over.set(true); });
    co_await over;
    if (token.cancelled()) co_return token.reason();
  }
  struct Turn {
    Common& of;
    std::string cluster;
    ~Turn() {  // wakes the waiting callers, even if this coroutine is destroyed while suspended
      auto waiting = of.making_.extract(cluster);
      for (const Future<bool>& one : waiting.mapped()) one.set(true);
    }
  } turn{*this, wish.cluster};
  making_[wish.cluster];
  const Result<std::string> made = co_await ec2_.security_group(std::move(wish), std::move(token));
  if (made) groups_[key] = *made;
  co_return made;
}

bool Common::have_gone(const Error& refusal, const CreateRequest& request) {
  const std::string cluster = cluster_in(request);
  const bool group = refusal.code == "InvalidGroup.NotFound" && settings_.security_group.empty();
  const bool placement = refusal.code == "InvalidPlacementGroup.Unknown";
  if (group) std::erase_if(groups_, [&](const auto& known) { return known.first.first == cluster; });
  if (placement) placements_.erase(cluster);
  return group || placement;
}

void Common::forget(const std::string& group) {
  std::erase_if(groups_, [&](const auto& known) { return known.second == group; });
}

Async<> Common::take_back(CreateRequest request, SharedIds place, CancelToken token) {
  const std::string cluster = cluster_in(request);
  if (!cluster.empty() && orders_.at(cluster) > 1) co_return success();
  // Safe if a machine exists: EC2 refuses to delete a group with a member.
  if (settings_.security_group.empty()) (void)co_await remove(place.group, token);
  if (place.placement.empty()) co_return success();
  const Result<> removed = co_await ec2_.delete_placement_group(place.placement, token);
  if (removed) placements_.erase(place.placement);
  co_return success();
}

Async<std::vector<Machine>> Common::left_over(std::vector<Instance> all, std::string asked_tag, CancelToken token) {
  RILLE_CO_TRY(std::vector<Owned> owned, co_await ec2_.groups(token));
  // Saves a call at each release: a machine that is in no cluster has no placement group.
  const auto own = std::find_if(all.begin(), all.end(), [&](const Instance& i) { return i.tag == asked_tag; });
  if (own == all.end() || !own->cluster.empty()) {
    RILLE_CO_TRY(const std::vector<Owned> placements, co_await ec2_.placement_groups(token));
    owned.insert(owned.end(), placements.begin(), placements.end());
  }
  std::vector<Machine> out;
  for (const Owned& one : owned) {
    const auto has_it = [&one](const Instance& i) {
      return one.cluster.empty() ? i.tag == one.tag : i.cluster == one.cluster;
    };
    if (std::any_of(all.begin(), all.end(), [&](const Instance& i) { return is_there(i) && has_it(i); })) continue;
    if (!one.cluster.empty() && orders_.contains(one.cluster)) continue;
    const bool was_its = !one.cluster.empty() && std::any_of(all.begin(), all.end(), [&](const Instance& i) {
      return has_it(i) && i.tag == asked_tag;
    });
    out.push_back(free_left_over(one.id, was_its ? asked_tag : one.tag));
  }
  co_return out;
}

Async<Machine> Common::describe(std::string id, CancelToken token) {
  Machine gone;
  std::vector<Owned> owned;
  if (id.starts_with("pg-")) {
    RILLE_CO_TRY(owned, co_await ec2_.placement_groups(token));
  } else {
    RILLE_CO_TRY(owned, co_await ec2_.groups(token));
  }
  for (const Owned& one : owned)
    if (one.id == id) co_return free_left_over(one.id, one.tag);
  co_return gone;
}

Async<> Common::remove(std::string id, CancelToken token) {
  if (!id.starts_with("pg-")) {
    const Result<> removed = co_await ec2_.delete_group(id, token);
    if (removed) forget(id);
    co_return removed;
  }
  RILLE_CO_TRY(const std::vector<Owned> there, co_await ec2_.placement_groups(token));
  for (const Owned& one : there) {
    if (one.id != id) continue;
    RILLE_CO_CHECK(co_await ec2_.delete_placement_group(one.name, token));
    placements_.erase(one.name);
  }
  co_return success();
}

}  // namespace rille::provider::aws
