// The graph: order of reads and writes, laziness, memory, errors of kernels, running out of memory and going on.
#include <future>

#include "fixture.hpp"

namespace rille::tensor {

TEST_CASE("a write follows earlier readers and precedes later ones", "[unit][tensor]") {
  auto g = new_graph();
  auto x = get(ones(*g, dims({4})));
  const auto before = get(mul(x, 10));
  get(fill_(x, 5));
  const auto after = get(mul(x, 10));
  get(add_(x, get(ones(*g, dims({4}))), 2));
  CHECK(numbers(after) == std::vector<double>(4, 50));
  CHECK(numbers(before) == std::vector<double>(4, 10));
  CHECK(numbers(x) == std::vector<double>(4, 7));
}

TEST_CASE("views see writes to what they look at, and write to it", "[unit][tensor]") {
  auto g = new_graph();
  auto x = get(zeros(*g, dims({2, 3})));
  auto column = get(select(x, 1, 2));
  get(fill_(column, 1));
  auto row = get(narrow(x, 0, 1, 1));
  get(mul_(row, 4));
  get(copy_(row, get(add(row, 1))));
  CHECK(numbers(x) == std::vector<double>{0, 0, 1, 1, 1, 5});
  CHECK(numbers(column) == std::vector<double>{1, 5});
  get(add_(x, x));
  CHECK(numbers(x) == std::vector<double>{0, 0, 2, 2, 2, 10});
}

TEST_CASE("operations without a live handle do not run, and memory returns to zero", "[unit][tensor]") {
  auto g = new_graph();
  {
    auto x = get(randn(*g, dims({1000})));
    for (int i = 0; i < 100; ++i) get(mul(x, i));  // dropped at once
    auto y = get(add(x, 1));
    get(g->item_blocking(get(sum(y))));
    CHECK(g->device()->memory().allocations <= 5);
    CHECK(g->device()->memory().live_bytes >= 8000);
  }
  get(g->synchronize_blocking());
  CHECK(g->device()->memory().live_bytes == 0);
  CHECK(g->device()->memory().live_buffers == 0);
}

TEST_CASE("a chain of fifty thousand pending operations is flushed, and undone without recursion", "[unit][tensor]") {
  auto g = new_graph();
  auto x = get(zeros(*g, dims({2})));
  for (int i = 0; i < 50000; ++i) x = get(add(x, 1));
  CHECK(g->pending() <= Graph::pending_limit);
  CHECK(numbers(x) == std::vector<double>(2, 50000));
  get(x.set_requires_grad(true));
  auto y = x;
  for (int i = 0; i < 50000; ++i) y = get(add(y, 1));
  y = {};  // a long tape, let go
}

TEST_CASE("an error of a kernel reaches the reader, and nothing else is harmed", "[unit][tensor]") {
  auto g = new_graph();
  auto w = get(ones(*g, dims({4, 3})));
  const auto bad = get(embedding(w, get(from_numbers(*g, dims({2}), DType::i64, {1, 9}))));
  auto total = get(zeros(*g, dims({})));
  get(add_(total, get(sum(bad))));
  const auto r = g->read_blocking(bad);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::invalid);
  CHECK(r.error().message == "embedding: id 9 at position 1; the table has rows 0 to 3");
  CHECK(numbers(total) == std::vector<double>{0});  // the update was skipped
  CHECK_FALSE(g->read_blocking(get(mul(bad, 2))).ok());
  CHECK(numbers(w) == std::vector<double>(12, 1));
}

TEST_CASE("an error that no read has reported is reported by synchronize, once", "[unit][tensor]") {
  auto g = new_graph();
  const auto bad = get(multinomial(get(full(*g, dims({1, 2}), -1))));
  CHECK_FALSE(g->synchronize_blocking().ok());
  CHECK(g->synchronize_blocking().ok());
}

TEST_CASE("out of memory names what is live; the work goes on when there is room", "[unit][tensor]") {
  auto g = new_graph();
  g->device()->set_memory_limit(10 << 20);
  auto big = get(ones(*g, dims({2 << 20})));  // 8 MiB
  get(g->synchronize_blocking());
  auto more = get(full(*g, dims({1 << 20}), 3));  // 4 MiB more than there is
  const auto r = g->read_blocking(get(sum(more)));
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::memory);
  CHECK(r.error().message.find("at most 10.5 MB") != std::string::npos);
  CHECK(r.error().hint.find("1 x 8.4 MB") != std::string::npos);
  big = {};
  CHECK(get(g->item_blocking(get(max(more)))) == 3);
}

TEST_CASE("a tensor for which there is no memory takes no other with it", "[unit][tensor]") {
  auto g = new_graph();
  g->device()->set_memory_limit(10 << 20);
  auto small = get(ones(*g, dims({8})));
  auto huge = get(ones(*g, dims({4 << 20})));  // 16 MiB
  auto after = get(mul(small, 3));
  auto read = [&](const Tensor& t) {
    auto promise = std::make_shared<std::promise<Result<HostData>>>();
    g->read(
        t, [promise](Result<HostData> r) { promise->set_value(std::move(r)); }, true);
    return promise->get_future().get();
  };
  CHECK(read(after).ok());
  const auto r = read(huge);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::memory);
  CHECK(read(small).ok());
  CHECK(get(g->item_blocking(get(sum(after)))) == 24);
}

TEST_CASE("operations without live handles block no other", "[unit][tensor]") {
  auto g = new_graph();
  g->device()->set_memory_limit(10 << 20);
  auto huge = get(ones(*g, dims({4 << 20})));
  CHECK_FALSE(g->read_blocking(get(sum(huge))).ok());
  huge = {};
  CHECK(get(g->item_blocking(get(sum(get(ones(*g, dims({8}))))))) == 8);
}

TEST_CASE("zero elements and no dimensions", "[unit][tensor]") {
  auto g = new_graph();
  const auto empty = get(zeros(*g, dims({0, 3})));
  CHECK(numbers(get(mul(empty, 2))).empty());
  CHECK(numbers(get(sum(empty, {0}))) == std::vector<double>(3, 0));
  CHECK(numbers(get(matmul(get(transpose(empty, 0, 1)), empty))) == std::vector<double>(9, 0));
  CHECK(get(g->item_blocking(get(full(*g, {}, 2.5)))) == 2.5);
  CHECK(numbers(get(cat({empty, get(ones(*g, dims({1, 3})))}, 0))) == std::vector<double>(3, 1));
}

TEST_CASE("descriptions do not compute", "[unit][tensor]") {
  auto g = new_graph();
  const auto x = get(zeros(*g, dims({2, 3})));
  CHECK(x.describe() == "f32[2, 3] cpu, pending");
  get(g->synchronize_blocking());
  CHECK(x.describe() == "f32[2, 3] cpu");
}

}  // namespace rille::tensor
