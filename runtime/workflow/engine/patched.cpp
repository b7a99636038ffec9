// patched(): tells edited code whether to use its new path (true), or the old path because the run took it (false).
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

// The answer true is recorded as an entry, the marker. If the record has another entry at this position, the fiber
// passed this place before the marker existed: false. If the fiber's record ends here while other fibers' entries
// remain, the fiber waits: if the replay gets stuck, the fiber went on without a marker in the earlier process (false).
Async<bool> RunImpl::patched(FiberId id, std::string name, std::string source) {
  FiberRecord& f = fiber(id);
  if (const Error* why = cancelled(id)) co_return *why;
  if (config_.mode != Mode::durable) co_return true;
  const Entry* entry = replay_.find(f.path, f.next_pos);
  if (entry && (entry->kind != "patched" || entry->name != name)) co_return false;
  if (!entry && !replay_.over()) {
    Wake<Result<bool>> decided(scheduler_);
    patches_.insert_or_assign(id, decided);
    auto registration = token(f).on_cancel([decided](const Error& why) { decided.set(why); });
    Result<bool> mine = true;
    {
      Waiting waiting(f);
      scheduler_.poke();
      mine = co_await decided;
    }
    patches_.erase(id);
    if (!mine || !*mine) co_return mine;
  }
  Operation op{"patched", std::move(name), Value(), std::move(source)};
  RILLE_CO_TRY(Admitted slot, co_await admit(id, std::move(op)));
  if (slot.recorded) co_return slot.recorded->ok();
  Result<Value> done = co_await complete(std::move(slot), Value(true));
  if (!done) co_return done.error();
  co_return true;
}

}  // namespace rille::engine
