#include "runtime/workflow/engine/fanout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/id.hpp"

namespace rille::engine {

namespace {

constexpr std::size_t share_id_bytes = 16, share_key_bytes = 32;

std::string bytes_of_hex(const std::string& hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  return out;
}

bool same(const std::weak_ptr<agent::AgentClient>& a, const std::weak_ptr<agent::AgentClient>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

bool Fanout::Object::running() const {
  return std::any_of(members.begin(), members.end(), [](const Member& m) { return m.running > 0; });
}

std::string Fanout::name_of(const Wanted& w) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", w.group, w.source, w.version, w.sha256, w.part_bytes);
}

bool Fanout::alive(const Member& member) const {
  const auto agent = member.agent.lock();
  const auto machine = machines_.find(member.lease);
  return agent && !agent->broken() && machine != machines_.end() && same(machine->second.agent, member.agent) &&
         machine->second.addresses && !machine->second.addresses->empty();
}

agent::ShareHandlers Fanout::handlers_for(const std::string& lease) {
  agent::ShareHandlers out;
  out.listening = life_.guard([this, lease](std::vector<std::string> addresses) {
    Machine& machine = machines_[lease];
    machine.addresses = std::move(addresses);
    for (const auto& waiter : std::exchange(machine.waiting, {})) waiter.set(true);
  });
  out.digest = life_.guard([this, lease](const std::string& share, std::int64_t part, const std::string& sha256) {
    heard_digest(lease, share, part, sha256);
  });
  out.object = life_.guard([this, lease](const std::string& share, std::int64_t size, const std::string& version) {
    if (const ObjectPtr object = shared_with(lease, share)) heard_object(*object, size, version);
  });
  return out;
}

// Until the channel ends; at once, if the agent does not know how.
Task<void> Fanout::listen(Async<> lasts, std::function<void()> over) {
  (void)co_await std::move(lasts);
  over();
}

// Whether the machine passes objects on: its agent knows how, and has an address for it.
Async<bool> Fanout::listens(Wanted wanted, CancelToken token) {
  const auto life = life_.watch();
  const std::shared_ptr<agent::AgentClient> agent = wanted.agent.lock();
  if (!agent || agent->broken()) co_return false;
  Machine& machine = machines_[wanted.lease];
  if (!same(machine.agent, wanted.agent)) {
    for (const auto& waiter : std::exchange(machine.waiting, {})) waiter.set(false);
    machine.agent = wanted.agent;
    machine.addresses.reset();
    std::function<void()> over = life_.guard([this, wanted] {
      Machine& mine = machines_[wanted.lease];
      if (!same(mine.agent, wanted.agent)) return;
      mine.addresses.emplace();
      for (const auto& waiter : std::exchange(mine.waiting, {})) waiter.set(false);
    });
    loop_.spawn(listen(agent->listen(handlers_for(wanted.lease), closed_.token()), std::move(over)));
  }
  if (!machine.addresses) {
    const Future<bool> told(loop_);
    machine.waiting.push_back(told);
    const Timer timer(loop_, patience_ms, [told] { told.set(false); });
    const auto registration = token.on_cancel([told](const Error&) { told.set(false); });
    const bool came = co_await told;
    if (life.ended() || !came) co_return false;
  }
  const auto now = machines_.find(wanted.lease);
  co_return now != machines_.end() && same(now->second.agent, wanted.agent) && now->second.addresses &&
      !now->second.addresses->empty();
}

// What an address has may change, unless its version or digest is known: it is then one object only while it is
// fetched.
Fanout::ObjectPtr Fanout::object_for(const Wanted& wanted) {
  ObjectPtr& object = objects_[name_of(wanted)];
  const bool lasts = !wanted.version.empty() || !wanted.sha256.empty();
  if (!object || (!lasts && !object->running())) {
    object = std::make_shared<Object>();
    object->id = random_hex(share_id_bytes), object->key = random_hex(share_key_bytes);
    object->shown = wanted.shown, object->part_bytes = wanted.part_bytes;
    object->size_bytes = wanted.size_bytes, object->version = wanted.version;
    by_id_[object->id] = object;
  }
  object->used = ++uses_;
  const ObjectPtr out = object;
  make_room();
  return out;
}

void Fanout::make_room() {
  while (objects_.size() > objects_max) {
    auto oldest = objects_.end();
    for (auto it = objects_.begin(); it != objects_.end(); ++it)
      if (!it->second->running() && (oldest == objects_.end() || it->second->used < oldest->second->used)) oldest = it;
    if (oldest == objects_.end()) return;
    by_id_.erase(oldest->second->id);
    objects_.erase(oldest);
  }
}

// Whether size and version are known, which another machine may hear of in a moment.
Async<bool> Fanout::known(ObjectPtr object, CancelToken token) {
  const auto is_known = [&object] { return object->size_bytes > 0 && !object->version.empty(); };
  if (!is_known() && object->running()) {
    const Future<bool> told(loop_);
    object->waiting.push_back(told);
    const Timer timer(loop_, patience_ms, [told] { told.set(false); });
    const auto registration = token.on_cancel([told](const Error&) { told.set(false); });
    (void)co_await told;
  }
  co_return is_known();
}

Async<std::optional<agent::PullShare>> Fanout::join(Wanted wanted, bool again, CancelToken token) {
  const auto life = life_.watch();
  const std::optional<agent::PullShare> alone;
  if (wanted.size_bytes == 0) co_return alone;
  RILLE_CO_TRY(const bool can, co_await listens(wanted, token));
  if (life.ended() || !can) co_return alone;
  const ObjectPtr object = object_for(wanted);
  const bool first = std::none_of(object->members.begin(), object->members.end(),
                                  [&](const Member& m) { return m.lease != wanted.lease && alive(m); });
  if (!first) {
    RILLE_CO_TRY(const bool is_known, co_await known(object, token));
    if (life.ended() || !is_known) co_return alone;
  }
  const auto parts = object->size_bytes < 0 ? 0 : (object->size_bytes - 1) / object->part_bytes + 1;
  if (object->disputed || parts > static_cast<std::int64_t>(agent::share_parts_max)) co_return alone;
  co_return share_for(*object, wanted, again);
}

// The members form a tree: of those that are alive, the one at place n asks the one at (n - 1) / 2, then that one's
// parent, up to the first; and last the second, which asks the server if the first is gone. So no two ask each other,
// and each is asked by two at most while all is well.
agent::PullShare Fanout::share_for(Object& object, const Wanted& wanted, bool again) {
  std::erase_if(object.members,
                [&](const Member& m) { return m.lease == wanted.lease && !same(m.agent, wanted.agent); });
  std::vector<const Member*> before;
  auto mine = object.members.begin();
  for (; mine != object.members.end() && mine->lease != wanted.lease; ++mine)
    if (alive(*mine)) before.push_back(&*mine);
  agent::PullShare out;
  out.id = object.id, out.key = object.key, out.digests = agent::encode_digests(object.digests);
  const auto ask = [&](std::size_t at) { out.machines.push_back(*machines_.at(before[at]->lease).addresses); };
  bool second = false;
  for (std::size_t at = before.size(); at > 0;) {
    at = (at - 1) / 2;
    second |= at == 1;
    ask(at);
  }
  if (!second && before.size() > 1) ask(1);
  if (!before.empty()) out.size_bytes = object.size_bytes, out.version = object.version;
  const bool joins = mine == object.members.end();
  if (joins) mine = object.members.insert(mine, Member{wanted.lease, wanted.name, wanted.agent, 0, ""});
  if (joins || !again) ++mine->running;
  return out;
}

Result<> Fanout::leave(const Wanted& wanted, const Result<agent::Pulled>& pulled) {
  const auto found = objects_.find(name_of(wanted));
  if (found == objects_.end()) return success();
  Object& object = *found->second;
  const auto mine = std::find_if(object.members.begin(), object.members.end(),
                                 [&](const Member& m) { return m.lease == wanted.lease; });
  if (mine == object.members.end() || mine->running == 0) return success();
  --mine->running;
  for (const auto& waiter : std::exchange(object.waiting, {})) waiter.set(true);
  if (!pulled) {
    if (mine->running == 0) object.members.erase(mine);
    return success();
  }
  if (object.size_bytes < 0 || object.version.empty()) heard_object(object, pulled->size_bytes, pulled->version);
  if (!pulled->liars.empty())
    warn_(fmt::format("'{}' was given bytes by another machine that are not those of {}, and has fetched them again",
                      wanted.name, object.shown));
  mine->sha256 = pulled->sha256;
  for (const Member& other : object.members) {
    if (other.sha256.empty() || other.sha256 == mine->sha256) continue;
    const std::string why =
        fmt::format("'{}' and '{}' have different bytes of {}", other.name, mine->name, object.shown);
    dispute(object, why);
    return make_error(ErrorKind::integrity, why,
                      "one of the two machines is damaged or hostile: release both, and stage it on new ones");
  }
  return success();
}

Fanout::ObjectPtr Fanout::shared_with(const std::string& lease, const std::string& share) const {
  const auto found = by_id_.find(share);
  ObjectPtr object = found == by_id_.end() ? nullptr : found->second.lock();
  const bool member = object && std::any_of(object->members.begin(), object->members.end(),
                                            [&](const Member& m) { return m.lease == lease; });
  return member ? object : nullptr;
}

// The first machine that is asked for a part tells its digest; the others are told of it.
void Fanout::heard_digest(const std::string& lease, const std::string& share, std::int64_t part,
                          const std::string& sha256) {
  const ObjectPtr object = shared_with(lease, share);
  if (!object || object->disputed || object->size_bytes <= part * object->part_bytes) return;
  const auto [known, is_new] = object->digests.emplace(static_cast<std::size_t>(part), bytes_of_hex(sha256));
  if (!is_new) {
    if (known->second != bytes_of_hex(sha256))
      dispute(*object, fmt::format("two machines have different bytes of {}", object->shown));
    return;
  }
  const std::string told = agent::encode_digests({*known});
  for (const Member& member : object->members)
    if (const auto agent = member.agent.lock(); agent && member.running > 0 && member.lease != lease)
      agent->tell_digests(object->id, told, false);
}

void Fanout::heard_object(Object& object, std::int64_t size_bytes, const std::string& version) {
  if (object.size_bytes < 0) object.size_bytes = size_bytes;
  if (object.version.empty() && version.starts_with('"')) object.version = version;
  for (const auto& waiter : std::exchange(object.waiting, {})) waiter.set(true);
}

void Fanout::dispute(Object& object, const std::string& why) {
  if (std::exchange(object.disputed, true)) return;
  for (const Member& member : object.members)
    if (const auto agent = member.agent.lock(); agent && member.running > 0) agent->tell_digests(object.id, "", true);
  warn_(why +
        ": one of them is damaged or hostile. What others have of it is fetched again from its server; where it "
        "was staged before, it may be false");
}

}  // namespace rille::engine
