// Instances: the durable verbs for money and machines: offers, budgets, leases, and operations on the leases' machines.
// All fail with `state` in code on an agent, which rents nothing. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/base/guest.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/engine/fibers.hpp"

namespace rille::engine {

// A script's view of a lease. A lease is logical: the name is its identity, generations are the machines behind it.
struct LeaseView {
  std::string id;  // unique; derived from run and name
  std::string name, provider, state, machine_id, region, gpu;
  int gpu_count = 0, generation = 1, vcpus = 0;
  std::int64_t memory_bytes = 0, price_micros_per_hour = 0, created_wall_us = 0, expires_wall_us = 0, spent_micros = 0;
  bool spot = false;
  std::map<std::string, std::int64_t> costs;  // until now, by currency: millionths of each
  std::string shown_price;                    // price per hour, in any known currency; "?"
  Value to_value() const;
};

// A function or a program to run on an instance.
struct CallSpec {
  std::string name;
  Value payload;                  // kind "lua": what the host's shipping made; kind "exec": {argv, env, ...}
  std::string kind = "lua";       // or "exec"
  bool keep_checkpoints = false;  // checkpoint = rille.home: copy published checkpoints to the home
  bool setup = false;             // repeat on each later machine of the lease, first
  std::int64_t timeout_ms = 0;    // 0: none
  // input to the args hash besides the name (source place, args); never bytecode
  std::string identity;
  Value sim;  // its behaviour in a simulation; see sim_agents.hpp
};

class Instances {
 public:
  virtual ~Instances() = default;
  virtual Async<Value> offers(FiberId fiber, Value query, std::string source) = 0;  // list of offer objects
  virtual Result<> set_budget(FiberId fiber, const Value& options) = 0;

  virtual Async<LeaseView> rent(FiberId fiber, std::string name, Value options, std::string source) = 0;
  virtual Async<> release(FiberId fiber, std::string lease_id, std::string source) = 0;
  // Replaces the lease's machine by one of the next generation with the same setup; returns { generation }.
  virtual Async<Value> replace(FiberId fiber, std::string lease_id, Value options, std::string source) = 0;
  // The preemption deadline in seconds since 1970; null: no notice.
  virtual Async<Value> preempting(FiberId fiber, std::string lease_id, std::string source) = 0;
  // Transfers the lease to the home, which ends it after ttl_ms; its scope no longer releases it.
  virtual Async<> detach(FiberId fiber, std::string lease_id, std::int64_t ttl_ms, std::string source) = 0;
  // Makes the lease end with that scope, which encloses the fiber's, instead of the one it was rented in. Does nothing
  // if that scope is gone or ending.
  virtual void keep_lease(FiberId fiber, const std::string& lease_id, ScopeId scope) = 0;
  // Current usage of these leases' machines, in order: a reading each, or { error } for one that cannot be asked.
  // Members: agent/usage.hpp.
  virtual Async<Value> telemetry(FiberId fiber, std::vector<std::string> lease_ids, std::string source) = 0;
  virtual Result<LeaseView> lease(const std::string& lease_id) const = 0;
  virtual Async<Value> call(FiberId fiber, std::string lease_id, CallSpec spec, std::string source) = 0;
  virtual Async<Value> stage(FiberId fiber, std::string lease_id, std::string from, std::string to, Value options,
                             std::string source) = 0;
  virtual Async<Value> get(FiberId fiber, std::string lease_id, std::string from, std::string to, Value options,
                           std::string source) = 0;

  // Changes the machine's type; returns { machine }. The options: lease::Resize.
  virtual Async<Value> resize(FiberId fiber, std::string lease_id, Value options, std::string source) = 0;
  // Past spot prices: a list of objects. The query: lease::ProviderQueries::price_history.
  virtual Async<Value> price_history(FiberId fiber, Value query, std::string source) = 0;
  // Quotas of the accounts: a list of objects. The query: lease::ProviderQueries::quotas.
  virtual Async<Value> quotas(FiberId fiber, Value query, std::string source) = 0;
  // The lease's current status, which is not recorded: { calls, left_s, over? }. calls: calls and transfers of this run
  // that use it; left_s: seconds until its ttl; over: why it can no longer be used.
  virtual Result<Value> standing(const std::string& lease_id) const = 0;
};

}  // namespace rille::engine
