// Turns a parse error into a structured error: the wrong word, what the user probably meant, and the command's usage.
// CLI11 detects the error; Rille writes the message.
#pragma once

#include <CLI/CLI.hpp>

#include "runtime/core/base/error.hpp"

namespace rille::cli {

// Converts `parse_error`, which cli.parse() threw, to an error of kind `invalid`.
Error usage_error(const CLI::App& cli, const CLI::ParseError& parse_error);

}  // namespace rille::cli
