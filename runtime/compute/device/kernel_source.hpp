// Finds the kernels in a user's CUDA C++ text and the names of their parameters. This is not a compiler: a kernel that
// it cannot recognise (made by a macro) is not listed, and types are left to the compiler. Text below #if 0 is skipped.
// The text is also rewritten for the CPU; every line stays in place:
//
//   extern __shared__ float s[];                  becomes a pointer to the block's dynamic shared memory
//   blockIdx.x * blockDim.x + threadIdx.x         becomes rille_at_x, which GCC can optimise (kernels/shim/core.h)
//
// A source is "flat" if its threads use only this sum as index and never wait: then all blocks run as one loop.
//
// Accepts any bytes; results do not point into the text. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/shim/abi.h"
#include "runtime/core/base/result.hpp"

namespace rille::device {

struct KernelParameter {
  std::string type;  // the type as written in the source, with single blanks
  std::string name;  // "": the parameter has no name
};

struct KernelDeclaration {
  std::string name;  // qualified name: a::scale in namespace a
  std::vector<KernelParameter> parameters;
  bool is_template = false;
  bool is_c = false;  // whether extern "C" precedes the kernel
  bool has_body = false;
  int line = 1;         // line of the kernel's name in the source, from 1
  std::string returns;  // "int", if the return type is certainly not void
};

struct KernelSource {
  std::vector<KernelDeclaration> kernels;  // in the order of the text; each name once
  std::string cpu_text;                    // the text rewritten for the CPU, with as many lines as the source
  std::vector<std::string> own_types;  // names of the shim that the source defines itself: typedef long long int64_t
  bool flat = true;
  bool makes_kernels = false;  // a macro with parameters defines kernels: only the compiler knows their names

  // Finds a kernel by its qualified name, or without the namespace if only one kernel has that name; null: none.
  const KernelDeclaration* find(std::string_view name) const;
};

constexpr std::size_t kernel_source_bytes_max = 1u << 20;

// Error of kind invalid: the text is too long, has a zero byte or an unclosed comment, string or bracket.
Result<KernelSource> read_kernel_source(std::string_view text);

// Tells which value a launch must give for a parameter of this type: "float const*", "const unsigned int *",
// "__nv_bfloat16". For types that are not plain numbers the element is `other`.
rille_abi::Parameter parameter_of(std::string_view type);
// Splits "void scale<float, 4>(float*, int)" into {"float*", "int"}.
std::vector<std::string> parameter_types_of(std::string_view demangled);

// The element type of a variable, f32 for "float const [4]"; `other` unless it is a number or an array of numbers.
unsigned element_of_variable(std::string type);
// The element type of a __constant__ variable, from its declaration in the source: `__constant__ float name[..]`.
// `other` if there is no declaration that this function can read.
unsigned constant_element(std::string_view text, const std::string& name);

// The type of a parameter for error messages: "const float*", "int", "float4".
std::string describe(const rille_abi::Parameter& parameter);

}  // namespace rille::device
