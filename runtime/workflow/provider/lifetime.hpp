// What a provider says of the time for which a machine costs, beside when it was created: since when it runs, and since
// when it ends or has ended. Few say either; whoever counts money believes them before its own clock. Both are read by
// the provider's clock, but for what lease::Manager::describe gives, which is by ours. And a machine that is known from
// its create call alone: its provider does not show it yet, so nobody says if it runs.
// Any thread.
#pragma once

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

inline void tell_running(Machine& m, std::int64_t since_wall_us) { m.details.set("running_wall_us", since_wall_us); }
inline void tell_ended(Machine& m, std::int64_t at_wall_us) { m.details.set("ended_wall_us", at_wall_us); }
// 0: it does not say.
inline std::int64_t running_since_us(const Machine& m) { return m.details.integer("running_wall_us"); }
inline std::int64_t ended_at_us(const Machine& m) { return m.details.integer("ended_wall_us"); }

inline void mark_unseen(Machine& m) { m.details.set("unseen", true); }
inline bool is_unseen(const Machine& m) { return m.details.boolean("unseen"); }

}  // namespace rille::provider
