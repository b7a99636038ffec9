// A command line that cannot be understood, as a structured error: what is wrong with which word, what was probably
// meant, and the usage of the command it was written for. CLI11 finds the fault; the words are Rille's own.
#pragma once

#include <CLI/CLI.hpp>

#include "runtime/core/base/error.hpp"

namespace rille::cli {

// `parse_error` came out of cli.parse(). The error's kind is `invalid`.
Error usage_error(const CLI::App& cli, const CLI::ParseError& parse_error);

// completion.cpp: what a shell reads to complete our words. `shell`: bash, zsh or fish.
std::string completion_of(const CLI::App& cli, const std::string& shell);

// The check of an option: a number that is at least so much, or above it.
CLI::Validator number_from(double least, bool above = false);

}  // namespace rille::cli
