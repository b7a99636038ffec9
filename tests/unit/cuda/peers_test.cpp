// Two cards of the stand-in driver: tensors go from one to the other directly, in every order that the waits allow.
// With one of the two waits taken away some seed must show it.
#include <future>

#include "standin.hpp"

namespace rille::tensor {
namespace {

using test::Standin;
using test::standin::Options;

std::shared_ptr<Graph> graph_of(const Standin& standin, const char* name) {
  return get(Graph::create(standin.device(name)));
}

Tensor sent(const Tensor& t, Graph& to) {
  auto promise = std::make_shared<std::promise<Result<void>>>();
  auto future = promise->get_future();
  Tensor made = get(t.graph().send(t, to, [promise](Result<void> r) { promise->set_value(std::move(r)); }));
  get(future.get());
  return made;
}

// The sender computes what it sends and overwrites it at once; the receiver uses memory that it has just let go of.
std::vector<std::vector<double>> story_of_peers(Graph& a, Graph& b) {
  std::vector<std::vector<double>> out;
  std::vector<Tensor> kept;
  Tensor w = get(full(a, dims({96}), 1, DType::f32));
  for (int i = 0; i < 12; ++i) {
    get(add_(w, w));
    Tensor here = get(mul(get(add(w, 1)), 2));
    {
      const Tensor busy = get(add(get(full(b, dims({96}), i, DType::f32)), 3));
      kept.push_back(get(mul(busy, 2)));
      b.flush();
      while (b.depth()) std::this_thread::yield();
    }
    const Tensor there = sent(here, b);
    kept.push_back(get(add(there, 1)));
    b.flush();
    kept.push_back(sent(get(narrow(kept.back(), 0, 8, 64)), a));
  }
  for (const auto& t : kept) out.push_back(numbers(t));
  return out;
}

int wrong_seeds_of_peers(Options o, int seeds) {
  o.cards = 2;
  const auto cpu = new_graph();
  int wrong = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    const auto a = graph_of(standin, "cuda:0"), b = graph_of(standin, "cuda:1");
    const auto values = story_of_peers(*a, *b);
    bool good = values.size() == 36 && !standin.report().wrong[0];
    double power = 1;
    for (std::size_t i = 0; good && i < 12; ++i) {
      power *= 2;
      const double x = 2 * (power + 1);
      good = values[3 * i] == std::vector<double>(96, 2 * (double(i) + 3)) &&
             values[3 * i + 1] == std::vector<double>(96, x + 1) && values[3 * i + 2] == std::vector<double>(64, x + 1);
    }
    wrong += !good;
  }
  return wrong;
}

TEST_CASE("tensors go from one card to another, whatever the order", "[cuda]") {
  CHECK(wrong_seeds_of_peers({}, 60) == 0);
  Options o;
  o.peers = false;  // the driver goes through this machine's memory
  CHECK(wrong_seeds_of_peers(o, 5) == 0);
}

TEST_CASE("a missing wait between two cards is seen", "[cuda]") {
  Options o;
  SECTION("the receiver does not wait for what is sent") { o.no_event_waits = 1u << 3; }
  SECTION("the sender does not wait until the memory is free") { o.no_event_waits = 1u << 0; }
  CHECK(wrong_seeds_of_peers(o, 20) > 0);
}

TEST_CASE("two cards copy directly and leave nothing behind", "[cuda]") {
  Options o;
  o.cards = 2;
  const Standin standin(o);
  {
    const auto a = graph_of(standin, "cuda:0"), b = graph_of(standin, "cuda:1");
    const Tensor x = get(full(*a, dims({2, 3}), 7, DType::bf16));
    const Tensor y = sent(get(transpose(x, 0, 1)), *b);
    CHECK(y.shape() == dims({3, 2}));
    CHECK(numbers(y) == std::vector<double>(6, 7));
    CHECK(numbers(sent(get(full(*a, dims({0}), 7, DType::f32)), *b)).empty());
    CHECK(standin.report().peer_copies == 1);
    CHECK(standin.report().peers_enabled == 1);
  }
  const auto left = standin.left();
  CHECK((left.live_bytes == 0 && left.events == 0 && left.streams == 0 && left.contexts == 0));
  CHECK(std::string(left.wrong) == "");
}

TEST_CASE("an instance of a divided GPU is a device with its own name and memory", "[cuda]") {
  Options o;
  o.cards = 2;
  o.model = "NVIDIA H200 MIG 1g.18gb";
  o.memory_bytes = std::size_t(16) << 20;
  const Standin standin(o);
  const auto device = standin.device("cuda:1");
  CHECK(std::string(device->card().info.uuid).starts_with("MIG-"));
  CHECK(device->description().starts_with("NVIDIA H200 MIG 1g.18gb, sm_90"));
  CHECK(device->card().info.memory_bytes == 16 << 20);
  const auto same = standin.device(("cuda:" + std::string(device->card().info.uuid)).c_str());
  CHECK(same->name() == "cuda:1");
  const auto g = get(Graph::create(device));
  const auto big = full(*g, dims({8 << 20}), 1, DType::f32);
  CHECK(g->read_blocking(get(big)).error().kind == ErrorKind::memory);
}

}  // namespace
}  // namespace rille::tensor
