// Launches on streams over the stand-in driver, which runs streams in every order that the waits allow: what shares
// tensors keeps the program's order, what does not is free, and memory is not used again while a stream works on it.
// With one wait taken away some seed must show it.
#include "streams.hpp"

namespace rille::tensor {
namespace {

using test::Standin;
using test::standin::Options;
using Values = std::vector<std::vector<double>>;

// Two streams and the device's own order: each reads what another wrote and writes what another reads.
Values shared_story(Graph& g, const StreamPtr& s, const StreamPtr& t, bool in_step) {
  const Adder add_to(g);
  Tensor y = whole(g, 0), z = whole(g, 1);
  std::vector<Tensor> kept;
  for (int i = 0; i < 10; ++i) {
    const Tensor x = batch(g, i);
    add_to(s, 2, x, y);               // an upload, then own work, comes first
    add_to(t, 1, y, z);               // s comes first
    add_to(s, 3, get(mul(x, 2)), y);  // t has read y; what is added goes at once
    kept.push_back(get(add(y, z)));
    get(add_(y, x));
    if (i % 3 == 2) get(mul_(z, 0));
    if (in_step) settle_lane(g);
  }
  add_to(s, 1, z, y);
  kept.push_back(y);  // read as they are
  kept.push_back(z);
  return all(kept);
}

Values expected_shared() {
  double y = 0, z = 1;
  Values out;
  const auto row = [](double v) { return std::vector<double>(length, v); };
  for (int i = 0; i < 10; ++i) {
    const double x = i % 7 + 1;
    y += 2 * x;
    z += y;
    y += 6 * x;
    out.push_back(row(y + z));
    y += x;
    if (i % 3 == 2) z = 0;
  }
  out.push_back(row(y + z));
  out.push_back(row(z));
  return out;
}

int wrong_shared(Options o, int seeds, bool in_step) {
  int wrong = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    const auto g = standin.graph();
    const auto values = shared_story(*g, get(make_stream(*g)), get(make_stream(*g)), in_step);
    wrong += values != expected_shared() || standin.report().wrong[0];
  }
  return wrong;
}

TEST_CASE("launches on streams keep the program's order where they share tensors", "[cuda]") {
  CHECK(wrong_shared({}, 60, false) == 0);
  CHECK(wrong_shared({}, 60, true) == 0);
}

TEST_CASE("a stream's missing wait is seen", "[cuda]") {
  Options o;
  SECTION("the device's own order does not wait") { o.no_event_waits = 1u << 0; }
  SECTION("the first stream does not wait") { o.no_event_waits = 1u << 3; }
  SECTION("the second stream does not wait") { o.no_event_waits = 1u << 4; }
  CHECK(wrong_shared(o, 10, false) + wrong_shared(o, 10, true) > 0);
}

// Only the stream uses the memory; the device's own order, which never waits for the stream, takes memory of that size
// again and again.
int wrong_memory(Options o, int seeds) {
  int wrong = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    const auto g = standin.graph();
    const auto s = get(make_stream(*g));
    const Adder add_to(*g);
    const Tensor y = whole(*g, 0);
    std::vector<Tensor> kept;
    double sum = 0;
    for (int i = 0; i < 12; ++i) {
      add_to(s, 1, i % 2 ? batch(*g, i) : whole(*g, i), y);
      sum += i % 2 ? i % 7 + 1 : i;
      settle_lane(*g);
      kept.push_back(i % 3 ? whole(*g, 100 + i) : batch(*g, 3));
      settle_lane(*g);
    }
    wrong += numbers(y) != std::vector<double>(length, sum);
    for (int i = 0; i < 12; ++i)
      wrong += numbers(kept[std::size_t(i)]) != std::vector<double>(length, i % 3 ? 100 + i : 4);
    wrong += standin.report().wrong[0] != 0;
  }
  return wrong;
}

TEST_CASE("memory that a stream uses is not given out again before the stream is past it", "[cuda]") {
  CHECK(wrong_memory({}, 40) == 0);
  Options o;
  o.early_queries = true;
  CHECK(wrong_memory(o, 20) > 0);
}

TEST_CASE("what shares nothing runs side by side", "[cuda]") {
  int stream_first = 0, other_first = 0;
  double own_behind_s = 0;  // the stand-in's clock: a microsecond for each thing it did
  for (int seed = 1; seed <= 20; ++seed) {
    Options o;
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    const auto g = standin.graph();
    const auto s = get(make_stream(*g)), t = get(make_stream(*g));
    const Adder add_to(*g);
    const Tensor x = whole(*g, 1), y = whole(*g, 0), u = batch(*g, 1), v = whole(*g, 0);
    Tensor busy = whole(*g, 1);
    for (int i = 0; i < 60; ++i) busy = get(mul(busy, 1));  // asked for in between, and of no use to the streams
    for (int i = 0; i < 10; ++i) {
      add_to(s, 1, x, y);
      add_to(t, 1, u, v);
    }
    const auto at_s = get(record(*g, s)), at_t = get(record(*g, t)), own = get(record(*g, nullptr));
    wait_for(*g, seed % 2 ? at_s : at_t);
    stream_first += seed % 2 && !is_done(at_t);
    other_first += !(seed % 2) && !is_done(at_s);
    CHECK((numbers(y) == std::vector<double>(length, 10) && numbers(v) == std::vector<double>(length, 20)));
    get(g->synchronize_blocking());
    own_behind_s = std::max(own_behind_s, get(Event::seconds_between(*at_s, *own)));
  }
  CHECK(stream_first > 0);
  CHECK(other_first > 0);
  CHECK(own_behind_s > 50e-6);
}

