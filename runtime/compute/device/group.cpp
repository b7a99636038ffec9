#include "runtime/compute/device/group.hpp"

#include <fmt/format.h>

#include <string_view>

#include "kernels/cuda/group.hpp"
#include "runtime/compute/device/kernel_build.hpp"

namespace rille::device {

namespace group_text {
#define RILLE_TEXT(name)    \
  extern const char name[]; \
  extern const std::size_t name##_bytes;
RILLE_TEXT(params) RILLE_TEXT(walk) RILLE_TEXT(arithmetic) RILLE_TEXT(functions) RILLE_TEXT(group)
#undef RILLE_TEXT
}  // namespace group_text

namespace {

// Concatenates the CUDA headers that groups use, without the lines by which they include each other.
const std::string& common_text() {
  static const std::string text = [] {
    using namespace group_text;
    std::string all;
    for (const std::string_view part : {std::string_view{params, params_bytes},
                                        {walk, walk_bytes},
                                        {arithmetic, arithmetic_bytes},
                                        {functions, functions_bytes},
                                        {group, group_bytes}}) {
      for (std::size_t at = 0; at < part.size();) {
        const auto end = std::min(part.find('\n', at), part.size());
        const auto line = part.substr(at, end - at);
        if (!line.starts_with("#include \"") && !line.starts_with("#pragma once")) all.append(line).append("\n");
        at = end + 1;
      }
    }
    return all;
  }();
  return text;
}

const char* type_of(DType t) {
  switch (t) {
    case DType::f64: return "double";
    case DType::f16: return "Half";
    case DType::bf16: return "Brain";
    case DType::i64: return "Long";
    case DType::i32: return "int";
    case DType::i8: return "Small";
    case DType::u8:
    case DType::boolean: return "Byte";
    default: return "float";
  }
}

class Writer {
 public:
  Writer(const kernels::Fused& group, const kernels::Call& call) : group_(group), call_(call) {
    for (int k = 0; k < call.n_in; ++k) value_[k] = fmt::format("a{}.at[v]", k);
  }

  std::string run() {
    const int operands = call_.n_in + call_.n_out;
    std::string text = fmt::format(
        "using namespace rille::kernels::cuda;\n"
        "extern \"C\" __global__ void __launch_bounds__(256) {}(GIVEN Windows<{}> w, GIVEN Numbers<{}> n) {{\n"
        "  each_unit<{}>(w, [&](auto count, const Long(&at)[{}]) {{\n"
        "    constexpr int V = decltype(count)::value;\n",
        group_kernel, operands, 2 * group_.n_steps, kernels::cuda::group_pack(call_), operands);
    for (int k = 0; k < call_.n_in; ++k)
      text += fmt::format("    const auto a{0} = fetch<{1}, V>(w, {0}, at[{0}]);\n", k, type_of(call_.in[k].dtype));
    for (int k = 0; k < call_.n_out; ++k) text += fmt::format("    Pack<{}, V> b{};\n", type_of(call_.out[k].dtype), k);
    text += "#pragma unroll\n    for (int v = 0; v < V; ++v) {\n";
    for (int k = 0; k < group_.n_steps; ++k) text += step(k);
    for (int k = 0; k < call_.n_out; ++k) text += fmt::format("      b{}.at[v] = {};\n", k, value_[call_.n_in + k]);
    text += "    }\n";
    for (int k = 0; k < call_.n_out; ++k) text += fmt::format("    put(w, {0}, at[{0}], b{1});\n", call_.n_in + k, k);
    return text + "  });\n}\n";
  }

 private:
  std::string operand(int k, int j) const {
    const auto& s = group_.steps[k];
    if (s.place[j] < 0) return fmt::format("{}(n.at[{}])", type_of(s.dtype[j]), 2 * k);
    return fmt::format("widen({})", value_[s.place[j]]);
  }

  std::string step(int k) {
    const auto& s = group_.steps[k];
    const int last = s.answer.operands - 1;
    const DType to = s.dtype[last];
    const std::string_view kernel = kernels::kernel_name(s.op);
    std::string what;
    if (kernel == "where") {
      what = fmt::format("{} ? {} : {}", value_[s.place[0]], value_[s.place[1]], value_[s.place[2]]);
    } else if (kernel == "copy") {
      what = to == DType::boolean ? fmt::format("converted<Bool>({}).value", value_[s.place[0]])
                                  : fmt::format("converted<{}>({})", type_of(to), value_[s.place[0]]);
    } else {
      const bool logical = kernel == "bitwise_not" && to == DType::boolean;
      what = fmt::format("{}<F_{}, {}>({}{}{}, n.at[{}], n.at[{}])", last == 1 ? "one" : "two",
                         logical ? "logical_not" : kernel, type_of(to), operand(k, 0), last == 1 ? "" : ", ",
                         last == 1 ? "" : operand(k, 1), 2 * k, 2 * k + 1);
    }
    value_[s.place[last]] = fmt::format("s{}", k);
    return fmt::format("      const {} s{} = {};\n", type_of(to), k, what);
  }

  const kernels::Fused& group_;
  const kernels::Call& call_;
  // C++ expression of each operand's or result's current value
  std::string value_[kernels::Fused::most_operands + kernels::Fused::most_pieces];
};

}  // namespace

std::string group_source(const kernels::Fused& group, const kernels::Call& call) {
  return common_text() + Writer(group, call).run();
}

Result<Cubin> build_group(const std::string& source, const std::string& arch, const std::string& cache) {
  KernelOptions options;
  options.name = group_kernel;
  options.file = "group";
  options.cache = cache;
  options.flags = {"--fmad=false", "-diag-suppress=177,186"};
  return build_for_cuda(source, {}, group_kernel, options, arch);
}

}  // namespace rille::device
