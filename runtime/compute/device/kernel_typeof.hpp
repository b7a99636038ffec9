// Questions to NVRTC about a kernel: the types of its parameters and constants, which a text with macros and typedefs
// does not tell. The answers are the names of instances of an empty kernel, which exists only for that.
// Private to kernel_nvrtc.cpp and the tests' fake NVRTC. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/shim/abi.h"

namespace rille::device {

constexpr std::string_view typeof_name = "rille_types_of";

// Text before the source, with its own file name in line directives. All its names begin with rille_: N may be a macro.
std::string_view typeof_text();
// The questions: expressions for nvrtcAddNameExpression.
std::string typeof_kernel(const std::string& name);
std::string typeof_variable(const std::string& name);

// The answer to a question.
struct TypeOf {
  std::string type;             // "void (*)(float*, P)", "float const [4]"
  std::vector<unsigned> sizes;  // bytes of each parameter, or of the variable
};
// Reads the lowered name of a question; nullopt if it is not an answer.
std::optional<TypeOf> read_typeof(const std::string& lowered);

// "_Z5scalePf" -> "scale(float*)"; "" if it is not mangled.
std::string demangled(const std::string& lowered);
// Parameters from a kernel's answer: as by parameter_of, with the size of unknown types.
std::vector<rille_abi::Parameter> parameters_of(const TypeOf& kernel);

}  // namespace rille::device
