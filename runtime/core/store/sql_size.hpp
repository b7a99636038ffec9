// The size of a statement after SQLite has replaced each name of a view, and of a table of WITH, by its text. SQLite
// does this without a limit and without calling the progress handler: forty lines of SQL can take all memory, and a
// long chain of names can overflow the stack.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rille::store {

// `schema`: names and texts of the views and triggers; triggers count themselves. The result is rather too large than
// too small: every word that equals such a name counts. Infinite: the names refer to one another in more than 200
// levels.
double expanded_bytes(std::string_view sql, const std::vector<std::pair<std::string, std::string>>& schema);

}  // namespace rille::store
