// Instances: the durable operations for money and machines: offers, budgets, leases, and work on the leases' machines.
// All fail with `state` in code that runs on an agent, because an agent cannot rent. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/base/guest.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/engine/fibers.hpp"

namespace rille::lease {
struct Lease;
}

namespace rille::engine {

// A script's view of a lease. The name identifies the lease in its run; the lease's machine may be replaced, and
// `generation` numbers the machines from 1.
struct LeaseView {
  std::string id;  // unique; derived from run and name
  std::string name, provider, state, machine_id, region, gpu;
  int gpu_count = 0, generation = 1, vcpus = 0;
  std::int64_t memory_bytes = 0, price_micros_per_hour = 0, created_wall_us = 0, expires_wall_us = 0, spent_micros = 0;
  bool spot = false;
  std::map<std::string, std::int64_t> costs;  // costs so far: currency -> millionths of that currency
  std::string shown_price;                    // price per hour, in the currency that is known; "?": unknown
  Value to_value() const;
};

// A script's view of a volume. The name identifies it in the home.
struct VolumeView {
  std::string id, name, provider, region, kind;  // id: of the lease
  std::string volume;                            // the provider's id
  std::string state;                             // creating, ready, attached, deleting, deleted
  std::string user;                              // the name of a lease that has it; "": none
  bool keep = true, shared = false;
  std::int64_t size_bytes = 0, price_micros_per_hour = -1, spent_micros = 0;
  std::string shown_price;
  static VolumeView of(const lease::Lease& lease, std::string user, std::int64_t now_us);
  Value to_value() const;
};

// A function or a program to run on an instance.
struct CallSpec {
  std::string name;
  Value payload;                  // kind "lua": the packed function and its arguments; kind "exec": {argv, env, ...}
  std::string kind = "lua";       // "lua" or "exec"
  bool keep_checkpoints = false;  // the script set checkpoint: keep published checkpoints off the machine
  std::string checkpoint_store;   // the address in a store where they are kept; "": in the run's home
  bool setup = false;             // a setup call: run it again on each later machine of the lease, before other calls
  std::int64_t timeout_ms = 0;    // longest duration of the call; 0: no limit
  // Hashed with the name to recognize the call on replay: source location and arguments, never bytecode.
  std::string identity;
  Value sim;  // the call's behaviour in a simulation; see sim_agents.hpp
};

class Instances {
 public:
  virtual ~Instances() = default;
  virtual Async<Value> offers(FiberId fiber, Value query, std::string source) = 0;  // returns a list of offer objects
  virtual Result<> set_budget(FiberId fiber, const Value& options) = 0;

  virtual Async<LeaseView> rent(FiberId fiber, std::string name, Value options, std::string source) = 0;
  virtual Async<> release(FiberId fiber, std::string lease_id, std::string source) = 0;
  // Replaces the lease's machine by one of the next generation with the same setup; returns { generation }.
  virtual Async<Value> replace(FiberId fiber, std::string lease_id, Value options, std::string source) = 0;
  // When the lease's machine will be preempted, in seconds since 1970; null: the provider has sent no notice.
  virtual Async<Value> preempting(FiberId fiber, std::string lease_id, std::string source) = 0;
  // Makes the lease outlive its scope and its run: the home ends the lease after ttl_ms.
  virtual Async<> detach(FiberId fiber, std::string lease_id, std::int64_t ttl_ms, std::string source) = 0;
  // Moves the lease from the scope it was rented in to `scope`, which encloses the fiber's scope and then releases the
  // lease at its end. Does nothing if `scope` is gone or ending.
  virtual void keep_lease(FiberId fiber, const std::string& lease_id, ScopeId scope) = 0;
  // Current usage of the leases' machines, one element per lease: a reading (members: agent/usage.hpp), or { error } if
  // it cannot be asked.
  virtual Async<Value> telemetry(FiberId fiber, std::vector<std::string> lease_ids, std::string source) = 0;
  virtual Result<LeaseView> lease(const std::string& lease_id) const = 0;
  virtual Async<Value> call(FiberId fiber, std::string lease_id, CallSpec spec, std::string source) = 0;
  virtual Async<Value> stage(FiberId fiber, std::string lease_id, std::string from, std::string to, Value options,
                             std::string source) = 0;
  virtual Async<Value> get(FiberId fiber, std::string lease_id, std::string from, std::string to, Value options,
                           std::string source) = 0;

  // Changes the machine's type; returns { machine }. `options`: the fields of lease::Resize.
  virtual Async<Value> resize(FiberId fiber, std::string lease_id, Value options, std::string source) = 0;
  // Past spot prices: a list of objects. `query` is described at lease::ProviderQueries::price_history.
  virtual Async<Value> price_history(FiberId fiber, Value query, std::string source) = 0;
  // The accounts' quotas: a list of objects. `query` is described at lease::ProviderQueries::quotas.
  virtual Async<Value> quotas(FiberId fiber, Value query, std::string source) = 0;
  // The lease's current status, which is not recorded: { calls, left_s, over? }. calls: number of this run's calls and
  // transfers that use the lease; left_s: seconds until the lease's ttl; over: why the lease can no longer be used.
  virtual Result<Value> standing(const std::string& lease_id) const = 0;

  // Returns the home's volume of that name, or makes it; release() deletes it. `options.volumes` of rent() names leases
  // of volumes. lease/volumes.hpp has the errors.
  virtual Async<VolumeView> volume(FiberId fiber, std::string name, Value options, std::string source) = 0;
  virtual Result<VolumeView> volume_view(const std::string& lease_id) const = 0;
};

}  // namespace rille::engine
