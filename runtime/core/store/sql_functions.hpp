// Replacements for SQL functions that take quadratic time, in linear time: instr, replace, and trim, ltrim, rtrim with
// the characters to remove. SQLite does not interrupt a function, so a script could block the thread with long texts.
#pragma once

#include <sqlite3.h>

namespace rille::store {

void add_linear_functions(sqlite3* db);

}  // namespace rille::store
