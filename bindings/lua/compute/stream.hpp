// Binds CUDA streams and events to Lua. Loop thread only.
#pragma once

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/tensor/streams.hpp"

namespace rille::lua {

// Counts the memory that the device keeps for a stream or an event.
inline MemoryHeld count_handle(const Graph& graph) {
  return MemoryHeld::count(graph.device()->counted_in(), MemoryUse::Part::tensors, tensor::object_bytes);
}

struct EventHandle {
  std::shared_ptr<Graph> graph;  // graph of the event's device
  std::shared_ptr<tensor::Event> event;
  MemoryHeld counted = count_handle(*graph);
};

// Reads the launch option `stream`; null: the script gave none. Raises if the stream belongs to another device's
// graph.
tensor::StreamPtr option_stream(lua_State* L, int options, const char* verb, const Graph& graph);
int device_stream(lua_State* L);  // device methods; the caller has checked that the device is open
int device_record(lua_State* L);
int device_wait(lua_State* L);
void define_stream(lua_State* L);

// Records an event in `stream` (null: the device's default stream) and pushes the Event object.
// defined in event.cpp
int push_recorded(lua_State* L, const std::shared_ptr<Graph>& graph, const tensor::StreamPtr& stream);
// Implements stream:wait(event) and dev:wait(event); the event is at stack index 2.
int wait_for_event(lua_State* L, Graph& graph, const tensor::StreamPtr& stream, const char* verb);
// Suspends the fiber until all events are done; then `push` pushes the results. Must be the last call of a C
// function, because a suspended fiber does not come back to it.
int await_events(lua_State* L, Graph& graph, std::vector<std::shared_ptr<tensor::Event>> events, Completion::Push push);
void define_event(lua_State* L);

}  // namespace rille::lua
