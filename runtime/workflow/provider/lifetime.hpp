// Optional times of a machine from its provider: since when it runs, and when its end began. Billing prefers these to
// the local clock. Both are by the provider's clock, except from lease::Manager::describe, which converts them. Also
// the mark of an unseen machine: known from its create call only, since the provider does not list it yet. Any thread.
#pragma once

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

inline void tell_running(Machine& m, std::int64_t since_wall_us) { m.details.set("running_wall_us", since_wall_us); }
inline void tell_ended(Machine& m, std::int64_t at_wall_us) { m.details.set("ended_wall_us", at_wall_us); }
// 0: unknown.
inline std::int64_t running_since_us(const Machine& m) { return m.details.integer("running_wall_us"); }
inline std::int64_t ended_at_us(const Machine& m) { return m.details.integer("ended_wall_us"); }

inline void mark_unseen(Machine& m) { m.details.set("unseen", true); }
inline bool is_unseen(const Machine& m) { return m.details.boolean("unseen"); }

}  // namespace rille::provider
