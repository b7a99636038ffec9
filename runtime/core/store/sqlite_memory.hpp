// Turns off SQLite's memory statistics, whose lock per allocation takes a sixth of a statement's time. Only for Rille's
// own programs, before any database is opened: a host program may want the statistics. Without effect once SQLite is in
// use.
#pragma once

namespace rille::store {

void count_no_memory();

}  // namespace rille::store
