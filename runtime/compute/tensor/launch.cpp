#include "runtime/compute/tensor/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/tensor/failure.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::kernels {

void launch(const Call& c) { c.payload->run(c); }

}  // namespace rille::kernels

namespace rille::tensor {

namespace {

// An error if a vector pointer is not aligned to its size: on a GPU such an access destroys the process's context, on a
// CPU it may fault.
std::optional<Error> misplaced(const Launching& what, std::size_t i, const kernels::View& v) {
  const auto& p = what.kernel->parameters()[i];
  if (p.lanes != 2 && p.lanes != 4) return {};
  const std::size_t wanted = std::min<std::size_t>(16, p.lanes * size_bytes(v.dtype));
  if (reinterpret_cast<std::uintptr_t>(v.data) % wanted == 0) return {};
  Error e = make_error(ErrorKind::invalid,
                       fmt::format("kernel {}: {} is {}: the tensor's address must be a multiple of {} bytes, but this "
                                   "tensor is a view that begins between two vectors",
                                   what.kernel->name(), what.kernel->parameter_name(i), device::describe(p), wanted),
                       "pass t:clone(), a copy whose address fits");
  if (!what.where.empty()) e.message += "; launched at " + what.where;
  return e;
}

class Payload final : public kernels::Payload {
 public:
  std::shared_ptr<const Launching> what;
  std::vector<device::LaunchArgument> arguments;  // holds parameters passed by value; run() fills in the pointers
  device::Executor* executor = nullptr;           // of the graph's device; it outlives the launch; null: the CPU
  std::vector<int> operands;                      // per parameter: i for in[i], -1 - i for out[i], no_operand for null
  static constexpr int no_operand = 1 << 20;

  bool breaks_off() const override { return what->kernel->apart(); }
  const char* name() const override { return what->kernel->name().c_str(); }

  bool same(const kernels::Payload& o) const override {
    const auto* other = dynamic_cast<const Payload*>(&o);
    if (!other || other->what->kernel != what->kernel || !(other->what->shape == what->shape) ||
        other->operands != operands)
      return false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (std::memcmp(arguments[i].value, other->arguments[i].value, sizeof arguments[i].value) != 0) return false;
    }
    return true;
  }

  void run(const kernels::Call& c) const override {
    auto mine = arguments;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (operands[i] == no_operand) continue;
      const kernels::View& v = operands[i] >= 0 ? c.in[operands[i]] : c.out[-1 - operands[i]];
      mine[i].pointer = v.data;
      mine[i].bytes = std::size_t(v.count()) * size_bytes(v.dtype);
      if (const auto e = misplaced(*what, i, v)) return fail_with(c, *e);
    }
    std::string said;
    auto ran = executor ? executor->launch(*what->kernel, what->shape, mine)
                        : what->kernel->run(what->shape, mine, said, [&c] { return c.stopped(); });
    if (!said.empty() && what->say) (*what->say)(std::move(said));
    if (ran || c.stopped()) return;
    Error e = std::move(ran).error();
    if (!what->where.empty()) e.message += "; launched at " + what->where;
    fail_with(c, e);
  }
};

const char* dtype_name(unsigned element) {
  switch (element) {
    case rille_abi::boolean: return "bool";
    case rille_abi::i8: return "i8";
    case rille_abi::u8: return "u8";
    case rille_abi::i32:
    case rille_abi::u32: return "i32";
    case rille_abi::i64:
    case rille_abi::u64_: return "i64";
    case rille_abi::f16: return "f16";
    case rille_abi::bf16: return "bf16";
    case rille_abi::f32: return "f32";
    case rille_abi::f64: return "f64";
    default: return nullptr;
  }
}

Error wrong(const Launching& what, std::size_t i, const std::string& expected, const std::string& given,
            std::string hint = {}) {
  const auto& k = *what.kernel;
  return make_error(ErrorKind::invalid,
                    fmt::format("kernel {}: {} is {}: expected {}, got {}", k.name(), k.parameter_name(i),
                                device::describe(k.parameters()[i]), expected, given),
                    std::move(hint));
}

