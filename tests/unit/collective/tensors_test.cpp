// A communicator's operations as nodes of a graph: a failure affects only the tensors that it was to write.
#include "../tensor/fixture.hpp"
#include "ranks.hpp"
#include "runtime/compute/tensor/collective.hpp"
#include "runtime/compute/tensor/ops.hpp"

namespace rille::tensor {
namespace {

using collective::Reduce;

void fails_each_time(const Tensor& t) {
  for (int i = 0; i < 3; ++i) {
    const auto read = t.graph().read_blocking(t);
    REQUIRE(!read);
    CHECK(read.error().message.find("the ranks are at different calls") != std::string::npos);
  }
}

// Rank 0 has a graph; the other rank makes these calls, each of so many numbers.
struct Two {
  explicit Two(const std::vector<std::size_t>& counts) {
    other = std::thread([this, counts] {
      for (const auto count : counts) {
        std::vector<float> v(count, 1);
        collective::all_reduce(*ranks[1], v).ok();
      }
    });
  }
  ~Two() { other.join(); }
  std::vector<Ranks> ranks = collective::ranks_of(2);
  std::shared_ptr<Graph> graph = new_graph();
  std::thread other;
  Tensor whole(double value) const { return get(full(*graph, dims({8}), value, DType::f32)); }
};

TEST_CASE("tensors that a failed collective was to write have no value", "[collective]") {
  Two two({7});
  const Tensor x = two.whole(1), y = two.whole(2);
  get(all_reduce_(two.ranks[0], {x}, Reduce::sum));
  const Tensor z = get(add(x, y));
  fails_each_time(x);
  fails_each_time(z);
  CHECK(numbers(y) == std::vector<double>(8, 2));  // the rest still works
  Tensor w = two.whole(3);
  get(add_(w, x));
  CHECK(numbers(w) == std::vector<double>(8, 3));
}

TEST_CASE("a failed collective in a replay leaves its outputs without values", "[collective]") {
  Two two({8, 8, 8, 7});
  const Tensor outside = two.whole(1), kept = two.whole(2), given = two.whole(3);
  Compiled step(two.graph);
  const auto call = [&] {
    if (get(step.begin({given, kept})) == Compiled::Next::call) {
      const Tensor a = step.arguments()[0], b = step.arguments()[1];
      get(all_reduce_(two.ranks[0], {outside}, Reduce::sum));
      get(all_reduce_(two.ranks[0], {a}, Reduce::sum));
      get(step.end({get(add(b, 1))}));
    }
    return step.outputs()[0];
  };
  CHECK(numbers(call()) == std::vector<double>(8, 3));
  const Tensor failed = call();
  fails_each_time(failed);
  fails_each_time(given);
  CHECK(numbers(kept) == std::vector<double>(8, 2));
  CHECK(numbers(outside) == std::vector<double>(8, 3));  // its call had finished
}

TEST_CASE("a failed collective in a replay also invalidates a tensor made outside of it", "[collective]") {
  Two two({8, 7});
  const Tensor outside = two.whole(1), given = two.whole(3);
  Compiled step(two.graph);
  const auto call = [&] {
    if (get(step.begin({given})) == Compiled::Next::call) {
      get(all_reduce_(two.ranks[0], {outside}, Reduce::sum));
      get(step.end({get(add(step.arguments()[0], 1))}));
    }
    return step.outputs()[0];
  };
  CHECK(numbers(call()) == std::vector<double>(8, 4));
  fails_each_time(call());
  fails_each_time(outside);
  CHECK(numbers(given) == std::vector<double>(8, 3));
}

}  // namespace
}  // namespace rille::tensor
