// Failures are errors at every rank, name the responsible rank, and are raised within the limit.
#include <sys/socket.h>

#include <future>

#include "ranks.hpp"
#include "runtime/compute/collective/rendezvous.hpp"

namespace rille::collective {
namespace {

using Failed = std::vector<Result<>>;

void all_failed(const Failed& results, ErrorKind kind, const std::string& words) {
  for (const auto& r : results) {
    REQUIRE(!r);
    INFO(r.error().summary());
    CHECK(r.error().kind == kind);
    CHECK(r.error().message.find(words) != std::string::npos);
  }
}

TEST_CASE("ranks at different calls all get an error that names the difference", "[collective]") {
  const bool shared = GENERATE(true, false);
  const auto ranks = ranks_of(3, shared);
  SECTION("in the shape") {
    all_failed(each(ranks,
                    [](Communicator& c) {
                      std::vector<float> v(c.rank() == 2 ? 7 : 8);
                      return all_reduce(c, v);
                    }),
               ErrorKind::invalid, "all_reduce sum of f32[7]");
  }
  SECTION("in the type") {
    all_failed(each(ranks,
                    [](Communicator& c) {
                      std::vector<float> v(8);
                      std::vector<double> w(8);
                      return c.rank() == 1 ? all_reduce(c, w) : all_reduce(c, v);
                    }),
               ErrorKind::invalid, "f64[8]");
  }
  SECTION("in the operation, with much on its way") {
    all_failed(each(ranks,
                    [](Communicator& c) {
                      std::vector<float> v(4'000'000);
                      const Piece piece{v.data(), v.data(), 4'000'000};
                      if (c.rank() == 0) return c.run(operation<float>(Kind::broadcast, v.size(), {}, 0), {piece});
                      return all_reduce(c, v);
                    }),
               ErrorKind::invalid, "broadcast from rank 0");
  }
  SECTION("in the reduction") {
    all_failed(each(ranks,
                    [](Communicator& c) {
                      std::vector<float> v(8);
                      return all_reduce(c, v, c.rank() ? Reduce::sum : Reduce::max);
                    }),
               ErrorKind::invalid, "max");
  }
  SECTION("in who sends") {
    all_failed(each({ranks[0], ranks[1]},
                    [](Communicator& c) {
                      std::vector<float> v(8);
                      return c.run(operation<float>(Kind::send, 8, {}, 1 - c.rank()), {{v.data(), nullptr, 8}});
                    }),
               ErrorKind::invalid, "send to rank");
  }
  // The communicator is unusable, and repeats the first error.
  all_failed(each({ranks[0], ranks[1]}, [](Communicator& c) { return c.run({}, {}); }), ErrorKind::invalid, "differ");
}

TEST_CASE("a rank that leaves in the middle", "[collective]") {
  const bool shared = GENERATE(true, false);
  auto ranks = ranks_of(3, shared);
  auto left = std::async([&] { ranks[2].reset(); });
  all_failed(each({ranks[0], ranks[1]},
                  [](Communicator& c) {
                    std::vector<float> v(1'000'000);
                    return all_reduce(c, v);
                  }),
             ErrorKind::network, "rank 2 is gone during all_reduce sum of f32[1000000]");
  left.get();
}

TEST_CASE("a rank may leave when it has done its part", "[collective]") {
  const bool shared = GENERATE(true, false);
  for (int i = 0; i < 20; ++i) {
    auto ranks = ranks_of(2, shared);
    std::vector<Result<>> out(2);
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        std::vector<float> v(50'000, 1);
        out[r] = all_reduce(*ranks[r], v);
        if (out[r] && v[49'999] != 2) out[r] = make_error(ErrorKind::internal, "another sum");
        ranks[r].reset();
      });
    }
    for (auto& t : threads) t.join();
    all_good(out);
  }
}

TEST_CASE("a rank that does not come is named, within the limit", "[collective]") {
  const bool shared = GENERATE(true, false);
  const auto ranks = ranks_of(3, shared, 2000);
  const auto failed = each({ranks[0], ranks[2]}, [](Communicator& c) { return c.run({}, {}); });
  all_failed(failed, ErrorKind::timeout, "waited 2.0s for rank 1");
}

// A rank that sent its head before it failed may let another rank finish once; the next call reports the error.
Error told(Communicator& c) {
  for (int i = 0; i < 3; ++i)
    if (auto ran = c.run({}, {}); !ran) return std::move(ran).error();
  return make_error(ErrorKind::internal, "nothing went wrong");
}

TEST_CASE("a waiting operation can be cancelled, and its time shortened", "[collective]") {
  const auto ranks = ranks_of(2);
  SECTION("called off") {
    auto waits = std::async([&] { return ranks[0]->run({}, {}); });
    ranks[0]->stop(make_error(ErrorKind::cancelled, "enough"));
    const auto ended = waits.get();
    REQUIRE(!ended);
    CHECK(ended.error().message == "enough");
    CHECK(told(*ranks[1]).message == "enough");
  }
  SECTION("hurried") {
    auto waits = std::async([&] { return ranks[0]->run({}, {}); });
    ranks[0]->hurry(1);
    const auto ended = waits.get();
    REQUIRE(!ended);
    CHECK(ended.error().kind == ErrorKind::cancelled);
    CHECK(told(*ranks[1]).kind == ErrorKind::network);
  }
  SECTION("left") {
    ranks[1]->leave();
    CHECK(ranks[1]->run({}, {}).error().kind == ErrorKind::state);
    CHECK(ranks[0]->run({}, {}).error().message ==
          "rank 1 is gone during barrier of rank 0: it has closed its communicator");
  }
}

// -- the rendezvous
void none_met(const std::vector<Options>& options, ErrorKind kind, const std::string& words) {
  for (auto& made : meet_all(options)) {
    REQUIRE(!made);
    INFO(made.error().summary());
    CHECK(made.error().kind == kind);
    CHECK(made.error().message.find(words) != std::string::npos);
  }
}

TEST_CASE("ranks that cannot connect all get the reason", "[collective]") {
  const auto address = free_address();
  std::vector<Options> o{options_of(0, 3, address), options_of(1, 3, address), options_of(2, 3, address)};
  SECTION("another world") {
    o[2].world = 4;
    none_met(o, ErrorKind::invalid, "rank 2 was made with world = 4, rank 0 with world = 3");
  }
  SECTION("one rank twice") {
    o[2].rank = 1;
    none_met(o, ErrorKind::invalid, "rank 1 of 3 occurs twice");
  }
  SECTION("another build") {
    o[1].build = "another";
    none_met(o, ErrorKind::config, "rank 1 runs build another");
  }
  SECTION("another transport") {
    o[1].shared_memory = false;
    none_met(o, ErrorKind::invalid, "rank 1 was made for the CPU, TCP");
  }
  SECTION("one does not come") {
    o.pop_back();
    for (auto& each : o) each.timeout_ms = 2000;
    none_met(o, ErrorKind::timeout, "rank 2 of 3 did not connect to " + address + " within 2.0s");
  }
}

TEST_CASE("a rank with another token is refused, and the other ranks connect", "[collective]") {
  const auto address = free_address();
  auto zero = options_of(0, 2, address), one = options_of(1, 2, address), wrong = one;
  zero.token = one.token = "open sesame";
  wrong.token = "open barley";
  auto first = std::async([&] { return Communicator::create(zero, std::make_shared<Stop>()); });
  const auto refused = Communicator::create(wrong, std::make_shared<Stop>());
  REQUIRE(!refused);
  CHECK(refused.error().kind == ErrorKind::auth);
  CHECK(refused.error().message == "what listens at " + address + " does not know the token of rank 1");
  const auto second = Communicator::create(one, std::make_shared<Stop>());
  CHECK((second.ok() && first.get().ok()));
}

TEST_CASE("rank 0 says that a connection did not prove the token", "[collective]") {
  const auto address = free_address();
  auto zero = options_of(0, 2, address), wrong = options_of(1, 2, address);
  zero.token = "open sesame";
  zero.timeout_ms = 1000;
  auto first = std::async(std::launch::async, [&] { return Communicator::create(zero, std::make_shared<Stop>()); });
  const auto refused = Communicator::create(wrong, std::make_shared<Stop>());
  CHECK((!refused && refused.error().kind == ErrorKind::auth));
  const auto alone = first.get();
  REQUIRE(!alone);
  CHECK(alone.error().kind == ErrorKind::timeout);
  CHECK(alone.error().hint.starts_with("a connection from 127.0.0.1:"));
  CHECK(alone.error().hint.ends_with(" did not prove the token"));
}

TEST_CASE("connections from other programs do not disturb the meeting", "[collective]") {
  const auto address = free_address();
  const auto zero = options_of(0, 2, address), one = options_of(1, 2, address);
  auto first = std::async([&] { return Communicator::create(zero, std::make_shared<Stop>()); });
  const Stop stop;
  const Limit limit(10'000, stop);
  std::vector<Fd> strangers;
  for (const std::string_view said :
       {std::string_view(), std::string_view("GET / HTTP/1.1\r\n\r\n"), std::string_view("\x02\0\0\0{}", 6), bell,
        std::string_view("\x37\0\0\0{\"a\":[128.74836467836484838364836483643636483648e-336]}", 59)}) {
    strangers.push_back(get(connect_to(get(parse_address(address)), limit)));
    CHECK(::send(strangers.back().get(), said.data(), said.size(), MSG_NOSIGNAL) == long(said.size()));
  }
  strangers.erase(strangers.begin() + 1);
  const auto second = Communicator::create(one, std::make_shared<Stop>());
  CHECK((second.ok() && first.get().ok()));
}

TEST_CASE("connecting to another program than rank 0 is an error", "[collective]") {
  const auto address = free_address();
  auto one = options_of(1, 2, address);
  one.timeout_ms = 200;
  const auto nobody = Communicator::create(one, std::make_shared<Stop>());
  REQUIRE(!nobody);
  CHECK(nobody.error().kind == ErrorKind::timeout);
  CHECK(nobody.error().message.starts_with("rank 1 did not reach rank 0 at " + address + " within 200ms"));
  // Another program listens there and hangs up.
  const Fd other = get(listen_at(get(parse_address(address))));
  auto came = std::async([&] { return Communicator::create(one, std::make_shared<Stop>()); });
  const Stop stop;
  get(Limit(10'000, stop).wait(other.get(), 1));  // POLLIN
  accept_from(other.get());
  const auto hung = came.get();
  REQUIRE(!hung);
  CHECK(hung.error().kind == ErrorKind::network);
  const auto taken = Communicator::create(options_of(0, 2, address), std::make_shared<Stop>());
  REQUIRE(!taken);
  CHECK(taken.error().hint == "use another port; or an earlier rank 0 is still running");
}

TEST_CASE("impossible options are refused", "[collective]") {
  const auto stop = std::make_shared<Stop>();
  CHECK(Communicator::create(options_of(2, 2, "127.0.0.1:1"), stop).error().kind == ErrorKind::invalid);
  CHECK(Communicator::create(options_of(-1, 2, "127.0.0.1:1"), stop).error().kind == ErrorKind::invalid);
  CHECK(Communicator::create(options_of(0, 257, "127.0.0.1:1"), stop).error().kind == ErrorKind::invalid);
  for (const char* bad : {"", "127.0.0.1", ":1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "::1:5", "host:5x"})
    CHECK(Communicator::create(options_of(0, 2, bad), stop).error().kind == ErrorKind::invalid);
  CHECK(Communicator::create(options_of(0, 2, "10.1.2.3:5"), stop).error().hint.starts_with("pass token = .."));
  CHECK(Communicator::create(options_of(0, 2, "127.example.org:5"), stop).error().hint.starts_with("pass token = .."));
  CHECK(to_string(get(parse_address("[::1]:29500"))) == "[::1]:29500");
  // Stopped before the wait began.
  stop->now(make_error(ErrorKind::cancelled, "enough"));
  CHECK(Communicator::create(options_of(0, 2, free_address()), stop).error().message == "enough");
  CHECK(Communicator::create(options_of(1, 2, free_address()), stop).error().message == "enough");
}

}  // namespace
}  // namespace rille::collective
