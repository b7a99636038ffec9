// Instances: the durable verbs that concern money and machines: offers, budgets, leases, and what is done on the
// machines of leases. All fail with `state` in code on an agent, which rents nothing. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/base/guest.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/engine/fibers.hpp"

namespace rille::engine {

// What a script sees of a lease. A lease is logical: the name is its identity, generations are machines behind it.
struct LeaseView {
  std::string id;  // unique; derived from run and name
  std::string name, provider, state, machine_id, region, gpu;
  int gpu_count = 0, generation = 1, vcpus = 0;
  std::int64_t memory_bytes = 0, price_micros_per_hour = 0, created_wall_us = 0, expires_wall_us = 0, spent_micros = 0;
  bool spot = false;
  std::map<std::string, std::int64_t> costs;  // until now, by currency: millionths of each
  std::string shown_price;                    // of an hour, in whatever currency it is known; "?"
  Value to_value() const;
};

// A function or a program to run on an instance.
struct CallSpec {
  std::string name;
  Value payload;                  // kind "lua": what the host's shipping made; kind "exec": {argv, env, ...}
  std::string kind = "lua";       // or "exec"
  bool keep_checkpoints = false;  // checkpoint = rille.home: copy what the call publishes to the run's home
  bool setup = false;             // also on each further machine of its lease, before anything else runs there
  std::int64_t timeout_ms = 0;    // 0: none
  // what the args hash covers besides the name (source place, args); never bytecode
  std::string identity;
  Value sim;  // how it goes on a simulated machine; see sim_agents.hpp
};

class Instances {
 public:
  virtual ~Instances() = default;
  virtual Async<Value> offers(FiberId fiber, Value query, std::string source) = 0;  // list of offer objects
  virtual Result<> set_budget(FiberId fiber, const Value& options) = 0;

  virtual Async<LeaseView> rent(FiberId fiber, std::string name, Value options, std::string source) = 0;
  virtual Async<> release(FiberId fiber, std::string lease_id, std::string source) = 0;
  // Another machine for the lease, of the next generation, set up as this one was; gives { generation }.
  virtual Async<Value> replace(FiberId fiber, std::string lease_id, Value options, std::string source) = 0;
  // When its machine will be taken away, in seconds since 1970; null: nobody has said so.
  virtual Async<Value> preempting(FiberId fiber, std::string lease_id, std::string source) = 0;
  // From here on it is the home's, which ends it after ttl_ms; its scope leaves it alone.
  virtual Async<> detach(FiberId fiber, std::string lease_id, std::int64_t ttl_ms, std::string source) = 0;
  // The lease ends with that scope, which is around the fiber's, rather than with the one in which it was rented.
  // Nothing happens when there is no such scope any more, or it is ending.
  virtual void keep_lease(FiberId fiber, const std::string& lease_id, ScopeId scope) = 0;
  // What the machines of these leases do now: a reading for each, in their order, or { error } of those that cannot be
  // asked. Its members: agent/usage.hpp.
  virtual Async<Value> telemetry(FiberId fiber, std::vector<std::string> lease_ids, std::string source) = 0;
  virtual Result<LeaseView> lease(const std::string& lease_id) const = 0;
  virtual Async<Value> call(FiberId fiber, std::string lease_id, CallSpec spec, std::string source) = 0;
  virtual Async<Value> stage(FiberId fiber, std::string lease_id, std::string from, std::string to, Value options,
                             std::string source) = 0;
  virtual Async<Value> get(FiberId fiber, std::string lease_id, std::string from, std::string to, Value options,
                           std::string source) = 0;

  // The lease's machine becomes one of another type; gives { machine }. The options: lease::Resize.
  virtual Async<Value> resize(FiberId fiber, std::string lease_id, Value options, std::string source) = 0;
  // What spot machines have cost: a list of objects. The query: lease::ProviderQueries::price_history.
  virtual Async<Value> price_history(FiberId fiber, Value query, std::string source) = 0;
  // What the accounts may rent: a list of objects. The query: lease::ProviderQueries::quotas.
  virtual Async<Value> quotas(FiberId fiber, Value query, std::string source) = 0;
  // What holds for a lease at this moment, and is in no record: { calls, left_s, over? }. calls: calls and transfers of
  // this run that use it; left_s: until its ttl has passed; over: why nothing can be done there any more.
  virtual Result<Value> standing(const std::string& lease_id) const = 0;
};

}  // namespace rille::engine
