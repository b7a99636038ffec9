// Prefixes of command lines that run other programs confined, by rille-kernel (serve.hpp). Error of kind device: that
// program is missing. Any thread.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::device {

// The path of rille-kernel.
Result<std::string> kernel_program();

// For `compiler`: it can read its headers, its own files and `readable`, and write below `folder`. Blocks at the first
// call for a compiler, which is asked for its folders.
Result<std::vector<std::string>> confined_compiler(const std::string& compiler, const std::string& folder,
                                                   const std::vector<std::string>& readable);
// For a system program that reads one file.
Result<std::vector<std::string>> confined_reader(const std::string& file);

// The names of all variables in this process's environment except `kept`: a confined process does not get them.
std::vector<std::string> environment_without(std::initializer_list<std::string_view> kept);

}  // namespace rille::device
