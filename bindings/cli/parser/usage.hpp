// A command line that cannot be understood, as a structured error: what is wrong with which word, what was probably
// meant, and the usage of the command it was written for. CLI11 finds the fault; the words are Rille's own.
#pragma once

#include <CLI/CLI.hpp>

#include "runtime/core/base/error.hpp"

namespace rille::cli {

// `parse_error` came out of cli.parse(). The error's kind is `invalid`.
Error usage_error(const CLI::App& cli, const CLI::ParseError& parse_error);

}  // namespace rille::cli
