// A card that is lost in the middle of its work: whichever call of the driver it is that fails first, the error names
// the card and the driver's code and stays, nobody waits for ever, nothing is left behind, and the other card goes on.
#include <future>

#include "standin.hpp"

namespace rille::tensor {
namespace {

using test::Standin;
using test::standin::Options;

// A compiled step from upload to answer, captured and replayed. `a` may be lost at any call.
Result<double> stepped(Compiled& step, Graph& a, int i) {
  RILLE_TRY(const Tensor x, from_numbers(a, dims({64}), DType::f32, std::vector<double>(64, i)));
  RILLE_TRY(const auto next, step.begin({x}));
  Tensor out;
  if (next == Compiled::Next::call) {
    RILLE_TRY(const Tensor y, mul(step.arguments()[0], 2));
    RILLE_TRY(const Tensor z, add(y, 1));
    RILLE_TRY(const auto outputs, step.end({z}));
    out = outputs[0];
  } else {
    out = step.outputs()[0];
  }
  RILLE_TRY(const Tensor all, sum(out));
  return a.item_blocking(all);
}

Result<double> moved(const Tensor& t, Graph& to) {
  auto promise = std::make_shared<std::promise<Result<void>>>();
  auto future = promise->get_future();
  RILLE_TRY(const Tensor made, t.graph().send(t, to, [promise](Result<void> r) { promise->set_value(std::move(r)); }));
  RILLE_CHECK(future.get());
  RILLE_TRY(const Tensor all, sum(made));
  return to.item_blocking(all);
}

Result<double> large(Graph& a) {                       // through the rings of large slots, out and in
  RILLE_TRY(const Tensor x, from_numbers(a, dims({30'000}), DType::f32, std::vector<double>(30'000, 1)));
  RILLE_TRY(const Tensor y, add(x, 1));
  RILLE_TRY(const auto data, a.read_blocking(y));
  return data.number(29'999);
}

struct Told {
  std::vector<Error> errors;
  std::vector<double> values;
  void take(Result<double> r) {
    if (r) values.push_back(*r);
    else errors.push_back(r.error());
  }
};

// The same whether a card is lost in it or not; b is never lost.
Told story(const std::shared_ptr<Graph>& a, const std::shared_ptr<Graph>& b) {
  Told told;
  Compiled step(a);
  for (int i = 0; i < 6; ++i) {
    told.take(stepped(step, *a, i));
    step.abandon();
  }
  told.take(large(*a));
  auto there = full(*a, dims({16}), 3, DType::f32);
  if (there) told.take(moved(*there, *b));
  else told.errors.push_back(there.error());
  const Tensor here = get(full(*b, dims({16}), 5, DType::f32));
  told.take(moved(here, *a));
  told.take(large(*a));
  return told;
}

const std::vector<double> undisturbed = {64, 192, 320, 448, 576, 704, 2, 48, 80, 2};

// How many of the calls of `function` on the first card could be the one that fails.
int lost_at_each(const char* function, int code) {
  const std::string of_first = std::string(function) + "@0";
  int silent = 0, at = 0;
  while (silent < 2 && at < 400) {
    Options o;
    o.cards = 2;
    o.fail_function = of_first.c_str();
    o.fail_at = ++at;
    o.fail_code = code;
    const Standin standin(o);
    INFO(function << ", call " << at);
    Told told;
    {
      auto first = device::CudaDevice::open("cuda:0");
      const auto b = get(Graph::create(standin.device("cuda:1")));
      if (!first) {
        told.errors.push_back(first.error());
      } else {
        const auto a = get(Graph::create(*first));
        a->manual_seed(7);
        told = story(a, b);
        first = make_error(ErrorKind::internal, "closed");
      }
      CHECK(numbers(get(add(get(full(*b, dims({2}), 1, DType::f32)), 1))) == std::vector<double>{2, 2});
    }
    for (const auto& e : told.errors) {
      CHECK(e.kind == ErrorKind::device);
      CHECK(e.code == "cuda_" + std::to_string(code));
      CHECK(e.message.starts_with("cuda:0: "));
      CHECK(e.hint.starts_with("the device is lost to this process: start it again, and resume"));
    }
    if (told.errors.empty()) CHECK(told.values == undisturbed);
    const auto left = standin.left();
    CHECK(std::string(left.wrong) == "");
    silent = told.errors.empty() ? silent + 1 : 0;
  }
  return at - 2;
}

TEST_CASE("two cards tell the same story each time", "[cuda]") {
  Options o;
  o.cards = 2;
  const Standin standin(o);
  const auto a = get(Graph::create(standin.device("cuda:0"))), b = get(Graph::create(standin.device("cuda:1")));
  const auto told = story(a, b);
  CHECK(told.errors.empty());
  CHECK(told.values == undisturbed);
  CHECK(standin.report().graph_launches > 0);
  CHECK(standin.report().peer_copies == 2);
}

TEST_CASE("a card that is lost in a copy says so, and the other one goes on", "[cuda]") {
  CHECK(lost_at_each("cuMemcpyHtoDAsync_v2", 719) > 2);
  CHECK(lost_at_each("cuMemcpyDtoHAsync_v2", 719) > 2);
  CHECK(lost_at_each("cuMemcpyDtoDAsync_v2", 719) > 0);
  CHECK(lost_at_each("cuMemcpyPeerAsync", 719) > 0);
}

TEST_CASE("a card that is lost in a capture or a replay says so", "[cuda]") {
  for (const char* function : {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"})
    CHECK(lost_at_each(function, 700) == 1);
  CHECK(lost_at_each("cuGraphLaunch", 700) > 1);
}

TEST_CASE("a card that is lost in a launch or a wait says so", "[cuda]") {
  CHECK(lost_at_each("cuLaunchKernel", 700) > 2);
  for (const char* function : {"cuEventRecord", "cuEventSynchronize", "cuStreamWaitEvent", "cuMemAlloc_v2",
                               "cuMemHostAlloc", "cuModuleLoadData", "cuModuleGetFunction", "cuMemsetD8Async"})
    CHECK(lost_at_each(function, 717) > 0);
}

TEST_CASE("a card that is lost while it is given back leaves the other one alone", "[cuda]") {
  for (const char* function : {"cuStreamSynchronize", "cuMemFree_v2", "cuGraphExecDestroy", "cuModuleUnload"})
    CHECK(lost_at_each(function, 719) >= -1);          // who frees asks for no answer: the next one is told
}

}  // namespace
}  // namespace rille::tensor
