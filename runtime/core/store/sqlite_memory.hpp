// For a program that is Rille's alone, before it opens any database: SQLite keeps no count of its memory. For that
// count it locks and unlocks with each allocation, which is a sixth of a statement's time. A host program may want to
// read it, so the library leaves it alone. Without effect once SQLite is in use.
#pragma once

namespace rille::store {

void count_no_memory();

}  // namespace rille::store
