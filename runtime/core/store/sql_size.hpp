// How large a statement becomes when SQLite puts the text of each view, and of each table of WITH, where its name is
// used. SQLite compiles that without a limit, and does not call the progress handler: forty lines can take all memory,
// and a chain of names the stack.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rille::store {

// `schema`: names and texts of the views, and of triggers, which count themselves. Rather too much than too little:
// whatever looks like the name of one counts. Infinite: names that use one another in more than 200 levels.
double expanded_bytes(std::string_view sql, const std::vector<std::pair<std::string, std::string>>& schema);

}  // namespace rille::store
