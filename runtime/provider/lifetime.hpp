// A machine that is known from its create call alone: its provider does not show it yet, so nobody says if it runs.
// Any thread.
#pragma once

#include "runtime/provider/types.hpp"

namespace rille::provider {

inline void mark_unseen(Machine& m) { m.details.set("unseen", true); }
inline bool is_unseen(const Machine& m) { return m.details.boolean("unseen"); }

}  // namespace rille::provider
