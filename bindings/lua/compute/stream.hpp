// What the files that bind streams and events share. For the loop thread.
#pragma once

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/tensor/streams.hpp"

namespace rille::lua {

struct EventHandle {
  std::shared_ptr<Graph> graph;  // of its device
  std::shared_ptr<tensor::Event> event;
};

// The option `stream` of a launch on that graph's device; null: there is none. Raises on any other stream.
tensor::StreamPtr option_stream(lua_State* L, int options, const char* verb, const Graph& graph);
int device_stream(lua_State* L);  // methods of a device, which is open
int device_record(lua_State* L);
int device_wait(lua_State* L);
void define_stream(lua_State* L);

// Of that graph's device, in the order of `stream`; null: the device's own.
int push_recorded(lua_State* L, const std::shared_ptr<Graph>& graph, const tensor::StreamPtr& stream);  // event.cpp
// stream:wait(event), dev:wait(event), with the event at index 2.
int wait_for_event(lua_State* L, Graph& graph, const tensor::StreamPtr& stream, const char* verb);
// Suspends the fiber until all are done; `push` then gives the results. The last thing a function does.
int await_events(lua_State* L, Graph& graph, std::vector<std::shared_ptr<tensor::Event>> events, Completion::Push push);
void define_event(lua_State* L);

}  // namespace rille::lua
