// Messages between two ranks: rings of them, and how sendrecv meets send and recv.
#include <numeric>

#include "ranks.hpp"

namespace rille::collective {
namespace {

using Floats = std::vector<float>;
constexpr std::size_t larger_than_buffers = 4'000'001;  // 16 MB; a ring has 1 MB, a socket at most 10

Floats numbers_of(int rank, std::size_t n) {
  Floats v(n);
  std::iota(v.begin(), v.end(), float(1000 * rank));
  return v;
}

Result<> send(Communicator& c, const Floats& v, int to) {
  return c.run(operation<float>(Kind::send, v.size(), {}, to), {{v.data(), nullptr, std::int64_t(v.size())}});
}

Result<> receive(Communicator& c, Floats& v, int from) {
  return c.run(operation<float>(Kind::receive, v.size(), {}, from), {{v.data(), v.data(), std::int64_t(v.size())}});
}

template <class T, class U>
Result<> sendrecv(Communicator& c, const std::vector<T>& out, int to, std::vector<U>& in, int from) {
  Operation op = operation<T>(Kind::sendrecv, out.size(), {}, to);
  op.incoming = {from, type_of<U>(), {}, std::int64_t(in.size())};
  op.incoming.shape.push(op.incoming.count);
  return c.run(op, {{out.data(), nullptr, op.count}, {nullptr, in.data(), op.incoming.count}});
}

// Hands a tensor to the next rank, and takes the previous rank's.
Result<> pass(Communicator& c, const Floats& out, Floats& in) {
  return sendrecv(c, out, (c.rank() + 1) % c.world(), in, (c.rank() + c.world() - 1) % c.world());
}

TEST_CASE("a ring in which each rank sends before it receives times out, and the hint names sendrecv", "[collective]") {
  const int world = GENERATE(2, 3, 4);
  const bool shared = GENERATE(true, false), sends_first = GENERATE(true, false);
  const auto ranks = ranks_of(world, shared, 1000);
  const auto failed = each(ranks, [&](Communicator& c) -> Result<> {
    const int next = (c.rank() + 1) % world, previous = (c.rank() + world - 1) % world;
    const Floats mine = numbers_of(c.rank(), larger_than_buffers);
    Floats theirs(mine.size());
    if (sends_first) RILLE_CHECK(send(c, mine, next));
    RILLE_CHECK(receive(c, theirs, previous));
    return send(c, mine, next);
  });
  for (const auto& f : failed) {
    REQUIRE(!f);
    INFO(f.error().summary());
    // Two ranks see each other's call at once; of more, each sees only that nothing comes.
    CHECK(f.error().kind == (world == 2 ? ErrorKind::invalid : ErrorKind::timeout));
    CHECK(f.error().hint.find("use comm:sendrecv, which sends and receives at once") != std::string::npos);
    if (world > 2)
      CHECK(f.error().hint.find(sends_first ? "waits at send to" : "waits at recv from") != std::string::npos);
  }
}

TEST_CASE("a ring of any size passes tensors on by sendrecv", "[collective]") {
  const int world = GENERATE(1, 2, 3, 4);
  const bool shared = GENERATE(true, false);
  const auto ranks = ranks_of(world, shared);
  for (const std::size_t n : {std::size_t(0), std::size_t(1), std::size_t(70'000), larger_than_buffers}) {
    all_good(each(ranks, [&](Communicator& c) -> Result<> {
      const Floats mine = numbers_of(c.rank(), n);
      Floats theirs(n);
      for (int i = 0; i < 2; ++i) RILLE_CHECK(pass(c, mine, theirs));
      if (theirs != numbers_of((c.rank() + world - 1) % world, n))
        return make_error(ErrorKind::internal, "other numbers");
      return success();
    }));
  }
  all_good(each(ranks, [](Communicator& c) { return c.run({}, {}); }));
}

TEST_CASE("what a sendrecv sends and receives may differ in shape and type", "[collective]") {
  const auto ranks = ranks_of(2, GENERATE(true, false));
  const Floats floats = numbers_of(0, 300'000);
  const std::vector<std::int64_t> integers(5, 7);
  Floats got_floats(floats.size());
  std::vector<std::int64_t> got_integers(5);
  all_good(each(ranks, [&](Communicator& c) {
    return c.rank() == 0 ? sendrecv(c, floats, 1, got_integers, 1) : sendrecv(c, integers, 0, got_floats, 0);
  }));
  CHECK((got_floats == floats && got_integers == integers));
}

TEST_CASE("a rank may exchange with itself", "[collective]") {
  const auto ranks = ranks_of(2);
  const Floats mine = numbers_of(3, 1000);
  Floats got(1000), fewer(999);
  get(sendrecv(*ranks[1], mine, 1, got, 1));
  CHECK(got == mine);
  CHECK(sendrecv(*ranks[1], mine, 1, fewer, 1).error().message ==
        "sendrecv to rank 1 of f32[1000], from rank 1 of f32[999]: rank 1 receives what it sends");
  CHECK(sendrecv(*ranks[1], mine, 0, got, 1).error().kind == ErrorKind::invalid);
  CHECK(sendrecv(*ranks[1], mine, 1, got, 0).error().kind == ErrorKind::invalid);
  CHECK(sendrecv(*ranks[1], mine, 2, got, 0).error().hint == "ranks are 0 to 1");
  CHECK(sendrecv(*ranks[1], mine, 0, got, -1).error().hint == "ranks are 0 to 1");
  all_good(each(ranks, [](Communicator& c) { return c.run({}, {}); }));  // nothing was sent
}

TEST_CASE("sendrecv meets send and recv", "[collective]") {
  const bool shared = GENERATE(true, false);
  const std::size_t n = GENERATE(std::size_t(3), larger_than_buffers);
  const auto ranks = ranks_of(3, shared);
  std::vector<Floats> got(3, Floats(n)), mine;
  for (int r = 0; r < 3; ++r) mine.push_back(numbers_of(r, n));
  SECTION("at the ends of a chain") {
    all_good(each(ranks, [&](Communicator& c) -> Result<> {
      if (c.rank() == 0) return send(c, mine[0], 1);
      if (c.rank() == 2) return receive(c, got[2], 1);
      return sendrecv(c, mine[1], 2, got[1], 0);
    }));
    CHECK((got[1] == mine[0] && got[2] == mine[1]));
  }
  SECTION("of one rank, which sends first") {
    all_good(each(ranks, [&](Communicator& c) -> Result<> {
      if (c.rank() == 0) return sendrecv(c, mine[0], 1, got[0], 1);
      if (c.rank() == 2) return success();
      RILLE_CHECK(send(c, mine[1], 0));
      return receive(c, got[1], 0);
    }));
    CHECK((got[0] == mine[1] && got[1] == mine[0]));
  }
  SECTION("of one rank, which receives first") {
    all_good(each(ranks, [&](Communicator& c) -> Result<> {
      if (c.rank() == 0) return sendrecv(c, mine[0], 1, got[0], 1);
      if (c.rank() == 2) return success();
      RILLE_CHECK(receive(c, got[1], 0));
      return send(c, mine[1], 0);
    }));
    CHECK((got[0] == mine[1] && got[1] == mine[0]));
  }
  SECTION("of one rank, in two sendrecv with others") {
    all_good(each(ranks, [&](Communicator& c) -> Result<> {
      if (c.rank() == 0) return sendrecv(c, mine[0], 1, got[0], 1);
      if (c.rank() == 2) return sendrecv(c, mine[2], 1, got[2], 1);
      RILLE_CHECK(sendrecv(c, mine[1], 2, got[1], 0));
      Floats other(n);
      RILLE_CHECK(sendrecv(c, mine[1], 0, other, 2));
      if (other != mine[2]) return make_error(ErrorKind::internal, "other numbers");
      return success();
    }));
    CHECK((got[0] == mine[1] && got[1] == mine[0] && got[2] == mine[1]));
  }
  // Rank 1's two halves do not wait for each other: rank 2 receives from it only after it has received.
  SECTION("one after the other") {
    Floats again(n);
    all_good(each(ranks, [&](Communicator& c) -> Result<> {
      if (c.rank() == 1) return sendrecv(c, mine[1], 2, got[1], 0);
      if (c.rank() == 0) RILLE_CHECK(send(c, mine[0], 1));
      if (c.rank() == 0) return send(c, mine[0], 2);
      RILLE_CHECK(receive(c, again, 0));
      return receive(c, got[2], 1);
    }));
    CHECK((got[1] == mine[0] && again == mine[0] && got[2] == mine[1]));
  }
  all_good(each(ranks, [](Communicator& c) { return c.run({}, {}); }));
}

void all_differ(const std::vector<Result<>>& results, const std::string& words) {
  for (const auto& r : results) {
    REQUIRE(!r);
    INFO(r.error().summary());
    CHECK(r.error().kind == ErrorKind::invalid);
    CHECK(r.error().message.find("the ranks are at different calls") != std::string::npos);
    CHECK(r.error().message.find(words) != std::string::npos);
  }
}

TEST_CASE("a sendrecv that meets another call is an error at both", "[collective]") {
  const auto ranks = ranks_of(2, GENERATE(true, false));
  const Floats mine = numbers_of(0, 8);
  Floats got(8), other(9);
  SECTION("another shape") {
    all_differ(
        each(ranks,
             [&](Communicator& c) { return sendrecv(c, mine, 1 - c.rank(), c.rank() ? other : got, 1 - c.rank()); }),
        "sendrecv to rank 1 of f32[8]");
  }
  SECTION("a reduction") {
    all_differ(each(ranks, [&](Communicator& c) { return c.rank() ? all_reduce(c, other) : pass(c, mine, got); }),
               "all_reduce sum of f32[9]");
  }
  SECTION("a reduction, when half of it is done") {
    all_differ(each(ranks,
                    [&](Communicator& c) -> Result<> {
                      if (c.rank() == 0) return pass(c, mine, got);
                      Floats v(8);
                      RILLE_CHECK(receive(c, v, 0));
                      return all_reduce(c, other);
                    }),
               "all_reduce sum of f32[9]");
  }
  SECTION("a second recv, when half of it is done") {
    all_differ(each(ranks,
                    [&](Communicator& c) -> Result<> {
                      if (c.rank() == 0) return pass(c, mine, got);
                      Floats v(8);
                      RILLE_CHECK(receive(c, v, 0));
                      return receive(c, v, 0);
                    }),
               "sendrecv from rank 1 of f32[8]");
  }
}

}  // namespace
}  // namespace rille::collective
