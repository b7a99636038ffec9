// Events and compiled functions beside streams, over the stand-in driver; and what streams are on the CPU.
#include "streams.hpp"

namespace rille::tensor {
namespace {

using test::Standin;
using test::standin::Options;

TEST_CASE("an event is complete when the operations before it have run, and measures their time", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto s = get(make_stream(*g)), t = get(make_stream(*g));
  const Adder add_to(*g);
  const Tensor x = whole(*g, 1), y = whole(*g, 0), z = whole(*g, 0);
  const auto before = get(record(*g, nullptr));
  get(wait(*g, s, before));
  for (int i = 0; i < 5; ++i) add_to(s, 1, x, y);
  const auto after = get(record(*g, s));
  get(wait(*g, t, after));
  add_to(t, 1, x, z);
  const auto last = get(record(*g, t));
  CHECK_FALSE(is_done(after));
  wait_for(*g, last);
  CHECK((is_done(before) && is_done(after) && is_done(last)));
  CHECK(get(Event::seconds_between(*before, *after)) > 0);
  CHECK(get(Event::seconds_between(*last, *after)) < 0);
  const auto later = get(record(*g, s));
  get(g->synchronize_blocking());  // waits for streams, too
  CHECK(is_done(later));
}

TEST_CASE("a wait for an event orders what shares no tensor", "[cuda]") {
  int wrong = 0, missed = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    for (const bool waits : {true, false}) {
      Options o;
      o.seed = std::uint64_t(seed);
      const Standin standin(o);
      const auto g = standin.graph();
      const auto s = get(make_stream(*g));
      const Adder add_to(*g);
      const Tensor x = whole(*g, 1), y = whole(*g, 0);
      Tensor other = whole(*g, 0);
      for (int i = 0; i < 5; ++i) add_to(s, 1, x, y);
      const auto at_s = get(record(*g, s));
      if (waits) get(wait(*g, nullptr, at_s));
      get(add_(other, x));
      wait_for(*g, get(record(*g, nullptr)));
      (waits ? wrong : missed) += !is_done(at_s);
    }
  }
  CHECK(wrong == 0);
  CHECK(missed > 0);
}

TEST_CASE("inside a compiled function streams are hints", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto s = get(make_stream(*g));
  const Adder add_to(*g);
  const Tensor y = whole(*g, 0);
  double sum = 0;
  Compiled step(g);
  for (int i = 0; i < 6; ++i) {
    const Tensor x = batch(*g, i);
    add_to(s, 1, x, y);  // beside it, as the replays change y
    if (get(step.begin({x})) == Compiled::Next::call) {
      const auto refused = record(*g, s);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().kind == ErrorKind::state);
      add_to(s, 2, step.arguments()[0], y);
      get(step.end({get(add(y, 0))}));
    }
    sum += 3 * (i % 7 + 1);
    CHECK(numbers(step.outputs()[0]) == std::vector<double>(length, sum));
  }
  CHECK(standin.report().graph_launches == 4);
}

TEST_CASE("waiting for an event of a lost device is an error", "[cuda]") {
  Options o;
  o.fail_function = "cuEventQuery";
  o.fail_at = 1;
  o.fail_code = 700;
  const Standin standin(o);
  const auto g = standin.graph();
  const auto s = get(make_stream(*g));
  const Adder add_to(*g);
  const Tensor x = whole(*g, 1), y = whole(*g, 0);
  add_to(s, 1, x, y);
  const auto e = get(record(*g, s));
  const auto r = waited_for(*g, e);
  REQUIRE_FALSE(r);
  CHECK((r.error().kind == ErrorKind::device && r.error().code == "cuda_700"));
  CHECK(e->done().error().code == "cuda_700");
  CHECK(make_stream(*g).error().code == "cuda_700");
  CHECK(record(*g, s).error().code == "cuda_700");
}

TEST_CASE("on the CPU streams are in the program's order, and events have the clock's times", "[cuda]") {
  const auto g = new_graph();
  const auto s = get(make_stream(*g));
  Tensor y = whole(*g, 0);
  const auto before = get(record(*g, s));
  get(add_(y, whole(*g, 1)));
  get(wait(*g, s, before));
  const auto after = get(record(*g, nullptr));
  wait_for(*g, after);
  CHECK((is_done(before) && is_done(after)));
  CHECK(get(Event::seconds_between(*before, *after)) >= 0);
  CHECK(numbers(y) == std::vector<double>(length, 1));
}

}  // namespace
}  // namespace rille::tensor
