// What step.cpp and step_plain.cpp share: the object that stands for a step while its body runs.
#pragma once

#include "bindings/host/captured.hpp"
#include "bindings/lua/verb.hpp"

namespace rille::lua {

struct StepObject {
  engine::StepTicket ticket;
  std::string name;
  Random outer;          // the fiber's generator, put aside while the body draws from its own
  Captured before;
};

void add_plain_step_functions(lua_State* L);  // to the table of primitives on top

}  // namespace rille::lua
