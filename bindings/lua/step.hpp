// What step.cpp and step_plain.cpp share: the object that stands for a step while its body runs.
#pragma once

#include "bindings/host/captured.hpp"
#include "bindings/lua/verb.hpp"

namespace rille::lua {

struct StepObject {
  engine::StepTicket ticket;
  std::string name;
  std::string run;       // its id
  bool limited = false;  // its body's time is
  bool plain = false;    // stands for whichever step its fiber runs on the short way
  Random outer;          // the fiber's generator, put aside while the body draws from its own
  Captured before;
};

void add_plain_step_functions(lua_State* L);  // to the table of primitives on top

}  // namespace rille::lua
