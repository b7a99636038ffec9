// Reads the text of a user's CUDA C++: its kernels and the names of their parameters. It is not a compiler: kernels
// that it cannot recognise (made by a macro) are not listed, and the compiler decides on types. Text below #if 0 is
// skipped. It also rewrites the text for the CPU, keeping every line in place:
//
//   extern __shared__ float s[];                  becomes a pointer to the block's dynamic shared memory
//   blockIdx.x * blockDim.x + threadIdx.x         becomes rille_at_x, which GCC can optimise (kernels/shim/core.h)
//
// A source whose threads use only that sum and never wait is flat: all threads of all blocks run as one loop.
//
// Accepts any bytes and keeps none of them. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/shim/abi.h"
#include "runtime/core/base/result.hpp"

namespace rille::device {

struct KernelParameter {
  std::string type;  // as written, with single blanks
  std::string name;  // "" if it has none
};

struct KernelDeclaration {
  std::string name;  // qualified: a::scale in namespace a
  std::vector<KernelParameter> parameters;
  bool is_template = false;
  bool is_c = false;  // preceded by extern "C"
  bool has_body = false;
  int line = 1;         // of its name
  std::string returns;  // "int", if it is certainly not void
};

struct KernelSource {
  std::vector<KernelDeclaration> kernels;  // each name once, in the order of the text
  std::string cpu_text;                    // the same number of lines as the source
  std::vector<std::string> own_types;      // the shim's names that it defines itself: typedef long long int64_t
  bool flat = true;
  bool makes_kernels = false;  // by a macro with parameters: only the compiler knows their names

  // The kernel, also without its namespace if that is unambiguous; null: none.
  const KernelDeclaration* find(std::string_view name) const;
};

constexpr std::size_t kernel_source_bytes_max = 1u << 20;

// invalid: too long, a zero byte, or an unclosed comment, string or bracket, with its line.
Result<KernelSource> read_kernel_source(std::string_view text);

// "float const*", "const unsigned int *", "__nv_bfloat16" -> the value that a launch must give for it. Element `other`
// for other than plain types.
rille_abi::Parameter parameter_of(std::string_view type);
// "void scale<float, 4>(float*, int)" -> {"float*", "int"}
std::vector<std::string> parameter_types_of(std::string_view demangled);

// "float const [4]" -> f32; `other` for all but plain numbers and arrays of them.
unsigned element_of_variable(std::string type);
// The same from the source's text alone: `__constant__ float name[..]`. `other` if it finds no declaration that it can
// read.
unsigned constant_element(std::string_view text, const std::string& name);

// The type of a parameter for error messages: "const float*", "int", "float4".
std::string describe(const rille_abi::Parameter& parameter);

}  // namespace rille::device
