#include "runtime/workflow/provider/cloud/resize.hpp"

#include "runtime/workflow/provider/cloud/wait.hpp"
#include "runtime/workflow/provider/outcome.hpp"

namespace rille::provider::cloud {

namespace {

constexpr std::int64_t stop_patience_ms = 600'000, start_patience_ms = 600'000, shown_patience_ms = 60'000;
constexpr std::int64_t late_stop_ns =
    30'000'000'000;               // a stop with an unknown outcome may take effect up to 30 s later
constexpr int refusals_max = 20;  // give up after this many refused starts in a row

Error no_machine() {
  Error e =
      make_error(ErrorKind::state, "the machine no longer exists", "it was ended outside this run: rent another one");
  e.http_status = 404;
  return e;
}

Error stands_still(Error last, Error why) {
  last.message = "the machine is stopped, and its disk costs money: " + last.message;
  return std::move(last).with_cause(std::move(why));
}

// Waits until the machine neither starts nor stops: meanwhile a stop would be refused, or interrupt the first boot.
Async<Standing> at_rest(Loop& loop, Resizing how, CancelToken token) {
  Patience patience(loop, stop_patience_ms);
  while (true) {
    RILLE_CO_CHECK(co_await patience.next("waiting until the machine is up or stopped", token));
    Result<Standing> now = co_await how.look(token);
    if (now ? now->power != Power::between : !now.error().retryable) co_return now;
  }
}

Async<> until_stopped(Loop& loop, Resizing how, CancelToken token) {
  Patience patience(loop, stop_patience_ms);
  while (true) {
    const Result<Standing> now = co_await how.look(token);
    if (now && now->power == Power::stopped) co_return success();
    if (now && now->power == Power::gone) co_return no_machine();
    if (!now && !now.error().retryable) co_return now.error();
    RILLE_CO_CHECK(co_await patience.next("stopping the machine", token));
  }
}

// Waits after an accepted start until the machine runs: for some seconds it still looks stopped.
Async<> until_up(Loop& loop, Resizing how) {
  Patience patience(loop, shown_patience_ms);
  while (true) {
    const Result<Standing> now = co_await how.look({});
    if (now && now->power == Power::gone) co_return no_machine();
    if (now && now->power != Power::stopped) co_return success();
    if (Result<> more = co_await patience.next("starting the machine", {}); !more) co_return success();
  }
}

// Starts the machine again after a failed resize and returns `why`. Ignores cancellation, since a stopped machine costs
// money without doing work. may_stop: a stop was sent and may take effect later.
Async<> start_again(Loop& loop, Resizing how, std::string before, Error why, bool may_stop) {
  Patience patience(loop, start_patience_ms);
  const std::int64_t settled_ns = loop.clock().monotonic_ns() + (may_stop ? late_stop_ns : 0);
  bool back = is_definitive(why);
  int refusals = 0;
  std::optional<Error> last;
  while (true) {
    const Result<Standing> now = co_await how.look({});
    if (now && now->power == Power::gone) co_return no_machine().with_cause(std::move(why));
    if (now && now->power == Power::running && loop.clock().monotonic_ns() >= settled_ns) {
      if (now->type == how.type) co_return success();
      co_return why;
    }
    if (!now) last = now.error();
    if (now && now->power == Power::stopped) {
      std::string type = now->type;
      if (back && type != before) {
        const Result<> changed = co_await how.change(before, {});
        if (changed) type = before;
      }
      Result<> started = co_await how.start({});
      if (started) {
        started = co_await until_up(loop, how);
        if (started && type != how.type) co_return why;
        co_return started;
      }
      last = started.error();
      back = true;
      refusals = is_definitive(*last) ? refusals + 1 : 0;
      if (refusals >= refusals_max) co_return stands_still(std::move(*last), std::move(why));
    }
    const Result<> waited = co_await patience.next("starting the machine again", {});
    if (!waited) co_return stands_still(last ? std::move(*last) : waited.error(), std::move(why));
  }
}

}  // namespace

Async<> resize_stopped(Loop& loop, Resizing how, CancelToken token) {
  RILLE_CO_TRY(Standing now, co_await how.look(token));
  if (now.power == Power::between) {
    Result<Standing> rest = co_await at_rest(loop, how, token);
    if (!rest) co_return co_await start_again(loop, how, now.type, rest.error(), true);  // the machine may be stopping
    now = std::move(*rest);
  }
  if (now.power == Power::gone) co_return no_machine();
  if (now.power == Power::running && now.type == how.type) co_return success();
  const std::string before = now.type;
  Result<> done = success();
  bool stopped = now.power == Power::stopped;
  if (!stopped) {
    done = co_await how.stop(token);
    // the stop was refused, so the machine still runs
    if (!done && now.power == Power::running && is_definitive(done.error())) co_return done;
    if (done) done = co_await until_stopped(loop, how, token);
    stopped = done.ok();
  }
  if (done && before != how.type) done = co_await how.change(how.type, token);
  if (done) done = co_await how.start(token);
  if (done) co_return co_await until_up(loop, std::move(how));
  Error why = done.error();
  co_return co_await start_again(loop, std::move(how), before, std::move(why), !stopped);
}

}  // namespace rille::provider::cloud
