// Ranks on two cards of the stand-in driver, by the plug-in and NCCL's stand-in: what they give, in every order that
// the waits allow; with a wait taken away some seed must show it. What goes wrong at one rank ends what waits at both.
#include <future>

#include "runtime/tensor/collective.hpp"
#include "standin.hpp"

namespace rille::tensor {
namespace {

using collective::Communicator;
using collective::Reduce;
using test::Standin;
using test::standin::Options;

struct Rank {
  std::shared_ptr<Graph> graph;
  Ranks ranks;
};

Result<Ranks> join(const std::shared_ptr<device::Device>& device, int rank, const std::string& address) {
  collective::Options o;
  o.rank = rank;
  o.world = 2;
  o.address = address;
  o.timeout_ms = 30'000;
  return Communicator::create_on(std::static_pointer_cast<device::CudaDevice>(device), o,
                                 std::make_shared<collective::Stop>());
}

std::vector<Rank> met(const Standin& standin) {
  std::vector<Rank> out(2);
  for (int r = 0; r < 2; ++r) out[std::size_t(r)].graph = get(Graph::create(standin.device(r ? "cuda:1" : "cuda:0")));
  std::string address;
  {
    const auto free = get(collective::listen_at({"127.0.0.1", 0}));
    address = collective::to_string(collective::local_address(free.get()));
  }
  auto other = std::async([&] { return join(out[1].graph->device(), 1, address); });
  out[0].ranks = get(join(out[0].graph->device(), 0, address));
  out[1].ranks = get(other.get());
  return out;
}

Tensor batch(Graph& g, int number) {
  std::vector<double> v(64);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = double((i * 7 + std::size_t(number) * 5) % 11);
  return get(from_numbers(g, dims({64}), DType::f32, v));
}

// Values that are uploaded, or just computed, are exchanged, and used and overwritten at once.
std::vector<Tensor> story(Rank& r, int rank) {
  std::vector<Tensor> kept;
  for (int i = 0; i < 8; ++i) {
    Tensor x = batch(*r.graph, 10 * i + rank);
    get(all_reduce_(r.ranks, {x}, Reduce::sum));
    kept.push_back(get(add(x, 1)));
    Tensor y = get(mul(x, rank + 1));
    get(broadcast_(r.ranks, {y}, i % 2));
    kept.push_back(get(all_gather(r.ranks, y)));
    get(add_(y, y));
    kept.push_back(get(reduce_scatter(r.ranks, y, Reduce::max)));
  }
  return kept;
}

std::vector<std::vector<double>> expected(int rank) {
  std::vector<std::vector<double>> out;
  const auto g = new_graph();
  for (int i = 0; i < 8; ++i) {
    const auto a = numbers(batch(*g, 10 * i)), b = numbers(batch(*g, 10 * i + 1));
    std::vector<double> plus, all, part;
    for (std::size_t k = 0; k < a.size(); ++k) plus.push_back(a[k] + b[k] + 1);
    for (int twice = 0; twice < 2; ++twice)
      for (std::size_t k = 0; k < a.size(); ++k) all.push_back((a[k] + b[k]) * (i % 2 + 1));
    for (std::size_t k = 0; k < a.size() / 2; ++k) part.push_back(2 * all[k + (rank ? a.size() / 2 : 0)]);
    out.insert(out.end(), {plus, all, part});
  }
  return out;
}

int wrong_seeds(Options o, int seeds) {
  o.cards = 2;
  int wrong = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    auto ranks = met(standin);
    std::vector<std::vector<Tensor>> kept{story(ranks[0], 0), story(ranks[1], 1)};
    std::vector<std::vector<std::vector<double>>> got(2);
    bool failed = false;
    // Both read at once: what one waits for the other must have asked for, which it has.
    for (std::size_t r = 0; r < 2; ++r) {
      for (const auto& t : kept[r]) {
        auto data = t.graph().read_blocking(t);
        failed = failed || !data;
        std::vector<double> v;
        for (std::int64_t i = 0; data && i < data->shape.count(); ++i) v.push_back(data->number(i));
        got[r].push_back(v);
      }
    }
    wrong += failed || got[0] != expected(0) || got[1] != expected(1) || standin.report().wrong[0];
  }
  return wrong;
}

TEST_CASE("ranks on two cards exchange and reduce, whatever the order", "[cuda]") { CHECK(wrong_seeds({}, 30) == 0); }

TEST_CASE("a collective that does not wait for what is uploaded is seen", "[cuda]") {
  Options o;
  o.no_event_waits = 1u << 0 | 1u << 3;                // both cards' computations
  CHECK(wrong_seeds(o, 10) > 0);
}

TEST_CASE("without NCCL what is lost is named", "[cuda]") {
  ::setenv("RILLE_CUDA_WITHOUT", "nccl", 1);
  const Standin standin;
  const auto none = join(standin.device(), 0, "127.0.0.1:1");
  ::unsetenv("RILLE_CUDA_WITHOUT");
  REQUIRE(!none);
  CHECK(none.error().kind == ErrorKind::device);
  CHECK(none.error().message.find("NCCL") != std::string::npos);
}

TEST_CASE("a rank that is gone ends what waits on the other's card", "[cuda]") {
  Options o;
  o.cards = 2;
  const Standin standin(o);
  auto ranks = met(standin);
  Tensor x = batch(*ranks[0].graph, 1);
  SECTION("another rank fails") {
    ranks[1].ranks->stop(make_error(ErrorKind::cancelled, "enough"));
    Tensor y = batch(*ranks[1].graph, 1);
    get(all_reduce_(ranks[1].ranks, {y}, Reduce::sum));
    CHECK(ranks[1].graph->read_blocking(y).error().message == "enough");
    get(all_reduce_(ranks[0].ranks, {x}, Reduce::sum));
    CHECK(ranks[0].graph->read_blocking(x).error().message == "enough");
  }
  SECTION("shapes differ") {
    Tensor y = get(full(*ranks[1].graph, dims({65}), 1, DType::f32));
    get(all_reduce_(ranks[0].ranks, {x}, Reduce::sum));
    get(all_reduce_(ranks[1].ranks, {y}, Reduce::sum));
    CHECK(ranks[0].graph->read_blocking(x).error().kind == ErrorKind::invalid);
    CHECK(ranks[1].graph->read_blocking(y).error().kind == ErrorKind::invalid);
  }
  SECTION("NCCL finds something wrong while the card works") {
    Tensor y = batch(*ranks[1].graph, 1);
    get(all_reduce_(ranks[0].ranks, {x}, Reduce::sum));
    get(all_reduce_(ranks[1].ranks, {y}, Reduce::sum));
    get(ranks[0].graph->read_blocking(x));
    ::setenv("RILLE_TEST_NCCL_FAILS", "1", 1);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Result<HostData> failed = ranks[0].graph->read_blocking(x);
    while (failed && std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
      failed = ranks[0].graph->read_blocking(x);
    }
    ::unsetenv("RILLE_TEST_NCCL_FAILS");
    REQUIRE(!failed);
    CHECK(failed.error().kind == ErrorKind::network);
    CHECK(failed.error().message.find("NCCL") != std::string::npos);
  }
}

}  // namespace
}  // namespace rille::tensor
