// What NVRTC is asked about a kernel besides its code: the types of its parameters and of its constants, which a text
// with macros and typedefs does not tell. The answers are names of instances of an empty kernel, made for nothing else.
// Private to kernel_nvrtc.cpp and to its stand-in of the tests. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/shim/abi.h"

namespace rille::device {

constexpr std::string_view typeof_name = "rille_types_of";

// In front of the source, on lines of a file of its own. Each name in it is Rille's: N may be a macro.
std::string_view typeof_text();
// The questions: expressions for nvrtcAddNameExpression.
std::string typeof_kernel(const std::string& name);
std::string typeof_variable(const std::string& name);

// An answer.
struct TypeOf {
  std::string type;             // "void (*)(float*, P)", "float const [4]"
  std::vector<unsigned> sizes;  // of each parameter, or of the variable
};
// From the lowered name of a question; nothing when it is none.
std::optional<TypeOf> read_typeof(const std::string& lowered);

// "_Z5scalePf" -> "scale(float*)"; "" for what is not mangled.
std::string demangled(const std::string& lowered);
// Of a kernel's answer: what parameter_of says, and the bytes of what it does not know.
std::vector<rille_abi::Parameter> parameters_of(const TypeOf& kernel);

}  // namespace rille::device
