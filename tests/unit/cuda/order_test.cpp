// Order on the device: the stand-in driver runs what is asked for as late as it may, and in every order that the waits
// allow. With all waits in place each seed gives what the CPU gives. With one kind of wait taken away, as a careless
// plug-in would, some seed must show it: else these tests could not see such a bug.
#include "standin.hpp"

namespace rille::tensor {
namespace {

using test::Standin;
using test::standin::Options;

using ByteValues = std::vector<std::vector<std::byte>>;

// Whole numbers and quarters: every result is exact.
Result<Tensor> input_batch(Graph& g, int number) {
  std::vector<double> v(96);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = double((i * 7 + std::size_t(number) * 5) % 11);
  return from_numbers(g, dims({96}), DType::f32, v);
}

// More uploads than there are staging slots, into memory that steps before have let go of; updates in place; a compiled
// function beside plain operations. No value is read until the end.
struct How {
  bool in_step = false;  // each step is given to the device before the next one: always the same order
  bool freed = false;    // memory is given back in between
};

Result<ByteValues> story_in_order(const std::shared_ptr<Graph>& g, How how) {
  RILLE_TRY(Tensor w, input_batch(*g, 100));
  Compiled step(g);
  std::vector<Tensor> kept;
  for (int i = 0; i < 44; ++i) {
    RILLE_TRY(const auto x, input_batch(*g, i));
    if (i % 4 == 1) {
      kept.push_back(get(add(x, get(mul(w, 2)))));
      g->flush();
    } else {
      Tensor y;
      if (get(step.begin({x})) == Compiled::Next::call) {
        get(add_(w, step.arguments()[0], 0.25));
        y = get(step.end({get(add(get(mul(w, 2)), step.arguments()[0]))}))[0];
      } else {
        y = step.outputs()[0];
      }
      if (i % 3 == 0) kept.push_back(y);
    }
    while (how.in_step && g->depth()) std::this_thread::yield();
    if (how.freed && i % 8 == 7) g->device()->release_cache();
  }
  ByteValues out;
  for (const auto& t : kept) {
    RILLE_TRY(auto data, g->read_blocking(t));
    out.push_back(std::move(data.bytes));
  }
  return out;
}

const ByteValues& expected() {
  static const ByteValues values = get(story_in_order(new_graph(), {}));
  return values;
}

// The seeds that give something else.
int wrong_seeds(Options o, int seeds, How how) {
  int wrong = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    const auto values = story_in_order(standin.graph(), how);
    wrong += !values || *values != expected() || standin.report().wrong[0];
  }
  return wrong;
}

TEST_CASE("no order that the waits allow changes a value", "[cuda]") {
  CHECK(wrong_seeds({}, 100, {}) == 0);
  CHECK(wrong_seeds({}, 50, {.in_step = true}) == 0);
  CHECK(wrong_seeds({}, 20, {.freed = true}) == 0);
  CHECK(wrong_seeds({}, 20, {.in_step = true, .freed = true}) == 0);
}

TEST_CASE("a missing wait between streams is seen", "[cuda]") {
  Options o;
  SECTION("the computation does not wait for what is copied in") { o.no_event_waits = 1; }
  SECTION("what is copied in does not wait until its memory is free") { o.no_event_waits = 2; }
  CHECK(wrong_seeds(o, 10, {.in_step = true}) > 0);
}

TEST_CASE("a staging slot that is taken again too early is seen", "[cuda]") {
  Options o;
  o.no_event_syncs = true;
  CHECK(wrong_seeds(o, 10, {.in_step = true}) > 0);
}

TEST_CASE("memory that is freed while work is on its way is seen", "[cuda]") {
  Options o;
  o.no_stream_syncs = true;
  CHECK(wrong_seeds(o, 10, {.in_step = true, .freed = true}) > 0);
}

}  // namespace
}  // namespace rille::tensor
