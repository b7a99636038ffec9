// The beginnings of command lines that run other programs confined, by rille-kernel (serve.hpp). Error of kind device:
// that program is missing. Any thread.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::device {

// The path of rille-kernel.
Result<std::string> kernel_program();

// For `compiler`: it can read its headers, itself and `readable`, and write below `folder`. Blocks when it is first
// called for a compiler, which is asked for its folders.
Result<std::vector<std::string>> confined_compiler(const std::string& compiler, const std::string& folder,
                                                   const std::vector<std::string>& readable);
// For a program of the system that reads one file.
Result<std::vector<std::string>> confined_reader(const std::string& file);

// The names of all variables of this process's environment except `kept`: they are removed for a confined process.
std::vector<std::string> environment_without(std::initializer_list<std::string_view> kept);

}  // namespace rille::device
