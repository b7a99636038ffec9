// Turns a parse error into a structured error: which word is wrong, what was probably meant, and the command's usage.
// CLI11 finds the error; the text is Rille's.
#pragma once

#include <CLI/CLI.hpp>

#include "runtime/core/base/error.hpp"

namespace rille::cli {

// `parse_error` was thrown by cli.parse(). The result's kind is `invalid`.
Error usage_error(const CLI::App& cli, const CLI::ParseError& parse_error);

}  // namespace rille::cli
