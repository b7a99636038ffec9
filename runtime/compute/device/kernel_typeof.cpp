#include "runtime/compute/device/kernel_typeof.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>

#include "runtime/compute/device/kernel_source.hpp"

namespace rille::device {

std::string_view typeof_text() {
  return R"(#line 1 "rille_types"
template <unsigned long long... rille_n> struct rille_sizes {};
template <class rille_f> struct rille_of;
template <class... rille_p>
struct rille_of<void (*)(rille_p...)> { typedef rille_sizes<sizeof(rille_p)...> rille_all; };
template <class rille_t, class rille_s> __global__ void rille_types_of() {}
)";
}

std::string typeof_kernel(const std::string& name) {
  return fmt::format("{0}<decltype(&{1}), rille_of<decltype(&{1})>::rille_all>", typeof_name, name);
}

std::string typeof_variable(const std::string& name) {
  return fmt::format("{0}<decltype({1}), rille_sizes<sizeof({1})>>", typeof_name, name);
}

std::string demangled(const std::string& lowered) {
  if (!lowered.starts_with("_Z")) return {};  // the demangler reads a plain "f" as the type float
  int status = 0;
  char* const text = abi::__cxa_demangle(lowered.c_str(), nullptr, nullptr, &status);
  std::string out = text ? text : "";
  std::free(text);
  return out;
}

// Parses the demangled name: void rille_types_of<void (*)(float*, P), rille_sizes<8ull, 16ull> >()
std::optional<TypeOf> read_typeof(const std::string& lowered) {
  constexpr std::string_view between = ", rille_sizes<";
  const std::string text = demangled(lowered);
  const std::string front = fmt::format("void {}<", typeof_name);
  const auto cut = text.rfind(between);
  if (!text.starts_with(front) || cut == text.npos) return std::nullopt;
  TypeOf out{text.substr(front.size(), cut - front.size()), {}};
  const char* at = text.c_str() + cut + between.size();
  for (char* end = nullptr; *at >= '0' && *at <= '9'; at = end) {
    out.sizes.push_back(unsigned(std::strtoull(at, &end, 10)));
    while (*end == 'u' || *end == 'l' || *end == ',' || *end == ' ') ++end;
  }
  return out;
}

std::vector<rille_abi::Parameter> parameters_of(const TypeOf& kernel) {
  std::vector<rille_abi::Parameter> out;
  for (const auto& type : parameter_types_of(kernel.type)) {
    auto p = parameter_of(type);
    const unsigned size = out.size() < kernel.sizes.size() ? kernel.sizes[out.size()] : 0;
    if (!p.pointer && p.size != size && !type.ends_with('&')) p = {0, rille_abi::other, 1, 0, size};
    out.push_back(p);
  }
  return out;
}

}  // namespace rille::device