Result<void> check_device(Graph& g, const device::Kernel& kernel) {
  if (kernel.arch().empty() == (g.device()->executor() == nullptr)) return success();
  return make_error(ErrorKind::invalid,
                    fmt::format("kernel {} was made for {}, and is launched on {}", kernel.name(),
                                kernel.arch().empty() ? "the cpu" : kernel.arch(), g.device()->name()),
                    "launch a kernel on the device that compiled it; dev:kernel(..) compiles it for another");
}

Result<void> check_pointer(Graph& g, const Launching& what, std::size_t i, const Tensor& t) {
  const auto& p = what.kernel->parameters()[i];
  const std::string given = fmt::format("{}{}", name_of(t.dtype()), to_string(t.shape()));
  if (const auto wanted = wanted_for(p, t.dtype()); !wanted.empty()) {
    return wrong(what, i, wanted, given,
                 fmt::format("cast it, or change the kernel's type of {}", what.kernel->parameter_name(i)));
  }
  if (t.device() != g.device()) {
    return wrong(what, i, "a tensor on " + g.device()->name(), fmt::format("{} on {}", given, t.device()->name()));
  }
  if (!t.is_contiguous()) {
    return wrong(what, i, "a contiguous tensor", given + " with gaps between its elements",
                 p.constant ? "pass t:contiguous()" : "copy it, launch on the copy, and copy_ the result back");
  }
  if (p.lanes > 1 && t.count() % p.lanes != 0) {
    return wrong(what, i, fmt::format("a multiple of {} elements", p.lanes), given);
  }
  if (!p.constant && g.grad_enabled() && t.requires_grad()) {
    return make_error(ErrorKind::state,
                      fmt::format("kernel {}: {} is {}: the kernel would write to it, but {} requires grad",
                                  what.kernel->name(), what.kernel->parameter_name(i), device::describe(p), given),
                      "launch inside no_grad, pass t:detach(), or make the parameter const");
  }
  return success();
}

}  // namespace

std::string wanted_for(const rille_abi::Parameter& p, DType dtype) {
  if (p.element == rille_abi::other || p.element == rille_abi::nothing) return "";  // a type that only the kernel knows
  const char* name = dtype_name(p.element);
  if (!name) return "nothing that a tensor holds";
  const std::string_view have = name_of(dtype);
  const bool bytes = p.element == rille_abi::u8 && have == "bool";
  return have == name || bytes ? "" : fmt::format("{} {} tensor", name[0] == 'f' || name[0] == 'i' ? "an" : "a", name);
}

Result<void> launch(Graph& g, const std::shared_ptr<const Launching>& what, const std::vector<LaunchValue>& values) {
  const auto& parameters = what->kernel->parameters();
  if (values.size() != parameters.size()) {
    return make_error(ErrorKind::invalid,
                      fmt::format("kernel {}: {} argument{}, expected {}", what->kernel->name(), values.size(),
                                  values.size() == 1 ? "" : "s", parameters.size()),
                      what->kernel->signature());
  }
  RILLE_CHECK(check_device(g, *what->kernel));
  auto payload = std::make_shared<Payload>();
  payload->what = what;
  payload->executor = g.device()->executor();
  payload->arguments.resize(values.size());
  payload->operands.assign(values.size(), Payload::no_operand);
  std::vector<Tensor> in, out;
  in.reserve(values.size());
  out.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& v = values[i];
    if (!parameters[i].pointer) {
      std::memcpy(payload->arguments[i].value, v.value, sizeof v.value);
      continue;
    }
    if (!v.tensor) continue;
    RILLE_CHECK(check_pointer(g, *what, i, v.tensor));
    // A written tensor is also an input; this keeps it alive until the launch has run.
    payload->operands[i] = parameters[i].constant ? int(in.size()) : -1 - int(out.size());
    in.push_back(v.tensor);
    if (!parameters[i].constant) out.push_back(v.tensor);
  }
  return record_launch(g, std::move(payload), in, out, what->stream);
}

}  // namespace rille::tensor
