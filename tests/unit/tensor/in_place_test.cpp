// Writing in place: an operand that lies over the target is read as it was before, eager and compiled.
#include <functional>

#include "fixture.hpp"

namespace rille::tensor {
namespace {

// A window to write, and a window of the same memory to read, as it is broadcast to the first.
struct Over {
  const char* name;
  std::function<Tensor(const Tensor&)> to, from;
};

std::vector<Over> overs(std::int64_t n) {
  const auto all = [](const Tensor& a) { return a; };
  const auto rows = [](std::int64_t from, std::int64_t count) {
    return [=](const Tensor& a) { return get(narrow(a, 0, from, count)); };
  };
  const auto columns = [](std::int64_t from, std::int64_t count) {
    return [=](const Tensor& a) { return get(narrow(a, 1, from, count)); };
  };
  return {{"transposed", all, [](const Tensor& a) { return get(transpose(a, 0, 1)); }},
          {"a row further", rows(1, n - 1), rows(0, n - 1)},
          {"a row back", rows(0, n - 1), rows(1, n - 1)},
          {"a column further", columns(1, n - 1), columns(0, n - 1)},
          {"its own first row", all, rows(0, 1)},
          {"its own last column", all, columns(n - 1, 1)},
          {"one of its elements", all, [=](const Tensor& a) { return columns(n / 2, 1)(rows(1, 1)(a)); }},
          {"apart", rows(0, n / 2), rows(n - n / 2, n / 2)},
          {"itself", all, all}};
}

struct Write {
  const char* name;
  std::function<Result<void>(Tensor&, const Tensor&)> run;
};

const std::vector<Write>& writes() {
  static const std::vector<Write> all{{"add_", [](Tensor& a, const Tensor& b) { return add_(a, b, -0.5); }},
                                      {"mul_", [](Tensor& a, const Tensor& b) { return mul_(a, b); }},
                                      {"copy_", [](Tensor& a, const Tensor& b) { return copy_(a, b); }}};
  return all;
}

// What the write leaves in `start`, with the operand copied first.
std::vector<double> copy_first(const Tensor& start, const Over& over, const Write& write) {
  Tensor a = get(clone(start)), to = over.to(a);
  get(write.run(to, get(clone(over.from(start)))));
  return numbers(a);
}

void check_all(Graph& g, std::int64_t n, DType dtype) {
  const Tensor start = get(cast(get(sub(get(rand(g, dims({n, n}))), 0.5)), dtype));
  for (const auto& over : overs(n)) {
    for (const auto& write : writes()) {
      INFO(write.name << ", " << over.name << ", " << n << " rows of " << name_of(dtype));
      const auto wanted = copy_first(start, over, write);
      Tensor a = get(clone(start)), to = over.to(a);
      get(write.run(to, over.from(a)));
      CHECK(numbers(a) == wanted);

      // A temporary inside of a compiled function, with neighbours that may be joined or take its memory.
      Compiled c(g.shared_from_this());
      for (int call = 0; call < 3; ++call) {
        if (get(c.begin({start}, "")) == Compiled::Next::call) {
          Tensor b = get(mul(c.arguments()[0], 1.0)), part = over.to(b);
          get(write.run(part, over.from(b)));
          get(c.end({get(add(get(mul(b, 1.0)), 0.0))}));
        }
        CHECK(numbers(c.outputs()[0]) == wanted);
      }
      // An argument of it.
      Compiled d(g.shared_from_this());
      for (int call = 0; call < 3; ++call) {
        const Tensor b = get(clone(start));
        if (get(d.begin({b}, "")) == Compiled::Next::call) {
          Tensor part = over.to(d.arguments()[0]);
          get(write.run(part, over.from(d.arguments()[0])));
          get(d.end({}));
        }
        CHECK(numbers(b) == wanted);
      }
    }
  }
}

}  // namespace

TEST_CASE("an operand that lies over what is written is read as it was before", "[unit][tensor]") {
  auto g = new_graph();
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) check_all(*g, 6, dtype);
}

TEST_CASE("the same where several threads write", "[unit][tensor]") {
  auto g = new_graph();
  check_all(*g, 300, DType::f32);
  const Tensor start = get(rand(*g, dims({1500, 1500})));
  for (const auto& over : overs(1500)) {
    INFO(over.name);
    const auto wanted = copy_first(start, over, writes()[0]);
    Tensor a = get(clone(start)), to = over.to(a);
    get(add_(to, over.from(a), -0.5));
    CHECK(numbers(a) == wanted);
  }
}

}  // namespace rille::tensor
