// Every declared operation (tests/unit/tensor/declared_*.cpp) by its CUDA kernels: values in every type and layout, and
// gradients, against the CPU's kernels.
#include <random>

#include "compared.hpp"

namespace rille::tensor {
namespace {

std::vector<Operation> all_operations() {
  std::vector<Operation> all;
  for (auto list : {elementwise(), activations(), products(), shapes(), reductions(), networks(), indexing(), images(),
                    attention_and_losses(), fourier()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

Tensors inputs(Graph& g, const Operation& o, std::mt19937& random, DType dtype, bool grad, Layout layout) {
  Tensors out;
  for (const auto& a : o.arguments) {
    std::uniform_real_distribution<double> u(a.low, a.high);
    Numbers values;
    for (std::int64_t i = 0; i < a.shape.count(); ++i) values.push_back(double(float(u(random))));
    out.push_back(input(g, a, values, dtype, layout).detach());
    if (grad && a.gradient) get(out.back().set_requires_grad(true));
  }
  return out;
}

}  // namespace

TEST_CASE("each operation: CUDA's kernels agree with the CPU's", "[unit][cuda][checked]") {
  Compared compared;
  std::mt19937 random(11);
  for (const auto& o : all_operations()) {
    for (const DType t : o.types) {
      for (const Layout layout : {Layout::plain, Layout::turned, Layout::window, Layout::repeated}) {
        compared.now(o.name + " in " + name_of(t) + ", layout " + std::to_string(int(layout)));
        const bool grad = o.gradient && is_floating(t) && layout == Layout::plain;
        const auto in = inputs(*compared.graph, o, random, t, grad, layout);
        const auto out = get(o.run(in));
        if (grad) {
          const Numbers weights(std::size_t(out.count()), 0.75);
          const auto w = get(from_numbers(out.graph(), out.shape(), out.dtype(), weights));
          get(backward(get(sum(get(mul(out, w))))));
          for (std::size_t a = 0; a < in.size(); ++a)
            if (o.arguments[a].gradient && in[a].grad()) get(in[a].graph().read_blocking(in[a].grad()));
        }
        get(out.graph().read_blocking(out));
      }
    }
  }
  compared.check();
}

TEST_CASE("every operation has a launch on CUDA", "[unit][cuda]") {
  // A user's kernel is launched by the device itself; a view runs nothing.
  for (int id = 0; id < int(OpId::count); ++id) {
    const Op& op = op_of(OpId(id));
    INFO(op.name);
    CHECK(int(op.id) == id);
    CHECK((kernels::cuda::launch_of(op.id) != nullptr) == (op.kernel && op.id != OpId::launch));
  }
}

}  // namespace rille::tensor
