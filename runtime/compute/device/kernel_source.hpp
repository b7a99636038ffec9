// Reads the text of a user's CUDA C++: which kernels it has, and what their parameters are called. It is no compiler:
// what it does not understand (a kernel that a macro makes) it does not list, and the compiler has the last word on
// types. What stands below #if 0 is not there. And it rewrites the text for the CPU, without moving a line:
//
//   extern __shared__ float s[];                  becomes a pointer to the block's dynamic shared memory
//   blockIdx.x * blockDim.x + threadIdx.x         becomes rille_at_x, through which GCC can see (kernels/shim/core.h)
//
// A source in which threads know nothing but that sum, and never wait, is flat: all threads of all blocks are one loop.
//
// Any bytes may come in; nothing is kept of them. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/shim/abi.h"
#include "runtime/core/base/result.hpp"

namespace rille::device {

struct KernelParameter {
  std::string type;  // as written, blanks made one
  std::string name;  // "" when it has none
};

struct KernelDeclaration {
  std::string name;  // a::scale in namespace a
  std::vector<KernelParameter> parameters;
  bool is_template = false;
  bool is_c = false;  // extern "C" in front of it
  bool has_body = false;
  int line = 1;         // of its name
  std::string returns;  // "int", when it is surely not void
};

struct KernelSource {
  std::vector<KernelDeclaration> kernels;  // each name once, in the order of the text
  std::string cpu_text;                    // as many lines as the source
  std::vector<std::string> own_types;      // typedef long long int64_t: names of the shim's, which it makes its own
  bool flat = true;
  bool makes_kernels = false;  // by a macro with parameters: only a compiler knows their names

  // Without its namespace, too, where one alone is called so.
  const KernelDeclaration* find(std::string_view name) const;
};

constexpr std::size_t kernel_source_bytes_max = 1u << 20;

// invalid: too long, a zero byte, a comment, a string or a bracket that does not end; each names its line.
Result<KernelSource> read_kernel_source(std::string_view text);

// "float const*", "const unsigned int *", "__nv_bfloat16" -> what a launch has to give for it. Element `other` for a
// type that is none of the plain ones.
rille_abi::Parameter parameter_of(std::string_view type);
// "void scale<float, 4>(float*, int)" -> {"float*", "int"}
std::vector<std::string> parameter_types_of(std::string_view demangled);

// "float const [4]" -> f32, `other` for all but plain numbers and arrays of them.
unsigned element_of_variable(std::string type);
// The same by the text alone: of `__constant__ float name[..]`. `other` when there is no such declaration that it
// understands.
unsigned constant_element(std::string_view text, const std::string& name);

// How a parameter is called in an error: "const float*", "int", "float4".
std::string describe(const rille_abi::Parameter& parameter);

}  // namespace rille::device
