// The journal's schema and its migrations. docs/design/journal.md explains the tables.
#pragma once

#include "runtime/core/store/sqlite.hpp"

namespace rille::store {

inline constexpr int journal_format = 1;

// Creates the tables in an empty file, or brings an older file up to date, in one transaction. Error `config`: a newer
// Rille, or an unknown development version, wrote the file.
Result<> migrate(Db& db, const std::string& path);

}  // namespace rille::store
