// Copies between files of this machine and object stores: one object, those of a pattern (stage_plan.hpp), or all
// below a prefix or in a folder. Files and objects that exist are replaced. Errors: those of store_files.hpp and
// find_objects; invalid if both or neither of the places is in a store, or if a key is not a path below the folder
// ("../x"). Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/base/result.hpp"
#include "runtime/core/loop/cancel.hpp"
#include "runtime/core/loop/task.hpp"

namespace rille {
class Loop;
}

namespace rille::transfer {

struct StoreCopy {
  std::string from, to;  // one is an address in a store; a target that ends in "/", or is a folder, keeps the name
  bool recursive = false;
  // called while files are copied: files and bytes so far, and files in all; may be null
  std::function<void(std::int64_t files, std::int64_t bytes, std::int64_t files_in_all)> moved;
};
struct Copied {
  std::int64_t files = 0, bytes = 0;
};
Async<Copied> copy_with_store(Loop& loop, StoreCopy copy, CancelToken token);

}  // namespace rille::transfer
