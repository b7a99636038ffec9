// Machines: what a script does with machines besides renting and using them. The engine's Run is one, too; code on an
// agent has none. Loop thread only.
#pragma once

#include <string>

#include "runtime/workflow/engine/run.hpp"

namespace rille::engine {

class Machines {
 public:
  virtual ~Machines() = default;
  // Durable. The lease's machine becomes one of another type; gives { machine }. The options: lease::Resize.
  virtual Async<Value> resize(FiberId fiber, std::string lease_id, Value options, std::string source) = 0;
  // Durable. What spot machines have cost: a list of objects. The query: lease::Manager::price_history.
  virtual Async<Value> price_history(FiberId fiber, Value query, std::string source) = 0;
  // Durable. What the accounts may rent: a list of objects. The query: lease::Manager::quotas.
  virtual Async<Value> quotas(FiberId fiber, Value query, std::string source) = 0;
  // What holds for a lease at this moment, and is in no record: { calls, left_s, over? }. calls: calls and transfers of
  // this run that use it; left_s: until its ttl has passed; over: why nothing can be done there any more.
  virtual Result<Value> standing(const std::string& lease_id) const = 0;
};

Result<Machines*> machines_of(Run& run);  // state: nothing is rented there

}  // namespace rille::engine
