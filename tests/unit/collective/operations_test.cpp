// The results of each operation, by shared memory and by TCP, small and large.
#include <cmath>
#include <cstring>
#include <random>

#include "ranks.hpp"

namespace rille::collective {
namespace {

template <class T>
std::vector<T> values(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> out(n);
  for (auto& x : out) {
    if constexpr (std::is_floating_point_v<T>) x = T(std::normal_distribution<double>()(random));
    else if constexpr (sizeof(T) == 2) x = T(0x3f00 + random() % 0x180);  // bf16 between 0.5 and 4
    else x = T(std::int64_t(random()) - (1ll << 31));
  }
  return out;
}

float from_brain(std::uint16_t h) {
  const std::uint32_t bits = std::uint32_t(h) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

std::uint16_t to_brain(float f) {
  std::uint32_t u;
  std::memcpy(&u, &f, 4);
  return std::uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

// Folds in the order of the ranks.
template <class T>
std::vector<T> folded(const std::vector<std::vector<T>>& given, Reduce how) {
  const auto join = [how](auto a, auto b) {
    using A = decltype(a);
    switch (how) {
      case Reduce::sum:
      case Reduce::mean:
        if constexpr (std::is_integral_v<A>) return A(std::make_unsigned_t<A>(a) + std::make_unsigned_t<A>(b));
        else return a + b;
      case Reduce::max: return std::max(a, b);
      case Reduce::min: return std::min(a, b);
      case Reduce::product:
        if constexpr (std::is_integral_v<A>) return A(std::make_unsigned_t<A>(a) * std::make_unsigned_t<A>(b));
        else return a * b;
    }
    return a;
  };
  std::vector<T> out(given[0].size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if constexpr (sizeof(T) == 2) {
      float acc = from_brain(given[0][i]);
      for (std::size_t r = 1; r < given.size(); ++r) acc = join(acc, from_brain(given[r][i]));
      out[i] = to_brain(how == Reduce::mean ? acc / float(given.size()) : acc);
    } else {
      T acc = given[0][i];
      for (std::size_t r = 1; r < given.size(); ++r) acc = join(acc, given[r][i]);
      out[i] = how == Reduce::mean ? T(acc / T(given.size())) : acc;
    }
  }
  return out;
}

template <class T>
std::vector<std::vector<T>> given_by(std::size_t world, std::size_t n) {
  std::vector<std::vector<T>> out;
  for (std::size_t r = 0; r < world; ++r) out.push_back(values<T>(n, unsigned(r + 1)));
  return out;
}

template <class T>
void check_reductions(const std::vector<Ranks>& ranks, const std::vector<Reduce>& hows) {
  for (const std::size_t n : std::initializer_list<std::size_t>{0, 1, 1000, 70'001, 600'000}) {
    for (const auto how : hows) {
      const auto given = given_by<T>(ranks.size(), n);
      const auto right = folded(given, how);
      auto mine = given;
      all_good(each(ranks, [&](Communicator& c) { return all_reduce(c, mine[std::size_t(c.rank())], how); }));
      for (const auto& m : mine)
        CHECK((m.size() == n && (n == 0 || std::memcmp(m.data(), right.data(), n * sizeof(T)) == 0)));
    }
  }
}

TEST_CASE("all_reduce folds in the order of the ranks, the same bits at every rank", "[collective]") {
  const int world = GENERATE(1, 2, 3, 4);
  const bool shared = GENERATE(true, false);
  const auto ranks = ranks_of(world, shared);
  for (const auto& r : ranks) CHECK(r->transport() == (world == 1 ? "nothing" : shared ? "shared memory" : "tcp"));
  check_reductions<float>(ranks, {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min, Reduce::product});
  check_reductions<double>(ranks, {Reduce::sum});
  check_reductions<std::uint16_t>(ranks, {Reduce::sum, Reduce::mean});
  check_reductions<std::int32_t>(ranks, {Reduce::sum, Reduce::max, Reduce::product});
  check_reductions<std::int64_t>(ranks, {Reduce::sum, Reduce::min});
}

TEST_CASE("a NaN of any rank stays", "[collective]") {
  const auto ranks = ranks_of(3);
  for (int whose = 0; whose < 3; ++whose) {
    for (const auto how : {Reduce::max, Reduce::min, Reduce::sum}) {
      std::vector<std::vector<float>> mine{{1, 2}, {3, 0}, {-1, 5}};
      mine[std::size_t(whose)][1] = NAN;
      all_good(each(ranks, [&](Communicator& c) { return all_reduce(c, mine[std::size_t(c.rank())], how); }));
      for (const auto& m : mine) CHECK((!std::isnan(m[0]) && std::isnan(m[1])));
    }
  }
}

TEST_CASE("broadcast, all_gather, reduce_scatter", "[collective]") {
  const int world = GENERATE(1, 2, 4);
  const bool shared = GENERATE(true, false);
  const auto ranks = ranks_of(world, shared);
  const auto size = std::size_t(world);
  for (const std::size_t n : {std::size_t(0), std::size_t(5), std::size_t(300'001)}) {
    const auto given = given_by<float>(size, n);
    for (int from = 0; from < world; ++from) {
      auto mine = given;
      all_good(each(ranks, [&](Communicator& c) {
        auto& v = mine[std::size_t(c.rank())];
        return c.run(operation<float>(Kind::broadcast, n, Reduce::sum, from), {{v.data(), v.data(), std::int64_t(n)}});
      }));
      for (const auto& m : mine) CHECK(m == given[std::size_t(from)]);
    }
    std::vector<std::vector<float>> all(size, std::vector<float>(n * size));
    all_good(each(ranks, [&](Communicator& c) {
      const auto r = std::size_t(c.rank());
      return c.run(operation<float>(Kind::all_gather, n), {{given[r].data(), all[r].data(), std::int64_t(n)}});
    }));
    for (const auto& a : all) {
      bool same = true;
      for (std::size_t r = 0; r < size; ++r)
        same = same && std::equal(given[r].begin(), given[r].end(), a.begin() + long(r * n));
      CHECK(same);
    }
    const auto wide = given_by<float>(size, n * size);
    const auto right = folded(wide, Reduce::mean);
    std::vector<std::vector<float>> part(size, std::vector<float>(n));
    all_good(each(ranks, [&](Communicator& c) {
      const auto r = std::size_t(c.rank());
      return c.run(operation<float>(Kind::reduce_scatter, n, Reduce::mean),
                   {{wide[r].data(), part[r].data(), std::int64_t(n)}});
    }));
    for (std::size_t r = 0; r < size; ++r)
      CHECK(std::vector<float>(right.begin() + long(r * n), right.begin() + long((r + 1) * n)) == part[r]);
  }
}

TEST_CASE("send and recv, and several tensors as one message", "[collective]") {
  const auto ranks = ranks_of(3, GENERATE(true, false));
  const auto given = given_by<float>(3, 400'000);
  std::vector<float> got(400'000);
  all_good(each(ranks, [&](Communicator& c) -> Result<> {
    const auto n = std::int64_t(got.size());
    const Piece from{given[1].data(), nullptr, n}, to{got.data(), got.data(), n};
    if (c.rank() == 1) RILLE_CHECK(c.run(operation<float>(Kind::send, got.size(), {}, 2), {from}));
    if (c.rank() == 2) RILLE_CHECK(c.run(operation<float>(Kind::receive, got.size(), {}, 1), {to}));
    return c.run({}, {});
  }));
  CHECK(got == given[1]);
  std::vector<std::vector<std::vector<float>>> lists(3);
  for (std::size_t r = 0; r < 3; ++r) lists[r] = {{float(r), 1}, {}, std::vector<float>(100'000, float(r + 1))};
  all_good(each(ranks, [&](Communicator& c) {
    auto& mine = lists[std::size_t(c.rank())];
    auto op = operation<float>(Kind::all_reduce, 100'002);
    op.tensors = 3;
    op.shape = {};
    std::vector<Piece> pieces;
    for (auto& v : mine) pieces.push_back({v.data(), v.data(), std::int64_t(v.size())});
    return c.run(op, pieces);
  }));
  for (const auto& mine : lists) {
    CHECK(mine[0] == std::vector<float>{3, 3});
    CHECK(mine[2] == std::vector<float>(100'000, 6));
  }
}

TEST_CASE("impossible operations are refused before anything is sent", "[collective]") {
  const auto ranks = ranks_of(1);
  std::vector<std::int32_t> v{1};
  const auto bad = all_reduce(*ranks[0], v, Reduce::mean);
  CHECK((!bad && bad.error().kind == ErrorKind::invalid));
  CHECK(bad.error().message == "all_reduce mean of i32[1]: i32 cannot be reduced this way");
  CHECK(!ranks[0]->run(operation<float>(Kind::broadcast, 1, {}, 1), {}));
  CHECK(!ranks[0]->run(operation<float>(Kind::send, 1, {}, 0), {}));
  CHECK(all_reduce(*ranks[0], v));
  CHECK(parse_reduce("median").error().kind == ErrorKind::invalid);
  CHECK(get(parse_reduce("avg")) == Reduce::mean);
}

}  // namespace
}  // namespace rille::collective
