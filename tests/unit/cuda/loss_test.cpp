// A card that is lost in the middle of its work: whichever call of the driver fails first, the error names the card and
// the driver's code and stays, no wait is endless, nothing is left behind, and the other card goes on.
#include <future>

#include "streams.hpp"

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

Result<double> large(Graph& a) {  // through the rings of large slots, out and in
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
Told story_with_loss(const std::shared_ptr<Graph>& a, const std::shared_ptr<Graph>& b) {
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

// Launches on a stream of the first card, between an event of its own order and an event of the stream.
Result<double> on_stream(Graph& a) {
  const Adder add_to(a);
  RILLE_TRY(const StreamPtr s, make_stream(a));
  RILLE_TRY(const Tensor x, full(a, dims({length}), 2, DType::f32));
  RILLE_TRY(const Tensor y, full(a, dims({length}), 1, DType::f32));
  RILLE_TRY(const auto before, record(a, nullptr));
  RILLE_CHECK(wait(a, s, before));
  RILLE_CHECK(add_to.tried(s, 3, x, y));
  RILLE_CHECK(add_to.tried(s, 1, x, y));
  RILLE_TRY(const auto after, record(a, s));
  RILLE_CHECK(waited_for(a, after));
  RILLE_TRY(const Tensor all, sum(y));
  return a.item_blocking(all);
}

Told stream_story(const std::shared_ptr<Graph>& a, const std::shared_ptr<Graph>&) {
  Told told;
  told.take(on_stream(*a));
  told.take(on_stream(*a));
  return told;
}

const std::vector<double> undisturbed_stream = {9 * length, 9 * length};

struct Lost {
  int given = 0;  // calls of the function that failed, one in each run
  int told = 0;   // number of runs that reported the error
};

// Each call of `function` on the first card fails once, until there is none that could.
Lost lost_at_each(const char* function, int code, decltype(&story_with_loss) tells = story_with_loss,
                  const std::vector<double>& values = undisturbed) {
  const std::string of_first = std::string(function) + "@0";
  Lost lost;
  for (int at = 0, failures = 1; failures > 0;) {
    REQUIRE(at < 400);
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
        told = tells(a, b);
        first = make_error(ErrorKind::internal, "closed");
      }
      CHECK(numbers(get(add(get(full(*b, dims({2}), 1, DType::f32)), 1))) == std::vector<double>{2, 2});
    }
    for (const auto& e : told.errors) {
      CHECK(e.kind == ErrorKind::device);
      const bool of_kernel = e.message.starts_with("kernel add_to: ");  // a user's kernel reports it under its own name
      CHECK(e.code == "cuda_" + std::to_string(code));
      CHECK(e.message.starts_with(of_kernel ? "kernel add_to: cuda:0: " : "cuda:0: "));
      CHECK(e.message.find("(" + std::to_string(code) + ")") != std::string::npos);
      CHECK(e.hint.starts_with("this process can no longer use the device: start it again, and resume"));
    }
    if (told.errors.empty()) CHECK(told.values == values);
    const auto left = standin.left();
    CHECK(std::string(left.wrong) == "");
    failures = int(left.failures);
    CHECK(failures <= 1);
    lost.given += failures;
    lost.told += !told.errors.empty();
  }
  CHECK(lost.told <= lost.given);
  return lost;
}

TEST_CASE("two cards run in the same order each time", "[cuda]") {
  Options o;
  o.cards = 2;
  const Standin standin(o);
  const auto a = get(Graph::create(standin.device("cuda:0"))), b = get(Graph::create(standin.device("cuda:1")));
  const auto told = story_with_loss(a, b);
  CHECK(told.errors.empty());
  CHECK(told.values == undisturbed);
  CHECK(standin.report().graph_launches > 0);
  CHECK(standin.report().peer_copies == 2);
}

TEST_CASE("a card that is lost in a copy says so, and the other one goes on", "[cuda]") {
  CHECK(lost_at_each("cuMemcpyHtoDAsync_v2", 719).told > 2);
  CHECK(lost_at_each("cuMemcpyDtoHAsync_v2", 719).told > 2);
  CHECK(lost_at_each("cuMemcpyDtoDAsync_v2", 719).told > 0);
  CHECK(lost_at_each("cuMemcpyPeerAsync", 719).told > 0);
}

TEST_CASE("a card that is lost in a capture or a replay says so", "[cuda]") {
  for (const char* function : {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"})
    CHECK(lost_at_each(function, 700).told == 1);
  CHECK(lost_at_each("cuGraphLaunch", 700).told > 1);
}

TEST_CASE("a card that is lost in a launch or a wait says so", "[cuda]") {
  CHECK(lost_at_each("cuLaunchKernel", 700).told > 2);
  for (const char* function : {"cuEventRecord", "cuEventSynchronize", "cuStreamWaitEvent", "cuMemAlloc_v2",
                               "cuMemHostAlloc", "cuModuleLoadData", "cuModuleGetFunction", "cuMemsetD8Async"})
    CHECK(lost_at_each(function, 717).told > 0);
}

TEST_CASE("a card that is lost on a user's stream says so", "[cuda]") {
  for (const char* function : {"cuStreamCreate", "cuLaunchKernel", "cuEventCreate", "cuEventRecord",
                               "cuStreamWaitEvent", "cuEventQuery", "cuModuleLoadData"}) {
    INFO(function);
    CHECK(lost_at_each(function, 700, stream_story, undisturbed_stream).told > 1);
  }
}

TEST_CASE("a card that is lost while it is given back leaves the other one alone", "[cuda]") {
  for (const char* function : {"cuStreamSynchronize", "cuMemFree_v2", "cuGraphExecDestroy", "cuModuleUnload"})
    CHECK(lost_at_each(function, 719).given > 0);  // a free returns no error: the next call reports it
}

}  // namespace
}  // namespace rille::tensor
