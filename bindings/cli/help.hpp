// `rille --help`: the table of commands as a page.
#pragma once

#include <string>

namespace rille::cli {

std::string help_page();

}  // namespace rille::cli
