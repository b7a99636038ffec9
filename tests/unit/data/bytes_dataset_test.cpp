#include "runtime/compute/data/bytes_dataset.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "runtime/core/store/file.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::data;

namespace {

std::string noise(std::size_t size) {
  std::string out(size, '\0');
  std::uint32_t x = 1;
  for (char& c : out) x = x * 1664525u + 1013904223u, c = static_cast<char>(x >> 24);
  return out;
}

struct Fixture {
  TempDir dir;
  std::string text = noise(10'000);
  Fixture() { REQUIRE(store::write_file_atomic(dir.file("t"), text).ok()); }
  BytesDataset open(BytesOptions options) { return BytesDataset::open(dir.file("t"), options).value(); }
};

using Batch = std::vector<std::uint8_t>;

}  // namespace

TEST_CASE("a permutation is a permutation, differs by key and leaves the identity") {
  for (std::uint64_t n : {1ull, 2ull, 3ull, 5ull, 64ull, 65ull, 1000ull, 4097ull}) {
    std::set<std::uint64_t> seen;
    Permutation p(n, 7);
    for (std::uint64_t i = 0; i < n; ++i) {
      CHECK(p(i) < n);
      seen.insert(p(i));
    }
    CHECK(seen.size() == n);
  }
  Permutation a(4097, 1), b(4097, 2);
  int same = 0, fixed = 0, neighbours = 0;
  for (std::uint64_t i = 0; i < 4096; ++i) {
    same += a(i) == b(i);
    fixed += a(i) == i;
    neighbours += a(i + 1) == a(i) + 1;
  }
  CHECK(same < 10);
  CHECK(fixed < 10);
  CHECK(neighbours < 10);
  CHECK(Permutation(~0ull, 3)(12345) < ~0ull);
}

TEST_CASE_METHOD(Fixture, "samples are windows of the training part, each once in an epoch") {
  auto set = open({.context = 64, .seed = 3, .validation = 0.25});
  CHECK(set.bytes(Split::train) == std::string_view(text).substr(0, 7500));
  CHECK(set.bytes(Split::validation) == std::string_view(text).substr(7500));
  const auto* begin = reinterpret_cast<const std::uint8_t*>(set.bytes(Split::train).data());
  std::vector<std::set<std::ptrdiff_t>> starts(2);
  std::uint64_t n = set.windows(Split::train);
  for (std::uint64_t i = 0; i < 2 * n; ++i) {
    auto s = set.sample(Split::train, i);
    REQUIRE(s.epoch == i / n);
    CHECK(s.y == s.x + 1);
    CHECK(s.x >= begin);
    CHECK(s.y + 64 <= begin + 7500);
    starts[s.epoch].insert(s.x - begin);
  }
  for (auto& epoch : starts) {
    CHECK(epoch.size() == n);
    CHECK(*epoch.rbegin() - *epoch.begin() == static_cast<std::ptrdiff_t>((n - 1) * 64));
  }
  CHECK(*starts[0].begin() != *starts[1].begin());  // each epoch is cut at another phase
  CHECK(n * 64 > 7500 - 128);
}

TEST_CASE_METHOD(Fixture, "the order follows from seed and cursor alone") {
  auto a = open({.context = 32, .seed = 5}), b = open({.context = 32, .seed = 5}), c = open({.context = 32, .seed = 6});
  Batch ax(8 * 32), ay(ax), bx(ax), by(ax), cx(ax), cy(ax);
  a.next_batch(8, ax.data(), ay.data());
  for (int i = 0; i < 4; ++i) b.next_batch(2, bx.data() + i * 64, by.data() + i * 64);  // another batch size
  c.next_batch(8, cx.data(), cy.data());
  CHECK(ax == bx);
  CHECK(ay == by);
  CHECK(a.cursor() == b.cursor());
  CHECK(ax != cx);
  CHECK(std::equal(ax.begin() + 1, ax.begin() + 32, ay.begin()));
  // Two workers see the two halves.
  auto r0 = open({.context = 32, .seed = 5}), r1 = open({.context = 32, .seed = 5});
  Batch wx(8 * 32), wy(wx);
  r0.next_batch(4, wx.data(), wy.data(), 0, 2);
  r1.next_batch(4, wx.data() + 128, wy.data() + 128, 1, 2);
  CHECK(wx == ax);
  CHECK(r0.cursor() == 8);
  CHECK(r1.cursor() == 8);
  // int32 gives the same numbers, bytes above 127 too.
  std::vector<std::int32_t> ix(8 * 32), iy(ix);
  b.seek(0);
  b.next_batch(8, ix.data(), iy.data());
  CHECK(std::equal(ix.begin(), ix.end(), ax.begin()));
  CHECK(*std::max_element(ix.begin(), ix.end()) > 127);
}

TEST_CASE_METHOD(Fixture, "without shuffling the text is read from its beginning") {
  auto set = open({.context = 10, .validation = 0, .shuffle = false});
  Batch x(20), y(20);
  set.next_batch(2, x.data(), y.data());
  CHECK(std::string(x.begin(), x.end()) == text.substr(0, 20));
  CHECK(std::string(y.begin(), y.end()) == text.substr(1, 20));
  CHECK(set.windows(Split::validation) == 0);
}

TEST_CASE_METHOD(Fixture, "a restored data set goes on with the same samples") {
  auto a = open({.context = 16, .seed = ~0ull});
  Batch x(48), y(48), x2(48), y2(48);
  for (int i = 0; i < 300; ++i) a.next_batch(3, x.data(), y.data());
  CHECK(a.epoch() > 0);
  Value state = Value::from_json(a.state().to_json()).value();
  auto b = open({.context = 16, .seed = ~0ull});
  REQUIRE(b.restore(state).ok());
  CHECK(b.cursor() == 900);
  a.next_batch(3, x.data(), y.data());
  b.next_batch(3, x2.data(), y2.data());
  CHECK(x == x2);
  CHECK(y == y2);

  auto refused = [&](BytesDataset other, std::string_view naming) {
    auto r = other.restore(state);
    REQUIRE(!r.ok());
    CHECK(r.error().kind == ErrorKind::state);
    CHECK(r.error().message.find(naming) != std::string::npos);
  };
  refused(open({.context = 17, .seed = ~0ull}), "context");
  refused(open({.context = 16, .seed = 1}), "seed");
  refused(open({.context = 16, .seed = ~0ull, .validation = 0.2}), "validation");
  refused(open({.context = 16, .seed = ~0ull, .shuffle = false}), "shuffle");
  text[5000] ^= 1;
  REQUIRE(store::write_file_atomic(dir.file("t"), text).ok());
  refused(open({.context = 16, .seed = ~0ull}), "digest");
  CHECK(b.restore(state.set("cursor", "-3")).error().kind == ErrorKind::state);
}

TEST_CASE_METHOD(Fixture, "validation is the same for every seed and covers its part") {
  auto a = open({.context = 16, .seed = 1, .validation = 0.1}), b = open({.context = 16, .seed = 2, .validation = 0.1});
  auto n = static_cast<std::int64_t>(a.windows(Split::validation));
  Batch ax(n * 16), ay(ax), bx(ax), by(ax);
  a.validation_batch(0, n, ax.data(), ay.data());
  b.validation_batch(static_cast<std::uint64_t>(n), n, bx.data(), by.data());  // wraps
  CHECK(ax == bx);
  CHECK(a.cursor() == 0);
  std::set<std::string> windows;
  for (std::int64_t i = 0; i < n; ++i) windows.insert(std::string(ax.begin() + i * 16, ax.begin() + (i + 1) * 16));
  CHECK(windows.size() == static_cast<std::size_t>(n));
}

TEST_CASE("a directory is its visible files in sorted order") {
  TempDir dir;
  REQUIRE(store::make_directories(dir.file("b/.git")).ok());
  for (auto [name, text] :
       {std::pair{"c.txt", "333"}, {"a.txt", "111"}, {"b/x.txt", "222"}, {".hidden", "no"}, {"b/.git/x", "no"}})
    REQUIRE(store::write_file_atomic(dir.file(name), text).ok());
  auto set = BytesDataset::open(dir.path, {.context = 2, .validation = 0});
  REQUIRE(set.ok());
  CHECK(set->bytes(Split::train) == "111222333");
  CHECK(set->windows(Split::train) == 3);
  auto moved = std::move(*set);
  CHECK(moved.bytes(Split::train) == "111222333");
}

TEST_CASE("what cannot be a data set is named") {
  TempDir dir;
  auto missing = BytesDataset::open(dir.file("none"), {});
  CHECK(missing.error().kind == ErrorKind::io);
  CHECK(missing.error().message.find("none") != std::string::npos);
  auto empty = BytesDataset::open(dir.path, {});
  CHECK(empty.error().kind == ErrorKind::invalid);
  CHECK(empty.error().message.find("no files") != std::string::npos);
  REQUIRE(store::write_file_atomic(dir.file("t"), noise(128)).ok());
  auto shorter = BytesDataset::open(dir.file("t"), {.context = 128});
  CHECK(shorter.error().message.find("has 128 bytes") != std::string::npos);
  CHECK(shorter.error().message.find("129") != std::string::npos);
  CHECK(BytesDataset::open(dir.file("t"), {.context = 127, .validation = 0}).ok());
  CHECK(BytesDataset::open(dir.file("t"), {.context = 127}).error().message.find("training part") != std::string::npos);
  CHECK(BytesDataset::open(dir.file("t"), {.context = 0}).error().kind == ErrorKind::invalid);
  CHECK(BytesDataset::open(dir.file("t"), {.context = 8, .validation = 1}).error().kind == ErrorKind::invalid);
  CHECK(BytesDataset::open(dir.file("t"), {.context = 8, .validation = NAN}).error().kind == ErrorKind::invalid);
}

TEST_CASE("the bigram baseline") {
  // The only counted pair has p = (1 + add) / (1 + 256 add), all others add / (256 add).
  CHECK(bigram_nats_per_byte("ab", "ab", 1).value() == Approx(-std::log(2.0 / 257)));
  CHECK(bigram_nats_per_byte("ab", "ba", 1).value() == Approx(std::log(256.0)));
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "abc";
  CHECK(bigram_nats_per_byte(text, text).value() < 0.1);
  CHECK(bigram_nats_per_byte(noise(50'000), noise(50'000)).value() > 4);
  CHECK(!bigram_nats_per_byte("a", "ab").ok());
  CHECK(!bigram_nats_per_byte("ab", "").ok());
  CHECK(!bigram_nats_per_byte("ab", "ab", 0).ok());
}

TEST_CASE_METHOD(Fixture, "a look may end what takes long, and the position stays") {
  struct Ended {};
  int looks = 0;
  const Look look = [&] {
    if (++looks == 3) throw Ended();
  };
  auto set = open({.context = 4000, .validation = 0.5});
  const auto digest = set.digest();
  std::vector<std::int32_t> x(4000 * 1000), y(x.size());
  CHECK_THROWS_AS(set.next_batch(1000, x.data(), y.data(), 0, 1, look), Ended);
  CHECK(set.cursor() == 0);
  looks = 0;
  CHECK_THROWS_AS(set.validation_batch(0, 1000, x.data(), y.data(), look), Ended);
  const std::string large(std::size_t{1} << 20, 'x');
  looks = 0;
  CHECK_THROWS_AS(bigram_nats_per_byte(large, large, 1, look), Ended);
  looks = -1000;
  CHECK(BytesDataset::open(dir.file("t"), {.context = 4000, .validation = 0.5}, look)->digest() == digest);
  Value state = set.state();
  state.set("cursor", "18446744073709551615");
  CHECK(set.restore(state).error().kind == ErrorKind::state);
}

TEST_CASE_METHOD(Fixture, "the text of a folder needs room, which may be refused") {
  const auto full = make_error(ErrorKind::memory, "full");
  std::int64_t asked = 0;
  CHECK(BytesDataset::open(dir.path, {}, {}, [&](std::int64_t bytes) -> Result<> { return asked = bytes, full; })
            .error()
            .message == "full");
  CHECK(asked == 10'000);
  CHECK(BytesDataset::open(dir.path, {}, {}, [](std::int64_t) { return success(); }).ok());
}
