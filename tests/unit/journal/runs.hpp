// A row of a run, for tests of the journal.
#pragma once

#include <string>

#include "runtime/core/store/sqlite.hpp"

namespace rille::store {

inline Result<> add_run(Db& db, const std::string& id, std::int64_t epoch) {
  return db.run(
      "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid) "
      "VALUES(?,'x','durable','running',?,'{}',0,0,'h',1)",
      {id, epoch});
}

}  // namespace rille::store
