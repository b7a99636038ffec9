// Fanout: which machines of a run pass which objects on to each other, so that the server sends each part once. It
// chooses whom a machine asks, tells all what the digests of the parts are, and notices when two machines say different
// things. docs/design/agent.md ("Passing on") has the rules. Private to runtime/workflow/engine; loop thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/loop/lifetime.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/agent/share.hpp"

namespace rille::engine {

class Fanout {
 public:
  static constexpr std::size_t objects_max = 4'096;  // remembered; those that were used last
  static constexpr std::int64_t patience_ms = 15'000;
  using Warn = std::function<void(const std::string& message)>;
  Fanout(Loop& loop, Warn warn) : loop_(loop), warn_(std::move(warn)) {}
  ~Fanout() { closed_.cancel(make_error(ErrorKind::cancelled, "the run has ended")); }

  struct Wanted {  // one object, on one machine
    Wanted() = default;
    std::string group;                        // only machines of one group are told of each other
    std::string lease, name;                  // name: for messages
    std::weak_ptr<agent::AgentClient> agent;  // of the machine
    std::string source, shown;                // source: names the object's address; shown: for messages
    std::string version, sha256;              // "": not known
    std::int64_t size_bytes = -1, part_bytes = 0;
  };
  // What to tell the agent before it fetches the object; empty: it fetches alone. again: the same pull has joined
  // before, and its address is signed again.
  Async<std::optional<agent::PullShare>> join(Wanted wanted, bool again, CancelToken token);
  // After a pull that joined. integrity: the machine has other bytes than another one.
  Result<> leave(const Wanted& wanted, const Result<agent::Pulled>& pulled);

 private:
  struct Machine {  // of a lease, as long as its channel stands
    std::weak_ptr<agent::AgentClient> agent;
    std::optional<std::vector<std::string>> addresses;  // empty: not told yet
    std::vector<Future<bool>> waiting;
  };
  struct Member {
    std::string lease, name;
    std::weak_ptr<agent::AgentClient> agent;
    int running = 0;  // pulls
    std::string sha256;
  };
  struct Object {
    std::string id, key, shown;
    std::vector<Member> members;  // in the order in which they joined
    agent::PartDigests digests;
    std::int64_t size_bytes = -1, part_bytes = 0;
    std::string version;
    bool disputed = false;
    std::vector<Future<bool>> waiting;  // for size and version
    std::uint64_t used = 0;
    bool running() const;
  };
  using ObjectPtr = std::shared_ptr<Object>;

  static std::string name_of(const Wanted& wanted);
  Async<bool> listens(Wanted wanted, CancelToken token);
  static Task<void> listen(Async<> lasts, std::function<void()> over);
  agent::ShareHandlers handlers_for(const std::string& lease);
  ObjectPtr object_for(const Wanted& wanted);
  Async<bool> known(ObjectPtr object, CancelToken token);
  bool alive(const Member& member) const;
  agent::PullShare share_for(Object& object, const Wanted& wanted, bool again);
  ObjectPtr shared_with(const std::string& lease, const std::string& share) const;
  void heard_digest(const std::string& lease, const std::string& share, std::int64_t part, const std::string& sha256);
  void heard_object(Object& object, std::int64_t size_bytes, const std::string& version);
  void dispute(Object& object, const std::string& why);
  void make_room();

  Loop& loop_;
  Warn warn_;
  std::map<std::string, Machine> machines_;   // by lease
  std::map<std::string, ObjectPtr> objects_;  // by name_of
  std::map<std::string, std::weak_ptr<Object>> by_id_;
  std::uint64_t uses_ = 0;
  CancelSource closed_;
  Lifetime life_;  // last: ends before all other members
};

}  // namespace rille::engine
