// Shared by the files that bind streams and events. Loop thread only.
#pragma once

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/tensor/streams.hpp"

namespace rille::lua {

struct EventHandle {
  std::shared_ptr<Graph> graph;  // graph of the event's device
  std::shared_ptr<tensor::Event> event;
};

// The launch option `stream`, which must belong to the graph's device; null: not given. Raises on any other stream.
tensor::StreamPtr option_stream(lua_State* L, int options, const char* verb, const Graph& graph);
int device_stream(lua_State* L);  // device methods; the device is open
int device_record(lua_State* L);
int device_wait(lua_State* L);
void define_stream(lua_State* L);

// Records an event in `stream` (null: the device's default stream) and pushes it.
int push_recorded(lua_State* L, const std::shared_ptr<Graph>& graph, const tensor::StreamPtr& stream);  // event.cpp
// stream:wait(event) and dev:wait(event); the event is at index 2.
int wait_for_event(lua_State* L, Graph& graph, const tensor::StreamPtr& stream, const char* verb);
// Suspends the fiber until all events are done; `push` then pushes the results. Must be the last call of a function.
int await_events(lua_State* L, Graph& graph, std::vector<std::shared_ptr<tensor::Event>> events, Completion::Push push);
void define_event(lua_State* L);

}  // namespace rille::lua
