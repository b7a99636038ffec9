// The journal's schema and its migrations. docs/design/journal.md explains the tables.
#pragma once

#include "runtime/core/store/sqlite.hpp"

namespace rille::store {

inline constexpr int journal_format = 1;

// Creates the tables in an empty file, or migrates an older format, in one transaction. Error `config`: a newer Rille
// wrote the file.
Result<> migrate(Db& db, const std::string& path);

}  // namespace rille::store
