// Turns off SQLite's memory statistics, because their lock takes a sixth of a statement's time. Call it only in Rille's
// own programs, before any database is opened: a host program that embeds Rille may want the statistics. The call has
// no effect once SQLite is in use.
#pragma once

namespace rille::store {

void count_no_memory();

}  // namespace rille::store
