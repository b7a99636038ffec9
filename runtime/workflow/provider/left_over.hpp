// What is left of a machine. A disk or an address costs money until it is ended, and is listed as a machine that is
// ending: never live, for nobody must take it for the one that is still being made.
// A free one costs nothing, as the security group that was made for it. A provider lists it while no machine bears its
// tag, so that it is removed; nobody waits for it, no ledger counts it, and where its removal fails the next `rille gc`
// tries again.
// Any thread.
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
