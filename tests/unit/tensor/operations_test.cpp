// Every declared operation in every type it names: its value against a plain f64 reference, on strided, offset and
// broadcast inputs, too; its gradient in f64 against finite differences, and in the other types against f64; compiled
// against plain, bit for bit.
#include <random>

#include "operation.hpp"

namespace rille::tensor {
namespace {

using namespace declared;

std::vector<Operation> all_operations() {
  std::vector<Operation> all;
  for (auto list : {elementwise(), activations(), products(), shapes(), reductions(), networks(), indexing(), images(),
                    attention_and_losses(), fourier()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

double tolerance_of(DType t) {
  switch (t) {
    case DType::f64: return 1e-12;
    case DType::f32: return 3e-6;
    case DType::f16: return 4e-3;
    case DType::bf16: return 3e-2;
    default: return 0;
  }
}

Numbers draw(const Argument& a, std::mt19937& random) {
  std::uniform_real_distribution<double> u(a.low, a.high);
  Numbers out;
  for (std::int64_t i = 0; i < a.shape.count(); ++i) out.push_back(double(float(u(random))));  // exact in f32
  return out;
}

Tensors inputs(Graph& g, const Operation& o, const std::vector<Numbers>& values, DType dtype, bool grad,
               Layout layout = Layout::plain) {
  Tensors out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.push_back(input(g, o.arguments[i], values[i], dtype, layout).detach());
    if (grad && o.arguments[i].gradient) get(out.back().set_requires_grad(true));
  }
  return out;
}

// What the tensors hold, read at once: on a busy machine each read waits for its turn.
std::vector<Numbers> held(const Tensors& tensors) {
  Tensors flat;
  for (const auto& t : tensors) flat.push_back(get(flatten(get(cast(t.detach(), DType::f64)))));
  std::vector<Numbers> out;
  if (flat.empty()) return out;
  const auto all = numbers(get(cat(flat, 0)));
  auto at = all.begin();
  for (const auto& t : flat) {
    out.emplace_back(at, at + t.count());
    at += t.count();
  }
  return out;
}

// sum(out * weights), with weights that differ from element to element and are exact in every type
Tensor weighted(const Tensor& out) {
  Numbers w;
  for (std::int64_t i = 0; i < out.count(); ++i) w.push_back(0.5 + 0.25 * double(i % 7));
  return get(sum(get(mul(out, get(from_numbers(out.graph(), out.shape(), out.dtype(), w))))));
}

// Relative to the element, and to the largest one.
void check_close(const Numbers& got, const Numbers& want, double tolerance, const std::string& what) {
  INFO(what);
  REQUIRE(got.size() == want.size());
  double largest = 1;
  for (const double w : want) largest = std::max(largest, std::fabs(w));
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(got[i])) continue;
    if (std::fabs(got[i] - want[i]) <= tolerance * std::max(std::fabs(want[i]), largest)) continue;
    INFO("element " << i << ": " << got[i] << ", not " << want[i]);
    CHECK(false);
  }
}

std::vector<Numbers> drawn(const Operation& o, std::mt19937& random) {
  std::vector<Numbers> values;
  for (const auto& a : o.arguments) values.push_back(draw(a, random));
  return values;
}

std::string in_type(const Operation& o, DType t) { return o.name + " in " + name_of(t); }

template <class F>
Result<Tensors> call(Compiled& compiled, const Tensors& in, const F& fn) {
  RILLE_TRY(const auto next, compiled.begin(in, {}));
  if (next == Compiled::Next::replayed) return compiled.outputs();
  return compiled.end(fn(compiled.arguments()));
}

}  // namespace

TEST_CASE("each operation: its value in each type and layout", "[unit][tensor]") {
  auto graph = new_graph();
  std::mt19937 random(11);
  for (const auto& o : all_operations()) {
    const auto values = drawn(o, random);
    for (const DType t : o.types) {
      for (const Layout layout : {Layout::plain, Layout::turned, Layout::window, Layout::repeated}) {
        auto all = inputs(*graph, o, values, t, false, layout);
        all.push_back(get(o.run(all)));
        auto in = held(all);
        const auto got = std::move(in.back());
        in.pop_back();
        check_close(got, o.reference(in), tolerance_of(t) * o.slack,
                    in_type(o, t) + ", layout " + std::to_string(int(layout)));
      }
    }
  }
}

TEST_CASE("each operation: its gradient", "[unit][tensor]") {
  auto graph = new_graph();
  std::mt19937 random(11);
  for (const auto& o : all_operations()) {
    const auto values = drawn(o, random);
    if (!o.gradient) continue;
    for (const DType t : o.types) {
      if (!is_floating(t)) continue;
      INFO(in_type(o, t));
      const auto mine = inputs(*graph, o, values, t, true);
      const auto exact = inputs(*graph, o, held(mine), DType::f64, true);
      get(backward(weighted(get(o.run(mine)))));
      get(backward(weighted(get(o.run(exact)))));
      Tensors gradients;  // mine and the exact ones in turn
      for (std::size_t a = 0; a < values.size(); ++a) {
        if (!o.arguments[a].gradient) continue;
        REQUIRE(mine[a].grad());
        CHECK(mine[a].grad().dtype() == t);
        gradients.push_back(mine[a].grad());
        gradients.push_back(exact[a].grad());
      }
      const auto read = held(gradients);
      for (std::size_t k = 0; k < read.size(); k += 2)
        check_close(read[k], read[k + 1], tolerance_of(t) * 4 * o.slack,
                    in_type(o, t) + ": gradient " + std::to_string(k / 2 + 1));
    }
  }
}

TEST_CASE("each operation: its f64 gradient against finite differences", "[unit][tensor]") {
  auto graph = new_graph();
  std::mt19937 random(11);
  for (const auto& o : all_operations()) {
    const auto values = drawn(o, random);
    if (!o.gradient) continue;
    const auto in = inputs(*graph, o, values, DType::f64, true);
    get(backward(weighted(get(o.run(in)))));
    NoGrad guard(*graph);
    for (std::size_t a = 0; a < values.size(); ++a) {
      if (!o.arguments[a].gradient) continue;
      const double h = 1e-5;
      const std::size_t step = 1 + values[a].size() / 24;
      Tensors losses{in[a].grad()};  // then both sides of each element
      for (std::size_t i = 0; i < values[a].size(); i += step) {
        for (const double move : {-h, h}) {
          auto moved = values;
          moved[a][i] += move;
          losses.push_back(weighted(get(o.run(inputs(*graph, o, moved, DType::f64, false)))));
        }
      }
      const auto read = held(losses);
      for (std::size_t i = 0, k = 1; i < values[a].size(); i += step, k += 2) {
        INFO(o.name << ": gradient of argument " << a + 1 << ", element " << i);
        CHECK(read[0][i] == Approx((read[k + 1][0] - read[k][0]) / (2 * h)).epsilon(1e-6).margin(1e-7));
      }
    }
  }
}

TEST_CASE("each operation: compiled is bit-equal to plain", "[unit][tensor]") {
  auto graph = new_graph();
  std::mt19937 random(11);
  for (const auto& o : all_operations()) {
    const auto values = drawn(o, random);
    for (const DType t : o.types) {
      if (t == DType::f64 && o.types.size() > 1) continue;
      INFO(in_type(o, t));
      const bool grad = o.gradient && is_floating(t);
      const auto in = inputs(*graph, o, values, t, false), leaves = inputs(*graph, o, values, t, grad);
      const auto fn = [&](const Tensors& arguments) {
        Tensors results{get(o.run(arguments))};
        if (!grad) return results;
        get(backward(weighted(get(o.run(leaves)))));
        for (std::size_t a = 0; a < leaves.size(); ++a) {
          if (!o.arguments[a].gradient) continue;
          results.push_back(leaves[a].grad());
          get(Tensor(leaves[a]).set_grad({}));
        }
        return results;
      };
      std::vector<std::vector<std::byte>> want;
      Compiled compiled(graph);
      for (int i = 0; i < 3; ++i) {  // the first call runs the function as it is
        graph->manual_seed(3);
        const auto got = get(call(compiled, in, fn));
        if (i == 0)
          for (const auto& r : got) want.push_back(bits(get(contiguous(r.detach()))));
        REQUIRE(got.size() == want.size());
        for (std::size_t k = 0; k < got.size(); ++k) CHECK(bits(get(contiguous(got[k].detach()))) == want[k]);
      }
    }
  }
}

}  // namespace rille::tensor
