#include "runtime/provider/cloud/resize.hpp"

#include "runtime/provider/cloud/wait.hpp"

namespace rille::provider::cloud {

namespace {

constexpr std::int64_t stop_patience_ms = 600'000;

Error no_machine() {
  Error e = make_error(ErrorKind::state, "there is no such machine any more");
  e.http_status = 404;
  return e;
}

}  // namespace

Async<> resize_stopped(Loop& loop, Resizing how, CancelToken token) {
  RILLE_CO_TRY(Power power, co_await how.power(token));
  if (power == Power::gone) co_return no_machine();
  if (power != Power::stopped) RILLE_CO_CHECK(co_await how.stop(token));
  Patience patience(loop, stop_patience_ms);
  while (power != Power::stopped) {
    RILLE_CO_CHECK(co_await patience.next("stopping the machine", token));
    RILLE_CO_TRY(power, co_await how.power(token));
    if (power == Power::gone) co_return no_machine();
  }
  const Result<> changed = co_await how.change(token);
  const Result<> started = co_await how.start(token);
  if (started) co_return changed;
  Error e = started.error();
  e.message = "the machine is stopped, and its disk costs money: " + e.message;
  if (!changed) co_return std::move(e).with_cause(changed.error());
  co_return e;
}

}  // namespace rille::provider::cloud
