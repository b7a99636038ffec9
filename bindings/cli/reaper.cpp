#include "bindings/cli/reaper.hpp"

#include <fmt/format.h>

namespace rille::cli {

Task<void> Reaper::work(std::shared_ptr<State> state, engine::ReapSpec spec) {
  auto report = co_await state->app.engine->reap(std::move(spec));
  state->busy = false;
  if (!report || state->app.json) co_return;
  Terminal& t = state->app.terminal;
  for (const auto& l : report->released) t.note(fmt::format("released {} ({}), left by run {}", l.name, l.id, l.run));
  for (const auto& l : report->failed)
    t.note(fmt::format("warning: {} ({}), left by run {}, is not released: {}", l.name, l.id, l.run, l.error));
}

void Reaper::begin(const std::shared_ptr<State>& state, engine::ReapSpec spec) {
  state->busy = true;
  state->app.loop->spawn(work(state, std::move(spec)));
}

Reaper::Reaper(App& app) : state_(std::make_shared<State>(State{app})) {
  auto owes = app.engine->owes();
  if (!owes || !*owes) return;
  engine::ReapSpec spec;
  spec.in_background = true;
  // Posted to the loop, so that tasks already queued for the script run before the reaper.
  app.loop->post([state = state_, spec] { begin(state, spec); });
  state_->busy = true;
}

void Reaper::at_exit(const std::function<bool()>& stop) {
  App& app = state_->app;
  bool late = false;
  Timer timer(*app.loop, 5'000, [&late] { late = true; });
  auto wait = [&] { app.loop->run_until([&] { return !state_->busy || late || stop(); }); };
  wait();
  auto owes = app.engine->owes();
  if (state_->busy || !owes || !*owes) return;
  engine::ReapSpec spec;
  spec.in_background = spec.only_due = true;
  begin(state_, std::move(spec));
  wait();
}

}  // namespace rille::cli
