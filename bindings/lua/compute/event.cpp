// The Event object: a recorded position in a stream or in a device's default stream.
#include "bindings/lua/compute/stream.hpp"

namespace rille::lua {

namespace {

EventHandle& check_event(lua_State* L, int index, const char* what) {
  return check_object<EventHandle>(L, index, what);
}

void same_device(lua_State* L, const Graph& here, const Graph& there, const char* verb) {
  if (&here == &there) return;
  raise_invalid(L,
                fmt::format("{}: the event belongs to {}, not to {} ({})", verb, there.device()->name(),
                            here.device()->name(), script_position(L)),
                "use an event of this device; to wait for an event of another device, call e:wait()");
}

int done(lua_State* L) {
  auto is = check_event(L, 1, "done").event->done();
  if (!is) raise(L, at_line(L, std::move(is).error()));
  push(L, *is);
  return 1;
}

int event_wait(lua_State* L) {
  auto& e = check_event(L, 1, "wait");
  return await_events(L, *e.graph, {e.event}, [](lua_State*) { return 0; });
}

// e:elapsed(later) -> seconds from e to `later`, once the device has passed both events
int elapsed(lua_State* L) {
  auto& from = check_event(L, 1, "elapsed");
  auto& to = check_event(L, 2, "elapsed");
  same_device(L, *from.graph, *to.graph, "elapsed");
  Completion::Push push_seconds = [a = from.event, b = to.event](lua_State* l) {
    push(l, value_or_raise(l, tensor::Event::seconds_between(*a, *b)));
    return 1;
  };
  return await_events(L, *from.graph, {from.event, to.event}, std::move(push_seconds));
}

bool event_field(lua_State* L, std::string_view key) {
  if (key != "device") return false;
  push(L, check_event(L, 1, "event").graph->device()->name());
  return true;
}

int event_to_string(lua_State* L) {
  push(L, fmt::format("Event {}", check_event(L, 1, "event").graph->device()->name()));
  return 1;
}

}  // namespace

int push_recorded(lua_State* L, const std::shared_ptr<Graph>& graph, const tensor::StreamPtr& stream) {
  tensor_state(L);
  auto event = tensor::record(*graph, stream);
  if (!event) raise(L, at_line(L, std::move(event).error()));
  push_object(L, EventHandle{graph, std::move(*event)});
  return 1;
}

int wait_for_event(lua_State* L, Graph& graph, const tensor::StreamPtr& stream, const char* verb) {
  const auto& e = check_event(L, 2, verb);
  same_device(L, graph, *e.graph, verb);
  if (auto waits = tensor::wait(graph, stream, e.event); !waits) raise(L, at_line(L, std::move(waits).error()));
  return 0;
}

int await_events(lua_State* L, Graph& graph, std::vector<std::shared_ptr<tensor::Event>> events,
                 Completion::Push push) {
  if (tensor_state(L).tracing()) {
    raise(L, at_line(L, make_error(ErrorKind::state, "an event is waited for inside a compiled function",
                                   "wait outside of it")));
  }
  Completion done = begin_await(L);
  tensor::when_done(graph, std::move(events), [done, push = std::move(push)](Result<void> r) {
    if (r) done.post_finish(push);
    else done.post_fail(std::move(r).error());
  });
  return end_await(L);
}

void define_event(lua_State* L) {
  define_class<EventHandle>(L, {.name = "Event",
                                .methods = {{"done", bind<done>}},
                                .async_methods = {{"wait", bind<event_wait>}, {"elapsed", bind<elapsed>}},
                                .metamethods = {{"__tostring", bind<event_to_string>}},
                                .field = event_field,
                                .fields = {"device"}});
}

}  // namespace rille::lua
