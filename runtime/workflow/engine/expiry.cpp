// Ends a lease at its ttl while its run is running. The run's process must do this, because not every machine ends
// itself, and the reaper does not touch leases of running runs. The end is recorded in the lease's row, and the lease's
// calls fail with an error.
#include "runtime/workflow/lease/expiry.hpp"

#include <algorithm>
#include <utility>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {
constexpr std::int64_t look_ms = 60'000, soonest_ms = 250;  // poll the wall clock, because this machine may sleep
constexpr std::int64_t beat_us = 60'000'000;

std::int64_t again_ms(int attempt) { return std::min<std::int64_t>(1000LL << std::min(attempt, 10), 300'000); }
}  // namespace

// Sets the time at which this process ends the lease, after reading the lease's row again. 0: read the row now.
void Calls::end_by(const std::string& lease_id, std::int64_t expires_us) {
  LeaseSession::Term& term = session(lease_id).in_term();
  term.expires_us = expires_us;
  term.met_us = run_.now_us();
  if (!term.orphan_ms) {  // this process did not rent the lease
    const Result<std::optional<lease::Lease>> row = leases_->find(lease_id);
    if (row && *row) term.orphan_ms = (*row)->request.orphan_after_ms;
  }
  keep_time();
}

void Calls::keep_time() {
  clock_.reset();
  const std::int64_t now_us = run_.now_us();
  std::int64_t next_us = INT64_MAX;
  for (const auto& [id, session] : sessions_) {
    if (!session.term || !session.term->expires_us) continue;
    const LeaseSession::Term& term = *session.term;
    next_us = std::min(next_us, *term.expires_us);
    if (!connector_->real_time()) continue;  // a simulation needs no polling: its clock never jumps
    next_us = std::min(next_us, now_us + look_ms * 1000);
    if (term.orphan_ms) next_us = std::min(next_us, now_us + std::max(soonest_ms, term.orphan_ms / 4) * 1000);
  }
  if (next_us == INT64_MAX) return;
  const std::int64_t ms = std::max<std::int64_t>(0, (next_us - now_us + 999) / 1000);
  clock_ = std::make_unique<Timer>(run_.loop(), ms, [this] { look_around(); });
}

void Calls::look_around() {
  const std::int64_t now_us = run_.now_us();
  std::vector<std::string> over, unmet;  // lease ids: over: expired; unmet: machines to connect to
  for (auto& [lease, session] : sessions_) {
    if (!session.term || !session.term->expires_us) continue;
    LeaseSession::Term& term = *session.term;
    if (session.connected()) term.met_us = now_us;
    const bool lonely = term.orphan_ms && now_us - term.met_us >= term.orphan_ms * 1000 / 2;
    if (*term.expires_us <= now_us) term.expires_us.reset(), over.push_back(lease);
    else if (lonely && !std::exchange(term.meeting, true)) unmet.push_back(lease);
  }
  for (const std::string& lease : over) run_.loop().spawn(end_in_time(lease));
  for (const std::string& lease : unmet) run_.loop().spawn(meet(lease));
  if (connector_->real_time() && now_us - beat_us_ >= beat_us) {
    beat_us_ = now_us;
    run_.journal_->enqueue(
        [run = run_.id(), now_us](store::Db& db) {
          return db.run("UPDATE runs SET updated_us=? WHERE id=?", {now_us, run});
        },
        run_.fence());
  }
  keep_time();
}

// Connects to the lease's machine, so that the machine does not end itself as an orphan. The next check retries a
// failure.
Task<void> Calls::meet(std::string lease_id) {
  const auto life = run_.life_.watch();
  auto agent = co_await known_client(lease_id, closed_.token());
  if (life.ended()) co_return;
  if (LeaseSession& session = this->session(lease_id); session.term) session.term->meeting = false;
}

// Ends the lease at its ttl. The lease's calls are cancelled first, and do not wait for the machine's end.
Task<void> Calls::end_in_time(std::string lease_id) {
  const auto life = run_.life_.watch();
  const CancelToken closed = closed_.token();
  for (int attempt = 0;; ++attempt) {
    Result<std::optional<lease::Lease>> row = leases_->find(lease_id);
    if (row && (!*row || ((*row)->state == "released" && (*row)->replacing.empty()))) co_return;
    if (row && run_.now_us() < (*row)->expires_us) {
      end_by(lease_id, (*row)->expires_us);
      co_return;
    }
    if (row && attempt == 0) {
      Error why = lease::ttl_over(**row);
      run_.event("expired", Value()
                                .set("lease", lease_id)
                                .set("name", (*row)->name)
                                .set("generation", (*row)->generation)
                                .set("reason", "ttl")
                                .set("message", why.message));
      session(lease_id).in_term().over.cancel(std::move(why));
    }
    Result<> ended;
    if (row) ended = co_await release(lease_id);
    else ended = row.error();
    if (life.ended() || ended) co_return;
    if (attempt == 0)
      run_.event("warning", Value()
                                .set("what", "a lease whose ttl is over could not be released; it is tried again")
                                .set("message", ended.error().message));
    Result<> slept = co_await sleep_for(run_.loop(), again_ms(attempt), closed);
    if (!slept || life.ended()) co_return;
  }
}

// Cancels `work` when the lease's time is over.
CancelToken::Registration Calls::bound(const std::string& lease_id, CancelSource& work) {
  return session(lease_id).in_term().over.token().on_cancel([&work](const Error& why) { work.cancel(why); });
}

// Replaces an error by ttl_over if the lease's time is over.
Error Calls::in_time(const std::string& lease_id, Error e) const {
  Result<std::optional<lease::Lease>> l = leases_->find(lease_id);
  if (!l || !*l || run_.now_us() < (*l)->expires_us) return e;
  return lease::ttl_over(**l);
}

}  // namespace rille::engine
