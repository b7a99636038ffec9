// Resources that outlive a machine. A disk or an address costs money until it is deleted. A provider lists such a
// resource as a machine in state terminating, so that it is not mistaken for a machine that is being created. A free
// resource, such as the machine's security group, costs nothing. A provider lists a free resource if no machine has the
// resource's tag, so that it is removed. No release waits for a free resource, its cost is not counted, and if its
// removal fails the next `rille gc` retries. Any thread.
#pragma once

#include <string>
#include <utility>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

inline constexpr const char* left_problem = "left without its machine";

inline Machine left_over(std::string id, std::string tag) {
  Machine m;
  m.id = std::move(id);
  m.tag = std::move(tag);
  m.state = MachineState::terminating;
  m.details.set("problem", left_problem);
  return m;
}

inline Machine free_left_over(std::string id, std::string tag) {
  Machine m = left_over(std::move(id), std::move(tag));
  m.details = Value().set("free", true);
  return m;
}

inline bool is_left_over(const Machine& m) { return m.details.text("problem") == left_problem; }
inline bool is_free_left_over(const Machine& m) { return m.details.boolean("free"); }

}  // namespace rille::provider
