// The Stream object, dev:stream(), and dev:record and dev:wait, which act on a device's default stream.
#include "bindings/lua/compute/stream.hpp"

namespace rille::lua {

namespace {

using tensor::StreamPtr;

struct StreamHandle {
  std::shared_ptr<Graph> graph;  // graph of the stream's device
  StreamPtr stream;              // null: the script released the stream
  MemoryHeld counted = count_handle(*graph);
};

StreamHandle& check_stream(lua_State* L, int index, const char* what) {
  auto& s = check_object<StreamHandle>(L, index, what);
  if (!s.stream)
    raise(L, at_line(L, make_error(ErrorKind::state, fmt::format("{}: the stream was released", what),
                                   "make another stream with dev:stream()")));
  return s;
}

int record(lua_State* L) {
  auto& s = check_stream(L, 1, "record");
  return push_recorded(L, s.graph, s.stream);
}

int stream_wait(lua_State* L) {
  auto& s = check_stream(L, 1, "wait");
  return wait_for_event(L, *s.graph, s.stream, "stream:wait");
}

int stream_synchronize(lua_State* L) {
  auto& s = check_stream(L, 1, "synchronize");
  tensor_state(L);
  auto event = tensor::record(*s.graph, s.stream);
  if (!event) raise(L, at_line(L, std::move(event).error()));
  return await_events(L, *s.graph, {std::move(*event)}, [](lua_State*) { return 0; });
}

// stream:release(). Launched work continues, and kernels bound to the stream keep the stream alive.
int stream_release(lua_State* L) {
  check_object<StreamHandle>(L, 1, "release").stream.reset();
  return 0;
}

bool stream_field(lua_State* L, std::string_view key) {
  if (key != "device") return false;
  push(L, check_object<StreamHandle>(L, 1, "stream").graph->device()->name());
  return true;
}

int stream_to_string(lua_State* L) {
  const auto& s = check_object<StreamHandle>(L, 1, "stream");
  push(L, fmt::format("Stream {}{}", s.graph->device()->name(), s.stream ? "" : " (released)"));
  return 1;
}

}  // namespace

tensor::StreamPtr option_stream(lua_State* L, int options, const char* verb, const Graph& graph) {
  lua_getfield(L, options, "stream");
  StreamPtr stream;
  if (!lua_isnil(L, -1)) {
    const auto& s = check_stream(L, -1, fmt::format("{}: stream", verb).c_str());
    if (s.graph.get() != &graph)
      raise_invalid(L,
                    fmt::format("{}: the stream belongs to {}, but the kernel to {} ({})", verb,
                                s.graph->device()->name(), graph.device()->name(), script_position(L)),
                    "make the stream on the kernel's device: dev:stream()");
    stream = s.stream;
  }
  lua_pop(L, 1);
  return stream;
}

int device_stream(lua_State* L) {
  const auto graph = device_graph(L, 1, "stream").shared_from_this();
  auto made = tensor::make_stream(*graph);
  if (!made) raise(L, at_line(L, std::move(made).error()));
  push_object(L, StreamHandle{graph, std::move(*made)});
  return 1;
}

int device_record(lua_State* L) { return push_recorded(L, device_graph(L, 1, "record").shared_from_this(), nullptr); }

int device_wait(lua_State* L) { return wait_for_event(L, device_graph(L, 1, "wait"), nullptr, "dev:wait"); }

void define_stream(lua_State* L) {
  define_class<StreamHandle>(
      L, {.name = "Stream",
          .methods = {{"record", bind<record>}, {"wait", bind<stream_wait>}, {"release", bind<stream_release>}},
          .async_methods = {{"synchronize", bind<stream_synchronize>}},
          .metamethods = {{"__tostring", bind<stream_to_string>}},
          .field = stream_field,
          .fields = {"device"}});
}

}  // namespace rille::lua
