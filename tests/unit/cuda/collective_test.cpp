// Ranks on two cards of the stand-in driver, by the plug-in and NCCL's stand-in: what they give, in every order that
// the waits allow; with a wait taken away some seed must show it. What goes wrong at one rank ends what waits at both.
#include "runtime/compute/tensor/collective.hpp"

#include <future>

#include "runtime/compute/collective/rendezvous.hpp"
#include "runtime/core/base/build_id.hpp"
#include "streams.hpp"

namespace rille::tensor {
namespace {

using collective::Communicator;
using collective::Reduce;
using test::Standin;
using test::standin::Options;
using Values = std::vector<std::vector<double>>;

struct Rank {
  std::shared_ptr<Graph> graph;
  Ranks ranks;
};

Result<Ranks> join(const std::shared_ptr<device::Device>& device, int rank, const std::string& address, int world = 2) {
  collective::Options o;
  o.rank = rank;
  o.world = world;
  o.address = address;
  o.timeout_ms = 30'000;
  return Communicator::create_on(std::static_pointer_cast<device::CudaDevice>(device), o,
                                 std::make_shared<collective::Stop>());
}

std::string free_address() {
  const auto free = get(collective::listen_at({"127.0.0.1", 0}));
  return collective::to_string(collective::local_address(free.get()));
}

std::vector<Rank> met(const Standin& standin, int world = 2) {
  std::vector<Rank> out(static_cast<std::size_t>(world));
  const std::string address = free_address();
  std::vector<std::future<Result<Ranks>>> joined;
  for (int r = 0; r < world; ++r) {
    const std::string card = "cuda:" + std::to_string(r);
    const auto device = standin.device(card.c_str());
    out[std::size_t(r)].graph = get(Graph::create(device));
    joined.push_back(std::async(std::launch::async, [=] { return join(device, r, address, world); }));
  }
  for (std::size_t r = 0; r < out.size(); ++r) out[r].ranks = get(joined[r].get());
  return out;
}

// How NCCL's stand-in was joined and left so far, and how many ids it has made.
struct Counts {
  int begun = 0, destroyed = 0, aborted = 0, ids = 0;
  static Counts now() {
    void* const library = ::dlopen(RILLE_TEST_CUDA_TOOLKIT "/lib64/libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    if (!library) FAIL(::dlerror());
    Counts c;
    const auto tell = reinterpret_cast<int (*)(int*, int*, int*)>(::dlsym(library, "standin_nccl_counts"));
    tell(&c.begun, &c.destroyed, &c.aborted);
    c.ids = reinterpret_cast<int (*)()>(::dlsym(library, "standin_nccl_ids"))();
    return c;
  }
};

// A lane may be the last that lets go.
void wait_for_ends(const Counts& before, int ranks) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (auto e = before; e.destroyed + e.aborted < before.destroyed + before.aborted + ranks; e = Counts::now()) {
    if (std::chrono::steady_clock::now() > until) FAIL("nobody ends NCCL's communicators");
    std::this_thread::yield();
  }
}

// NCCL says that something is wrong, until both ranks have seen it.
void break_nccl(std::vector<Rank>& ranks) {
  ::setenv("RILLE_TEST_NCCL_FAILS", "1", 1);
  const auto fails = [](Ranks r) {
    // In between the communicator's own thread looks.
    while (r->run({}, {})) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  auto other = std::async([&] { fails(ranks[1].ranks); });
  fails(ranks[0].ranks);
  other.get();
  ::unsetenv("RILLE_TEST_NCCL_FAILS");
}

Tensor sixty_four(Graph& g, int number) {
  std::vector<double> v(64);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = double((i * 7 + std::size_t(number) * 5) % 11);
  return get(from_numbers(g, dims({64}), DType::f32, v));
}

// Values that are uploaded, or just computed, are exchanged, and used and overwritten at once.
std::vector<Tensor> story(Rank& r, int rank) {
  std::vector<Tensor> kept;
  for (int i = 0; i < 8; ++i) {
    Tensor x = sixty_four(*r.graph, 10 * i + rank);
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
    const auto a = numbers(sixty_four(*g, 10 * i)), b = numbers(sixty_four(*g, 10 * i + 1));
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
  o.no_event_waits = 1u << 0 | 1u << 3;  // both cards' computations
  CHECK(wrong_seeds(o, 10) > 0);
}

TEST_CASE("one rank makes the group's NCCL id, since each id keeps a thread until all have joined", "[cuda]") {
  Options o;
  o.cards = 2;
  const Standin standin(o);
  { const auto loaded = met(standin); }  // so that the stand-in can be asked
  const Counts before = Counts::now();
  const auto ranks = met(standin);
  CHECK(Counts::now().ids == before.ids + 1);
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
  Tensor x = sixty_four(*ranks[0].graph, 1);
  SECTION("another rank fails") {
    ranks[1].ranks->stop(make_error(ErrorKind::cancelled, "enough"));
    Tensor y = sixty_four(*ranks[1].graph, 1);
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
}

TEST_CASE("what was on its way on a card when its ranks broke off is lost for every read", "[cuda]") {
  Options o;
  o.cards = 2;
  const Standin standin(o);
  auto ranks = met(standin);
  const Counts before = Counts::now();
  std::vector<Tensor> x, whole_before;
  for (auto& r : ranks) {
    whole_before.push_back(sixty_four(*r.graph, 2));
    x.push_back(sixty_four(*r.graph, 1));
    for (int i = 0; i < 300; ++i) get(mul_(x.back(), 1));  // asking for an event does one of them
    get(all_reduce_(r.ranks, {x.back()}, Reduce::sum));
  }
  const bool done = GENERATE(false, true);
  if (done)
    for (std::size_t r = 0; r < 2; ++r) CHECK(numbers(x[r])[1] == 2 * numbers(sixty_four(*new_graph(), 1))[1]);
  else
    for (auto& r : ranks) settle_lane(*r.graph);
  break_nccl(ranks);
  for (std::size_t r = 0; r < 2; ++r) {
    for (int twice = 0; twice < 2; ++twice) {
      auto read = ranks[r].graph->read_blocking(x[r]);
      CHECK(read.ok() == done);  // what had come to its end stays, to be saved
      if (!read) CHECK(read.error().message.find("NCCL") != std::string::npos);
      CHECK(ranks[r].graph->read_blocking(whole_before[r]).ok() == done);
    }
    get(all_reduce_(ranks[r].ranks, {whole_before[r]}, Reduce::sum));
    CHECK(!ranks[r].graph->read_blocking(whole_before[r]).ok());
    CHECK(!ranks[r].graph->read_blocking(whole_before[r]).ok());
  }
  for (auto& r : ranks) r.ranks.reset();
  wait_for_ends(before, 2);
  CHECK(Counts::now().aborted == before.aborted + 2);
  for (auto& r : ranks) r.graph.reset();
  // A new communicator of the card begins anew.
  auto again = met(standin);
  CHECK(numbers(sixty_four(*again[0].graph, 1))[0] == 5);
}

TEST_CASE("ranks leave when their calls are done", "[cuda]") {
  Options o;
  o.cards = 2;
  const Standin standin(o);
  auto ranks = met(standin);
  const Counts before = Counts::now();
  std::vector<Tensor> x;
  for (auto& r : ranks) {
    x.push_back(sixty_four(*r.graph, 1));
    get(all_reduce_(r.ranks, {x.back()}, Reduce::sum));
  }
  for (auto& r : ranks) r.ranks.reset();
  wait_for_ends(before, 2);
  CHECK(Counts::now().destroyed == before.destroyed + 2);
  for (const auto& t : x) CHECK(numbers(t)[1] == 2 * numbers(sixty_four(*new_graph(), 1))[1]);
  CHECK(std::string(standin.report().wrong).empty());
}

TEST_CASE("a rank that does not join NCCL's group ends the wait of the others", "[cuda]") {
  Options o;
  o.cards = 2;
  const Standin standin(o);
  const auto device = standin.device();
  met(standin);  // the library is loaded
  const Counts before = Counts::now();
  collective::Options mine;
  mine.world = 2;
  mine.address = free_address();
  mine.shared_memory = false;
  collective::Invitation theirs;
  theirs.rank = 1;
  theirs.world = 2;
  theirs.address = get(collective::parse_address(mine.address));
  theirs.build = build_id();
  theirs.terms = "CUDA, TCP";
  const auto stop = std::make_shared<collective::Stop>();
  const auto join_alone = [&] { return Communicator::create_on(device, mine, stop); };
  const collective::Stop never;
  const auto fails = [&](std::future<Result<Ranks>>& waits, ErrorKind kind, const std::string& words) {
    const auto made = waits.get();
    REQUIRE(!made);
    INFO(made.error().summary());
    CHECK(made.error().kind == kind);
    CHECK(made.error().message.find(words) != std::string::npos);
    CHECK(Counts::now().aborted == before.aborted + 1);
  };
  const auto until_begun = [&](const std::future<Result<Ranks>>& waits) {
    const auto over = [&] { return waits.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
    while (Counts::now().begun == before.begun && !over()) std::this_thread::yield();
  };
  SECTION("it was killed after it had come") {
    auto waits = std::async(std::launch::async, join_alone);
    auto met = std::make_unique<collective::Meeting>(get(collective::meet(theirs, never)));
    until_begun(waits);
    met.reset();
    fails(waits, ErrorKind::network, "rank 1 is gone");
  }
  SECTION("it hangs") {
    mine.timeout_ms = 3000;
    auto waits = std::async(std::launch::async, join_alone);
    const auto met = get(collective::meet(theirs, never));
    fails(waits, ErrorKind::timeout, "for the other ranks to join");
  }
  SECTION("the script ends") {
    auto waits = std::async(std::launch::async, join_alone);
    const auto met = get(collective::meet(theirs, never));
    until_begun(waits);
    stop->now(make_error(ErrorKind::cancelled, "enough"));
    fails(waits, ErrorKind::cancelled, "enough");
  }
  const auto g = get(Graph::create(device));
  CHECK(numbers(sixty_four(*g, 1))[0] == 5);  // nothing was lost
}

TEST_CASE("of a compiled function with collectives what stands between them is captured", "[cuda]") {
  Options o;
  o.cards = 2;
  const Standin standin(o);
  auto ranks = met(standin);
  std::vector<std::vector<Tensor>> kept(2);
  for (std::size_t r = 0; r < 2; ++r) {
    Compiled step(ranks[r].graph);
    for (int i = 0; i < 5; ++i) {
      const Tensor x = sixty_four(*ranks[r].graph, 10 * i + int(r));
      if (get(step.begin({x})) == Compiled::Next::call) {
        const Tensor y = get(mul(step.arguments()[0], 2));
        get(all_reduce_(ranks[r].ranks, {y}, Reduce::sum));
        get(step.end({get(add(y, 1))}));
      }
      kept[r].push_back(step.outputs()[0]);
    }
  }
  const auto g = new_graph();
  for (int i = 0; i < 5; ++i) {
    const auto a = numbers(sixty_four(*g, 10 * i)), b = numbers(sixty_four(*g, 10 * i + 1));
    std::vector<double> sum;
    for (std::size_t k = 0; k < a.size(); ++k) sum.push_back(2 * (a[k] + b[k]) + 1);
    for (const auto& list : kept) CHECK(numbers(list[std::size_t(i)]) == sum);
  }
  // The third call captures; at each rank what comes before the collective, and what comes behind it.
  CHECK(standin.report().graph_launches == 2 * 2 * 3);
  CHECK(std::string(standin.report().wrong).empty());
}

// Every rank hands its numbers on to the next, twice round; what it sends is overwritten at once.
std::vector<Tensor> ring(Rank& r, int rank, int world) {
  const int next = (rank + 1) % world, previous = (rank + world - 1) % world;
  std::vector<Tensor> kept;
  Tensor mine = sixty_four(*r.graph, rank);
  for (int i = 0; i < 2 * world; ++i) {
    const Tensor theirs = get(zeros(*r.graph, dims({64}), DType::f32));
    get(sendrecv_(r.ranks, mine, next, theirs, previous));
    get(mul_(mine, -1));
    get(sendrecv_(r.ranks, mine, rank, mine, rank));  // to itself
    kept.push_back(get(add(theirs, rank)));
    mine = theirs;
  }
  get(sendrecv_(r.ranks, mine, next, mine, previous));
  kept.push_back(mine);
  return kept;
}

TEST_CASE("a ring of cards passes tensors on by sendrecv, in one group of NCCL's", "[cuda]") {
  const int world = GENERATE(2, 3);
  const auto g = new_graph();
  for (int seed = 1; seed <= 10; ++seed) {
    Options o;
    o.cards = world;
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    auto ranks = met(standin, world);
    std::vector<std::vector<Tensor>> kept;
    for (int r = 0; r < world; ++r) kept.push_back(ring(ranks[std::size_t(r)], r, world));
    for (int r = 0; r < world; ++r) {
      const auto& mine = kept[std::size_t(r)];
      for (int i = 0; i <= 2 * world; ++i) {
        auto right = numbers(sixty_four(*g, (r + 3 * world - 1 - i) % world));
        for (auto& x : right) x += i < 2 * world ? r : 0;
        CHECK(numbers(mine[std::size_t(i)]) == right);
      }
    }
    CHECK(std::string(standin.report().wrong).empty());
  }
}

// A user's stream writes what is exchanged, reads what came, and writes it again.
std::vector<Tensor> streamed(Rank& r, int rank) {
  const auto s = get(make_stream(*r.graph));
  const Adder add_to(*r.graph);
  Tensor y = whole(*r.graph, rank + 1), z = whole(*r.graph, 0);
  for (int i = 0; i < 6; ++i) {
    add_to(s, 1, whole(*r.graph, i + rank), y);  // before
    get(all_reduce_(r.ranks, {y}, Reduce::sum));
    add_to(s, 1, y, z);  // behind
    get(mul_(y, 0.5));
    add_to(s, 1, z, y);
    get(broadcast_(r.ranks, {y}, i % 2));
  }
  return {y, z};
}

Values streamed_alone() {
  double y[2] = {1, 2}, z = 0;
  for (int i = 0; i < 6; ++i) {
    const double sum = y[0] + i + y[1] + i + 1;
    z += sum;
    y[0] = y[1] = 0.5 * sum + z;
  }
  return {std::vector<double>(length, y[0]), std::vector<double>(length, z)};
}

int wrong_streams(Options o, int seeds) {
  int wrong = 0;
  o.cards = 2;
  for (int seed = 1; seed <= seeds; ++seed) {
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    auto ranks = met(standin);
    const std::vector<std::vector<Tensor>> kept{streamed(ranks[0], 0), streamed(ranks[1], 1)};
    for (const auto& list : kept) wrong += all(list) != streamed_alone();
    wrong += standin.report().wrong[0] != 0;
  }
  return wrong;
}

TEST_CASE("a stream and a collective that share a tensor keep the program's order", "[cuda]") {
  CHECK(wrong_streams({}, 20) == 0);
}

TEST_CASE("a wait between a stream and a collective that is missing is seen", "[cuda]") {
  Options o;
  SECTION("the first card's own order does not wait for the stream") { o.no_event_waits = 1u << 0; }
  SECTION("the second card's does not") { o.no_event_waits = 1u << 3; }
  SECTION("a stream does not wait for what a rank exchanges") { o.no_event_waits = 1u << 6; }
  SECTION("nor the other rank's") { o.no_event_waits = 1u << 7; }
  CHECK(wrong_streams(o, 10) > 0);
}

}  // namespace
}  // namespace rille::tensor
