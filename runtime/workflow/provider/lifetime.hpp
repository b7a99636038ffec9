// Optional times in Machine::details, reported by the provider: when the machine began to run, and when its end began.
// Billing prefers these to the local clock. Both are times of the provider's clock; lease::Manager::describe converts
// them to the local clock. Also two marks. "unseen": the machine is known only from its create call, since the
// provider does not list it yet. "costs": the machine runs already, and is pending only since its volumes are not
// attached yet. Any thread.
#pragma once

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

inline void tell_running(Machine& m, std::int64_t since_wall_us) { m.details.set("running_wall_us", since_wall_us); }
inline void tell_ended(Machine& m, std::int64_t at_wall_us) { m.details.set("ended_wall_us", at_wall_us); }
// When the machine began to run, in microseconds; 0: unknown.
inline std::int64_t running_since_us(const Machine& m) { return m.details.integer("running_wall_us"); }
inline std::int64_t ended_at_us(const Machine& m) { return m.details.integer("ended_wall_us"); }

inline void mark_unseen(Machine& m) { m.details.set("unseen", true); }
inline bool is_unseen(const Machine& m) { return m.details.boolean("unseen"); }
inline void mark_costs(Machine& m) { m.details.set("costs", true); }
inline bool costs_already(const Machine& m) { return m.details.boolean("costs"); }

}  // namespace rille::provider
