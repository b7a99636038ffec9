// Puller: the agent's side of `pull`. Looks in this order: the file is there, unchanged since a pull of this version; a
// copy is in the cache; else PullFetch fetches it. The result is checked against the expected SHA-256, synced, renamed,
// and noted in D/pulls, so that the next pull of it moves nothing.
// The cache is beside D and shared by all agents of this user on the machine (mode 0700, of this user), at most a
// quarter of the disk's free bytes; if it cannot be made there, it is in D. A lock per source lets one pull fetch while
// others of the same source wait, in this agent and in others; then they copy. What a file system can clone is not
// copied; a small file is; otherwise the cache is filled after the pull has ended, as long as the lock is held.
// What came from other machines and is not what was asked for, or is disputed, is fetched again from the server alone.
// Loop thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/http.hpp"
#include "runtime/core/store/stage_cache.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/agent/pull_fetch.hpp"
#include "runtime/workflow/agent/pull_placing.hpp"

namespace rille::agent {

// Of one channel at the same time; the runner holds others back. More than there are GETs at the same time, so that
// the agent always has the next file, however far away the runner is.
inline constexpr std::size_t pulls_max = 256;

// The request as the agent gets it. invalid: a value is missing or out of range. share: as the header has it; the
// session makes the Share of it.
Result<PullOrder> pull_order_from(const Value& header);
Result<std::optional<PullShare>> pull_share_from(const Value& header, const std::string& body);
Value pull_header(const PullRequest& request, const PullAddress& address, std::int64_t now_wall_us);

class Puller : public std::enable_shared_from_this<Puller> {
 public:
  static constexpr int gets_max = 64;  // at the same time

  // `directory`: D. `retry`: how often a GET without an answer is tried.
  Puller(Loop& loop, std::string directory, net::Retry retry, PeerLimits limits = {});
  static Async<Pulled> pull(std::shared_ptr<Puller> self, PullOrder order, TransferProgress progress,
                            CancelToken token);
  // Ends what still fills the cache, and waits for it.
  static Task<void> close(std::shared_ptr<Puller> self);

 private:
  struct Target;
  struct KeyLock;
  struct Obtained {
    Obtained() = default;
    Obtained(Pulled p, bool there) : pulled(std::move(p)), in_place(there) {}
    Pulled pulled;
    bool in_place = false;  // the file is there, unchanged; else the part file is complete
  };
  using Self = std::shared_ptr<Puller>;
  using TargetPtr = std::shared_ptr<Target>;

  Result<TargetPtr> target_of(const PullOrder& order) const;
  store::StageCache cache() const;
  net::HttpClient& http();
  static Async<std::shared_ptr<KeyLock>> lock(Self self, std::string key, CancelToken token);
  static Async<bool> copy_from_cache(Self self, TargetPtr target, std::string sha256, CancelToken token);
  static Async<std::shared_ptr<PullFetch>> fetch(Self self, TargetPtr target, PullOrder order, std::string have,
                                                 TransferProgress progress, CancelToken token);
  static Async<Obtained> obtain(Self self, TargetPtr target, PullOrder order, TransferProgress progress,
                                CancelToken token);
  static Async<Pulled> bring(Self self, TargetPtr target, PullOrder order, TransferProgress progress,
                             CancelToken token);
  static Async<> check(Self self, TargetPtr target, const PullOrder& order, Pulled& pulled, CancelToken token);
  static Task<void> fill_cache(Self self, TargetPtr target, Pulled pulled, std::shared_ptr<Share> share,
                               std::shared_ptr<KeyLock> lock);

  Loop& loop_;
  std::string work_, notes_, cache_directory_;
  net::Retry retry_;
  std::optional<net::HttpClient> http_;  // made when it is first needed: loading libcurl takes time
  PullSlots slots_;
  PeerLimits limits_;
  store::StageCache cache_;
  std::shared_ptr<PullPlacing> placing_;
  std::shared_ptr<PeersShunned> shunned_ = std::make_shared<PeersShunned>();
  CancelSource closing_;
  int filling_ = 0;
  std::optional<Future<bool>> filled_;
};

}  // namespace rille::agent
