#include "runtime/workflow/agent/pull_fetch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/text.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/core/net/content.hpp"

namespace rille::agent {

namespace {
constexpr std::int64_t sync_every_ns = 5'000'000'000, burst_ns = 100'000'000;
constexpr std::int64_t expiry_margin_ms = 2'000;
constexpr int restarts_max = 8;  // of a stream that was cut

}  // namespace

std::int64_t PullPace::wait_ms(std::int64_t now_ns) const {
  return rate_ <= 0 || free_at_ns_ <= now_ns ? 0 : (free_at_ns_ - now_ns + 999'999) / 1'000'000;
}

void PullPace::take(std::int64_t bytes, std::int64_t now_ns) {
  if (rate_ <= 0) return;
  const double takes_ns = static_cast<double>(bytes) / static_cast<double>(rate_) * 1e9;
  free_at_ns_ = std::max(free_at_ns_, now_ns - burst_ns) + static_cast<std::int64_t>(takes_ns);
}

Async<PullSlots::Held> PullSlots::take(PullSlots& self, CancelToken token) {
  if (self.free_ > 0) {
    --self.free_;
    co_return Held(self);
  }
  Future<Result<>> turn(self.loop_);
  self.waiting_.push_back(turn);
  auto registration = token.on_cancel([turn](const Error& why) { turn.set(why); });
  RILLE_CO_CHECK(co_await turn);
  co_return Held(self);
}

void PullSlots::give() {
  while (!waiting_.empty()) {
    const Future<Result<>> next = std::move(waiting_.front());
    waiting_.pop_front();
    if (next.is_set()) continue;  // cancelled
    next.set(success());
    return;
  }
  ++free_;
}

PullFetch::PullFetch(Site site, PullOrder order, std::shared_ptr<PullPart> part, std::string have,
                     TransferProgress progress)
    : site_(site), loop_(site.http.loop()), order_(std::move(order)), part_(std::move(part)), have_(std::move(have)),
      progress_(std::move(progress)), pace_(order_.request.bytes_per_second_max) {
  const PullRequest& wanted = order_.request;
  object_ = PullObject{wanted.key, wanted.version, "", wanted.size_bytes, wanted.part_bytes};
  if (order_.expires_in_ms > 0) {
    expires_.emplace(loop_.clock(), loop_.clock().wall_us() + order_.expires_in_ms * 1000);
    margin_ms_ = std::min(expiry_margin_ms, order_.expires_in_ms / 4);
  }
  if (order_.share && !order_.machines.empty())
    peers_ = std::make_shared<PeerFetch>(loop_, order_.share, order_.machines, site_.shunned, site_.limits);
}

// Begins without the server, if what the runner knows of the object is enough to ask other machines for it.
bool PullFetch::join() {
  if (!peers_ || object_.size_bytes <= 0 || object_.version.empty() || !part_->begin(object_)) return false;
  missing_.clear();
  for (std::size_t part = 0; part < object_.parts(); ++part) missing_.push_back(part);
  return true;
}

// What is here by now. Parts of another size are passed on when the object is whole.
void PullFetch::tell_share() {
  if (!order_.share) return;
  const bool in_parts = object_.part_bytes == order_.share->part_bytes();
  order_.share->begin(object_.size_bytes, part_->path(), resumed_);
  const std::vector<std::size_t> missing = part_->missing();
  for (std::size_t part = 0, at = 0; in_parts && part < object_.parts(); ++part) {
    if (at < missing.size() && missing[at] == part) ++at;
    else order_.share->have(part);
  }
  order_.share->got(done_bytes_);
}

Async<> PullFetch::run(Self self, CancelToken token) {
  self->synced_ns_ = self->loop_.clock().monotonic_ns();
  if (self->part_->resume(self->object_)) {
    self->begun_ = self->gate_open_ = self->resumed_ = true;
    self->have_.clear();
    const std::vector<std::size_t> missing = self->part_->missing();
    self->missing_.assign(missing.begin(), missing.end());
    std::int64_t missing_bytes = 0;
    for (std::size_t part : missing)
      missing_bytes += std::min(self->object_.part_bytes,
                                self->object_.size_bytes - static_cast<std::int64_t>(part) * self->object_.part_bytes);
    self->done_bytes_ = self->object_.size_bytes - missing_bytes;
    self->tell_share();
  } else {
    if (self->object_.size_bytes > 0) RILLE_CO_CHECK(self->part_->check_room(self->object_.size_bytes));
    self->missing_ = {0};
    if (self->join()) {
      self->begun_ = self->gate_open_ = self->joined_ = true;
      self->have_.clear();
      self->tell_share();
    }
  }
  if (self->progress_) self->progress_(self->done_bytes_, self->object_.size_bytes);
  const bool one = self->object_.size_bytes >= 0 && self->object_.parts() == 1;
  const int count = one ? 1 : std::max(1, self->order_.request.parallel);
  const auto registration = token.on_cancel([self = self.get()](const Error& why) { self->fail(why); });
  std::vector<Together<void>> workers(static_cast<std::size_t>(count));
  for (auto& worker : workers) worker.start = [self](CancelToken stop) { return work(self, std::move(stop)); };
  (void)co_await together(self->loop_, std::move(workers), 0, self->stop_.token());
  if (self->useless_) self->part_->discard();
  if (self->failed_) co_return *self->failed_;
  co_return success();
}

// The first worker passes; the others wait until the first answer's head has told what to fetch.
Async<> PullFetch::enter(Self self) {
  if (std::exchange(self->entered_, true) && !self->gate_open_) {
    Future<bool> open(self->loop_);
    self->at_gate_.push_back(open);
    co_await open;
  }
  co_return success();
}

void PullFetch::open_gate() {
  gate_open_ = true;
  for (const auto& waiter : std::exchange(at_gate_, {})) waiter.set(true);
}

void PullFetch::fail(const Error& why) {
  if (failed_) return;
  failed_ = why;
  missing_.clear();
  open_gate();
  stop_.cancel(why);
}

Async<> PullFetch::work(Self self, CancelToken token) {
  RILLE_CO_CHECK(co_await enter(self));
  while (!self->missing_.empty()) {
    Piece piece = self->next_piece();
    auto fetched = co_await from_anywhere(self, piece, token);
    if (fetched && !self->not_modified_ && piece.ranged && self->object_.parts() > 1)
      fetched = co_await note_done(self, piece.index);
    if (!fetched) {
      self->fail(fetched.error());
      co_return fetched;
    }
  }
  self->open_gate();
  co_return success();
}

Async<> PullFetch::from_anywhere(Self self, Piece& piece, CancelToken token) {
  RILLE_CO_TRY(const bool there, co_await from_machines(self, piece, token));
  if (self->peers_ && self->order_.share->has_taken() && self->order_.share->disputed()) {
    self->useless_ = self->disputed_ = true;
    co_return make_error(ErrorKind::integrity, fmt::format("machines disagree about '{}'", self->shown_url()));
  }
  if (there) co_return success();
  co_return co_await fetch(self, piece, token);
}

// True: another machine gave the part, and it has the digest that the runner tells.
Async<bool> PullFetch::from_machines(Self self, Piece& piece, CancelToken token) {
  const PeerFetch::Sink sink = [self, &piece](std::string_view bytes) { return self->keep(piece, bytes); };
  const PeerFetch::Pace pace = [self] { return self->pace_.wait_ms(self->loop_.clock().monotonic_ns()); };
  while (self->peers_ && self->begun_ && self->peers_->any()) {
    const PeerRequest wanted{piece.begin, piece.end};
    RILLE_CO_TRY(const int machine, co_await PeerFetch::get(self->peers_, wanted, sink, pace, token));
    bool right = false;
    if (machine >= 0) {
      const std::function<Result<std::string>()> hash = [part = self->part_, wanted] {
        return part->digest(wanted.begin, wanted.end);
      };
      RILLE_CO_TRY(std::string digest, co_await thread_job(self->loop_, hash));
      RILLE_CO_TRY(right, co_await PeerFetch::check(self->peers_, machine, piece.index, std::move(digest), token));
    }
    if (right) {
      self->shared_bytes_ += piece.end - piece.begin;
      self->order_.share->took();
      co_return true;
    }
    self->start_again(piece);
  }
  co_return false;
}

PullFetch::Piece PullFetch::next_piece() {
  Piece piece;
  piece.index = missing_.front();
  missing_.pop_front();
  piece.begin = static_cast<std::int64_t>(piece.index) * object_.part_bytes;
  const std::int64_t size = object_.size_bytes;
  piece.end = size < 0 ? piece.begin + object_.part_bytes : std::min(size, piece.begin + object_.part_bytes);
  piece.ranged = size < 0 || size > object_.part_bytes;
  return piece;
}

Async<> PullFetch::note_done(Self self, std::size_t part) {
  self->part_->mark(part);
  self->unsynced_.push_back(part);
  if (self->order_.share && self->object_.part_bytes == self->order_.share->part_bytes())
    self->order_.share->have(part);
  const std::int64_t now_ns = self->loop_.clock().monotonic_ns();
  if (self->syncing_ || now_ns - self->synced_ns_ < sync_every_ns) co_return success();
  self->syncing_ = true;
  auto sync = [file = self->part_, marked = std::exchange(self->unsynced_, {})] { return file->sync(marked); };
  const Result<> synced = co_await thread_job(self->loop_, std::move(sync));
  self->syncing_ = false;
  self->synced_ns_ = self->loop_.clock().monotonic_ns();
  co_return synced;
}

Async<> PullFetch::fetch(Self self, Piece& piece, CancelToken token) {
  while (true) {
    if (token.cancelled()) co_return token.reason();
    if (self->expires_ && self->expires_->left_ms() <= self->margin_ms_) co_return self->expired();
    const std::int64_t moved_before = self->moved_bytes_;
    const net::HttpRequest request = self->request(piece);
    std::optional<Result<net::HttpResponse>> answer;
    {
      RILLE_CO_TRY(const PullSlots::Held slot, co_await PullSlots::take(self->site_.slots, token));
      answer.emplace(co_await self->site_.http.send(request, token));
    }
    if (token.cancelled()) co_return token.reason();
    self->heard_ |= answer->ok();
    const int status = *answer ? (*answer)->status : 0;
    if (std::exchange(piece.again, false) || (status == 416 && piece.ranged && !self->begun_)) {
      piece.ranged = false;
      self->start_again(piece);
      continue;
    }
    if (status == 304 && !self->have_.empty()) {
      self->not_modified_ = true;
      co_return success();
    }
    if (*answer && !(*answer)->ok()) co_return self->refusal(request, **answer);
    if (*answer && piece.end < 0) {
      self->object_.size_bytes = piece.got_bytes;
      co_return self->part_->end_at(piece.got_bytes);
    }
    if (*answer && piece.complete()) co_return success();
    Error error = *answer ? make_error(ErrorKind::network,
                                       fmt::format("'{}' ends after {} of {} bytes of a part", self->shown_url(),
                                                   piece.got_bytes, piece.end - piece.begin),
                                       "what is done is kept: stage it again to continue")
                                .with_retry()
                          : std::move(*answer).error();
    // Without a byte the client has tried again already, as often as `retry` says.
    const bool moved = self->moved_bytes_ > moved_before;
    if (!error.retryable || self->useless_ || !moved || (!piece.ranged && ++piece.restarts > restarts_max))
      co_return self->explained(std::move(error));
    if (!piece.ranged) self->start_again(piece);
    RILLE_CO_CHECK(co_await sleep_for(self->loop_, self->site_.retry.base_ms, token));
  }
}

net::HttpRequest PullFetch::request(Piece& piece) {
  net::HttpRequest out;
  out.url = order_.url;
  out.headers = order_.headers;
  out.path_as_is = true;
  out.response_bytes_max = 0;
  out.retry = site_.retry;
  const bool quoted = object_.version.starts_with('"');
  const bool given = std::any_of(out.headers.begin(), out.headers.end(),
                                 [](const auto& h) { return lower_case(h.first) == "if-match"; });
  if (!given && (quoted || pins_validator()))
    out.headers.emplace_back("If-Match", quoted ? object_.version : object_.validator);
  if (!begun_ && !have_.empty())
    out.headers.emplace_back(have_.find('"') != have_.npos ? "If-None-Match" : "If-Modified-Since", have_);
  if (piece.ranged)
    out.headers.emplace_back("Range", fmt::format("bytes={}-{}", piece.begin + piece.got_bytes, piece.end - 1));
  out.on_head = [this, &piece](const net::HttpResponse& answer) { return head(piece, answer); };
  out.sink = [this, &piece](std::string_view bytes) { return take(piece, bytes); };
  if (order_.request.bytes_per_second_max > 0)
    out.pace_ms = [this] { return pace_.wait_ms(loop_.clock().monotonic_ns()); };
  return out;
}

Result<> PullFetch::head(Piece& piece, const net::HttpResponse& answer) {
  heard_ = true;
  // `rclone serve s3` answers with 200 to a range.
  const bool part = answer.status == 206 || (answer.status == 200 && !answer.header("content-range").empty());
  if (part && piece.ranged) return head_of_part(piece, answer);
  if (answer.status == 200) return head_of_whole(piece, answer);
  return make_error(ErrorKind::network,
                    fmt::format("'{}' answers with status {} and no file", shown_url(), answer.status),
                    "use an address that answers with the file itself (status 200 or 206)");
}

Result<> PullFetch::head_of_part(Piece& piece, const net::HttpResponse& answer) {
  const auto [from, total] = net::content_range(answer.header("content-range"));
  if (from != piece.begin + piece.got_bytes || total <= 0) return changed();
  const bool alone = total <= object_.part_bytes;
  // Parts of two versions could not be told from each other.
  if (!begun_ && !alone && object_.version.empty() && order_.request.sha256.empty() &&
      net::validator_of(answer).empty()) {
    piece.again = true;
    return make_error(ErrorKind::network, "the server tells no version");  // not shown: fetch() starts again
  }
  RILLE_CHECK(learn(answer, total));
  piece.end = std::min(total, piece.begin + object_.part_bytes);
  return success();
}

Result<> PullFetch::head_of_whole(Piece& piece, const net::HttpResponse& answer) {
  // A server that answered with ranges before and now does not, or no more from the start.
  if (piece.ranged && begun_ && object_.parts() > 1) {
    useless_ = true;
    return make_error(ErrorKind::network, fmt::format("'{}' no longer answers with ranges", shown_url()),
                      "stage it again")
        .with_retry();
  }
  piece.ranged = false;
  piece.begin = 0;
  start_again(piece);
  const std::int64_t total = net::size_in(answer.header("content-length"));
  if (total >= 0 && object_.size_bytes >= 0 && total != object_.size_bytes) return changed();
  object_.part_bytes = std::max({object_.part_bytes, total, object_.size_bytes});  // all of it is one part
  RILLE_CHECK(learn(answer, total));
  piece.end = object_.size_bytes;
  return success();
}

// What an answer tells of the object must be what is known of it. The first answer fills in what is not known yet.
Result<> PullFetch::learn(const net::HttpResponse& answer, std::int64_t total) {
  const std::string validator = net::validator_of(answer);
  const bool other_size = object_.size_bytes >= 0 && total >= 0 && total != object_.size_bytes;
  // gs names a version by its generation, which is no ETag.
  const std::string said = object_.version.starts_with('"') ? validator : answer.header("x-goog-generation");
  const bool other_version = !object_.version.empty() && !said.empty() && said != object_.version;
  const bool other = !object_.validator.empty() && !validator.empty() && validator != object_.validator;
  if (other_size || other_version || other) return changed();
  if (begun_) return success();
  object_.size_bytes = total >= 0 ? total : object_.size_bytes;
  object_.validator = validator;
  if (object_.parts() > PullPart::parts_max)
    return make_error(ErrorKind::invalid,
                      fmt::format("'{}' has more than {} parts (parts_max)", shown_url(), PullPart::parts_max),
                      "fetch it in larger parts (part_bytes)");
  RILLE_CHECK(part_->begin(object_));
  begun_ = true;
  tell_share();
  if (order_.share) order_.share->tell_object(object_.size_bytes, object_.validator);
  missing_.clear();
  for (std::size_t part = 1; part < object_.parts(); ++part) missing_.push_back(part);
  open_gate();
  return success();
}

Result<> PullFetch::take(Piece& piece, std::string_view bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (piece.end >= 0 && piece.begin + piece.got_bytes + size > piece.end)
    return make_error(ErrorKind::network, fmt::format("'{}' sends more bytes than it announced", shown_url()),
                      "the server, or a proxy before it, is damaged: use another address");
  RILLE_CHECK(keep(piece, bytes));
  moved_bytes_ += size;
  return success();
}

Result<> PullFetch::keep(Piece& piece, std::string_view bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  RILLE_CHECK(part_->write(piece.begin + piece.got_bytes, bytes));
  piece.got_bytes += size;
  done_bytes_ += size;
  if (order_.share) order_.share->got(done_bytes_);
  pace_.take(size, loop_.clock().monotonic_ns());
  if (progress_) progress_(done_bytes_, object_.size_bytes);
  return success();
}

void PullFetch::start_again(Piece& piece) { done_bytes_ -= std::exchange(piece.got_bytes, 0); }

Error PullFetch::changed() {
  useless_ = true;
  return make_error(ErrorKind::integrity, fmt::format("'{}' has changed while it was fetched", shown_url()),
                    "stage it again, when no program writes it any more");
}

Error PullFetch::expired() const {
  Error e = make_error(ErrorKind::auth, fmt::format("the signed address of '{}' has expired", shown_url()),
                       "it is signed again by itself, as long as the transfer advances: what is done is kept");
  e.code = "address_expired";
  return e;
}

Error PullFetch::refusal(const net::HttpRequest& request, const net::HttpResponse& answer) {
  if (answer.status == 412) return changed();
  Error error = explained(net::status_error(request, answer));
  const bool expired_400 = answer.status == 400 && lower_case(answer.body).find("expired") != std::string::npos;
  if (answer.status == 401 || answer.status == 403 || expired_400) {
    error.kind = ErrorKind::auth;
    error.code = "address_expired";
  }
  if (answer.status == 404 || answer.status == 410) error.kind = ErrorKind::invalid;
  return error;
}

// Takes the query out of the message, and says if the server could not be reached at all.
Error PullFetch::explained(Error error) const {
  const std::string redacted = net::redact_url(order_.url);
  if (const std::size_t at = error.message.find(redacted); at != std::string::npos)
    error.message.replace(at, redacted.size(), shown_url());
  if (heard_ || (error.kind != ErrorKind::network && error.kind != ErrorKind::timeout)) return error;
  error.kind = ErrorKind::network;
  error.code = "cannot_reach";
  return error;
}

}  // namespace rille::agent
