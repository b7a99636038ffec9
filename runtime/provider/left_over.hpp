// What is left of a machine and costs nothing, as the security group that was made for it. A provider lists it while no
// machine bears its tag, so that it is removed; nobody waits for it, no ledger counts it, and where its removal fails
// the next `rille gc` tries again.
// Any thread.
#pragma once

#include "runtime/provider/types.hpp"

namespace rille::provider {

inline Machine free_left_over(std::string id, std::string tag) {
  Machine m;
  m.id = std::move(id);
  m.tag = std::move(tag);
  m.state = MachineState::terminating;  // never live: nobody must take it for the machine
  m.details.set("free", true);
  return m;
}

inline bool is_free_left_over(const Machine& m) { return m.details.boolean("free"); }

}  // namespace rille::provider