TEST_CASE("a compiled function and a stream that share a tensor keep their order", "[cuda]") {
  const auto story = [](Options o) {
    const Standin standin(o);
    const auto g = standin.graph();
    const auto s = get(make_stream(*g));
    const Adder add_to(*g);
    Tensor y = whole(*g, 0), w = whole(*g, 0);
    std::vector<Tensor> kept;
    Compiled step(g);
    for (int i = 0; i < 8; ++i) {
      const Tensor x = batch(*g, i);
      add_to(s, 1, x, y);  // a replay reads y, and writes w
      if (get(step.begin({x})) == Compiled::Next::call) {
        get(add_(w, y));
        get(step.end({get(add(w, step.arguments()[0]))}));
      }
      kept.push_back(step.outputs()[0]);
      add_to(s, 1, w, y);
      add_to(s, -1, kept.back(), y);  // what a replay gave
    }
    kept.push_back(y);
    return all(kept);
  };
  double y = 0, w = 0;
  Values expected;
  for (int i = 0; i < 8; ++i) {
    const double x = i % 7 + 1;
    y += x;
    w += y;
    expected.push_back(std::vector<double>(length, w + x));
    y += w - (w + x);
  }
  expected.push_back(std::vector<double>(length, y));
  int wrong = 0, seen = 0;
  for (int seed = 1; seed <= 30; ++seed) {
    Options o;
    o.seed = std::uint64_t(seed);
    wrong += story(o) != expected;
    if (seed > 10) continue;
    o.no_event_waits = 1u << 0;
    seen += story(o) != expected;
    o.no_event_waits = 1u << 3;
    seen += story(o) != expected;
  }
  CHECK(wrong == 0);
  CHECK(seen > 0);
}

TEST_CASE("a kernel that is let go of stays until its launches have run", "[cuda]") {
  for (const bool careless : {false, true}) {
    Options o;
    o.no_stream_syncs = careless;
    const Standin standin(o);
    const auto g = standin.graph();
    const auto s = get(make_stream(*g));
    const Tensor x = whole(*g, 1), y = whole(*g, 0);
    std::make_unique<Adder>(*g)->operator()(s, 1, x, y);
    settle_lane(*g);
    if (careless) CHECK(std::string(standin.report().wrong) == "a module is unloaded before its kernels have run");
    else CHECK(std::string(standin.report().wrong).empty());
    CHECK(numbers(y) == std::vector<double>(length, 1));
  }
}

TEST_CASE("streams are given back, and there are only so many", "[cuda]") {
  const Standin standin;
  {
    const auto g = standin.graph();
    for (int i = 0; i < 300; ++i) get(make_stream(*g));
    CHECK(standin.report().streams == 4);
    std::vector<StreamPtr> held;
    for (int i = 0; i < 128; ++i) held.push_back(get(make_stream(*g)));
    const auto more = make_stream(*g);
    REQUIRE_FALSE(more);
    CHECK(more.error().kind == ErrorKind::state);
    CHECK(more.error().message == "all 128 streams of this GPU are in use");
    held.pop_back();
    get(make_stream(*g));
    const Adder add_to(*g);
    const Tensor x = whole(*g, 1), y = whole(*g, 0);
    for (const auto& s : held) add_to(s, 1, x, y);
    held.clear();
    get(record(*g, nullptr));
    CHECK(numbers(y) == std::vector<double>(length, 127));
  }
  const auto left = standin.left();
  CHECK((left.streams == 0 && left.events == 0 && left.live_bytes == 0 && left.modules == 0 && left.contexts == 0));
  CHECK(std::string(left.wrong).empty());
}

TEST_CASE("memory that streams hold gives way when there is no other", "[cuda]") {
  Options o;
  o.memory_bytes = 4 << 20;
  const Standin standin(o);
  const auto g = standin.graph();
  const auto s = get(make_stream(*g));
  const Adder add_to(*g);
  const Tensor y = whole(*g, 0);
  for (int i = 0; i < 8; ++i) {
    add_to(s, 1, get(narrow(get(full(*g, dims({600'000}), 1, DType::f32)), 0, 0, length)), y);  // 2.4 MB each
    settle_lane(*g);
  }
  CHECK(numbers(y) == std::vector<double>(length, 8));
}

int wrong_sent(Options o, int seeds) {
  int wrong = 0;
  o.cards = 2;
  for (int seed = 1; seed <= seeds; ++seed) {
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    const auto a = get(Graph::create(standin.device("cuda:0"))), b = get(Graph::create(standin.device("cuda:1")));
    const auto s = get(make_stream(*a));
    const Adder add_to(*a);
    const Tensor x = whole(*a, 1), y = whole(*a, 0);
    std::vector<Tensor> kept;
    for (int i = 0; i < 5; ++i) {
      add_to(s, 1, x, y);
      const auto sent = std::make_shared<std::promise<Result<void>>>();
      kept.push_back(get(a->send(y, *b, [sent](Result<void> r) { sent->set_value(std::move(r)); })));
      get(sent->get_future().get());
      add_to(s, 1, x, y);  // not before the copy
    }
    settle_lane(*a);
    for (int i = 0; i < 5; ++i) wrong += numbers(kept[std::size_t(i)]) != std::vector<double>(length, 2 * i + 1);
  }
  return wrong;
}

TEST_CASE("what a stream wrote goes to another card when it is there, and is changed after that", "[cuda]") {
  CHECK(wrong_sent({}, 20) == 0);
  Options o;
  SECTION("the card does not wait for its stream") { o.no_event_waits = 1u << 0; }
  SECTION("the stream does not wait for the copy") { o.no_event_waits = 1u << 6; }
  CHECK(wrong_sent(o, 10) > 0);
}

}  // namespace
}  // namespace rille::tensor
