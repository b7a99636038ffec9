// PullFetch: the network side of a pull. It fetches the missing parts of an object into a PullPart, by several ranged
// GETs at once. If the first answer is the whole object (200), or has no validator for parts, the object is read in one
// stream and no other GET is sent. If the pull has a share, each part is first asked for from other machines of the
// run; if none gives it, it comes from the server. Finished parts are kept, unless the object has changed. Loop thread
// only. Errors: integrity: the object changed meanwhile; auth, code address_expired: the address is refused or about to
// expire; network, code cannot_reach: no answer at all; quota, code disk_full; invalid: there is no such object; the
// errors of net/http.hpp and PullPart.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/deadline.hpp"
#include "runtime/core/net/http.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/agent/peer_fetch.hpp"
#include "runtime/workflow/agent/pull_part.hpp"

namespace rille::agent {

struct PullOrder {
  PullRequest request;
  std::string url;  // secret
  net::Headers headers;
  std::int64_t expires_in_ms = 0;            // 0: does not expire. Relative, since the clocks of two machines differ
  std::shared_ptr<Share> share;              // null: it is not passed on
  std::vector<PeerFetch::Machine> machines;  // that may have parts of the share
};

// How fast bytes may come: bytes_per_second_max over all parts of a pull.
class PullPace {
 public:
  explicit PullPace(std::int64_t bytes_per_second_max) : rate_(bytes_per_second_max) {}
  std::int64_t wait_ms(std::int64_t now_ns) const;  // until more bytes may come
  void take(std::int64_t bytes, std::int64_t now_ns);

 private:
  std::int64_t rate_, free_at_ns_ = 0;
};

// Limits how many GETs of one agent, or pulls of one channel, run at the same time. The first to wait is the next.
class PullSlots {
 public:
  class Held {
   public:
    explicit Held(PullSlots& slots) : slots_(&slots) {}
    Held(Held&& o) noexcept : slots_(std::exchange(o.slots_, nullptr)) {}
    ~Held() {
      if (slots_) slots_->give();
    }

   private:
    PullSlots* slots_;
  };
  PullSlots(Loop& loop, int count) : loop_(loop), free_(count) {}
  static Async<Held> take(PullSlots& self, CancelToken token);

 private:
  void give();
  Loop& loop_;
  int free_;
  std::deque<Future<Result<>>> waiting_;
};

class PullFetch : public std::enable_shared_from_this<PullFetch> {
 public:
  struct Site {  // outlives the fetch
    net::HttpClient& http;
    PullSlots& slots;
    net::Retry retry;
    std::shared_ptr<PeersShunned> shunned;
    PeerLimits limits;
  };
  // `have`: the validator of a copy that the caller has; the server is then asked only for another version.
  PullFetch(Site site, PullOrder order, std::shared_ptr<PullPart> part, std::string have, TransferProgress progress);
  static Async<> run(std::shared_ptr<PullFetch> self, CancelToken token);

  // What was left of an earlier pull, or came from other machines, does not fit and is gone: a new fetch can begin.
  bool outdated() const { return useless_ && (disputed_ || ((resumed_ || joined_) && moved_bytes_ == 0)); }
  bool not_modified() const { return not_modified_; }
  std::int64_t moved_bytes() const { return moved_bytes_; }
  std::int64_t shared_bytes() const { return shared_bytes_; }  // that other machines gave
  std::vector<int> liars() const { return peers_ ? peers_->liars() : std::vector<int>(); }
  std::string version() const { return object_.version.empty() ? object_.validator : object_.version; }

 private:
  using Self = std::shared_ptr<PullFetch>;
  struct Piece {  // one part, or the whole object in one stream
    std::size_t index = 0;
    std::int64_t begin = 0, end = -1, got_bytes = 0;  // end -1: unknown
    bool ranged = true, again = false;                // again: fetch once more, in one stream
    int restarts = 0;
    bool complete() const { return begin + got_bytes == end; }
  };

  std::string shown_url() const { return net::shown_address(order_.url); }
  static Async<> work(Self self, CancelToken token);
  static Async<> enter(Self self);
  bool join();
  void tell_share();
  static Async<bool> from_machines(Self self, Piece& piece, CancelToken token);
  static Async<> from_anywhere(Self self, Piece& piece, CancelToken token);
  static Async<> fetch(Self self, Piece& piece, CancelToken token);
  static Async<> note_done(Self self, std::size_t part);
  Piece next_piece();
  void open_gate();
  void fail(const Error& why);
  net::HttpRequest request(Piece& piece);
  Result<> head(Piece& piece, const net::HttpResponse& answer);
  Result<> head_of_part(Piece& piece, const net::HttpResponse& answer);
  Result<> head_of_whole(Piece& piece, const net::HttpResponse& answer);
  Result<> learn(const net::HttpResponse& answer, std::int64_t total);
  Result<> take(Piece& piece, std::string_view bytes);
  Result<> keep(Piece& piece, std::string_view bytes);
  void start_again(Piece& piece);
  Error changed();
  Error expired() const;
  Error refusal(const net::HttpRequest& request, const net::HttpResponse& answer);
  Error explained(Error error) const;
  bool pins_validator() const { return object_.validator.starts_with('"'); }

  Site site_;
  Loop& loop_;
  PullOrder order_;
  std::shared_ptr<PullPart> part_;
  std::string have_;
  TransferProgress progress_;
  PullPace pace_;
  PullObject object_;
  std::optional<Deadline> expires_;
  std::int64_t margin_ms_ = 0;

  std::deque<std::size_t> missing_;
  std::vector<std::size_t> unsynced_;
  bool begun_ = false;  // the object's size and validator are known, and the part file is there
  bool entered_ = false, gate_open_ = false, heard_ = false, not_modified_ = false, syncing_ = false;
  bool resumed_ = false, disputed_ = false;
  bool joined_ = false;   // it began with what the runner knows of the object, without asking the server
  bool useless_ = false;  // the part file is of another version: discarded when no worker uses it any more
  std::vector<Future<bool>> at_gate_;
  std::optional<Error> failed_;
  CancelSource stop_;
  std::int64_t done_bytes_ = 0, moved_bytes_ = 0, shared_bytes_ = 0, synced_ns_ = 0;
  std::shared_ptr<PeerFetch> peers_;  // null: nothing comes from other machines
};

}  // namespace rille::agent
