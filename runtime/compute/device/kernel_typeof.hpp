// Finds the types of a kernel's parameters and constants with NVRTC, since macros and typedefs hide them in the text.
// We ask NVRTC for the mangled name of an empty kernel template, instantiated with the type in question: the name
// contains the type. Private to kernel_nvrtc.cpp and the tests' fake NVRTC. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/shim/abi.h"

namespace rille::device {

constexpr std::string_view typeof_name = "rille_types_of";

// The template's text, placed before the source, with line directives that name a file of ours. All names in it begin
// with rille_: a shorter name such as N may be a macro of the user.
std::string_view typeof_text();
// Expressions for nvrtcAddNameExpression: the template instantiated for a kernel, or for a variable.
std::string typeof_kernel(const std::string& name);
std::string typeof_variable(const std::string& name);

// The contents of a mangled name of a kernel or a variable.
struct TypeOf {
  std::string type;             // for a kernel "void (*)(float*, P)", for a variable "float const [4]"
  std::vector<unsigned> sizes;  // size in bytes of each parameter, or of the variable
};
// Reads the mangled name that NVRTC gives for one of the expressions above; nullopt: it is another name.
std::optional<TypeOf> read_typeof(const std::string& lowered);

// Demangles "_Z5scalePf" to "scale(float*)"; "" if the name is not mangled.
std::string demangled(const std::string& lowered);
// The parameters of a kernel as parameter_of() (kernel_source.hpp) describes them, with sizes also for unknown types.
std::vector<rille_abi::Parameter> parameters_of(const TypeOf& kernel);

}  // namespace rille::device
