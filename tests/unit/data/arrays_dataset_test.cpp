// Row order computed from a key, cropped and mirrored images, and a position that can be restored.
#include "runtime/compute/data/arrays_dataset.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <set>

namespace rille::data {
namespace {

template <class T>
Array array(const std::string& name, DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  const auto kept = std::make_shared<std::vector<T>>(values);
  return {name, dtype, std::move(shape), {reinterpret_cast<const char*>(kept->data()), kept->size() * sizeof(T)}, kept};
}

// n images of one channel, 3 x 4, pixel = 12 row + place + 1 (so that 0 is padding), with the row as label.
std::vector<Array> images(int n) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < n; ++i) {
    labels.push_back(i);
    for (int p = 0; p < 12; ++p) pixels.push_back(static_cast<std::uint8_t>(12 * i + p + 1));
  }
  return {array("images", DType::u8, {n, 1, 3, 4}, pixels), array("labels", DType::i32, {n}, labels)};
}

ArraysDataset open(int n, const ArraysOptions& options) {
  auto set = ArraysDataset::create(images(n), options);
  if (!set) FAIL(set.error().summary());
  return std::move(*set);
}

std::vector<std::int32_t> labels(const std::vector<std::byte>& bytes) {
  std::vector<std::int32_t> out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

TEST_CASE("each row once in an epoch, in another order each time, whatever the batch") {
  auto set = open(20, {.seed = 5, .validation = 0.25}), other = open(20, {.seed = 5, .validation = 0.25});
  CHECK((set.rows() == 15 && set.validation_rows() == 5));
  const auto first = labels(set.next(15)[1]), second = labels(set.next(15)[1]);
  CHECK(std::set<int>(first.begin(), first.end()).size() == 15);
  CHECK(*std::max_element(first.begin(), first.end()) == 14);
  CHECK(first != second);
  CHECK(set.epoch() == 2);
  std::vector<std::int32_t> pieces;
  for (int i = 0; i < 10; ++i)
    for (const auto label : labels(other.next(3)[1])) pieces.push_back(label);
  CHECK(std::equal(first.begin(), first.end(), pieces.begin()));
  CHECK(std::equal(second.begin(), second.end(), pieces.begin() + 15));
  CHECK(labels(set.validation(3, 4)[1]) == std::vector<std::int32_t>{18, 19, 15, 16});
  auto plain = open(4, {.shuffle = false});
  CHECK(labels(plain.next(5)[1]) == std::vector<std::int32_t>{0, 1, 2, 3, 0});
}

TEST_CASE("images are cut out of their padded selves, and some mirrored") {
  auto set = open(8, {.seed = 2, .flip = true, .crop_height = 2, .crop_width = 3, .padding = 1});
  CHECK(set.row_shape(0) == std::vector<std::int64_t>{1, 2, 3});
  int mirrored = 0, zeros = 0;
  std::set<std::vector<int>> seen;
  for (int i = 0; i < 200; ++i) {
    const auto batch = set.next(1);
    const int label = labels(batch[1])[0];
    std::vector<int> pixels;
    for (const auto b : batch[0]) pixels.push_back(std::to_integer<int>(b));
    bool found = false;
    for (int top = -1; top <= 2 && !found; ++top) {
      for (int left = -1; left <= 2 && !found; ++left) {
        for (const bool flip : {false, true}) {
          std::vector<int> want;
          for (int y = top; y < top + 2; ++y) {
            for (int k = 0; k < 3; ++k) {
              const int x = left + (flip ? 2 - k : k);
              want.push_back(y < 0 || y > 2 || x < 0 || x > 3 ? 0 : 12 * label + y * 4 + x + 1);
            }
          }
          if (want != pixels) continue;
          found = true;
          mirrored += flip;
          seen.insert({top, left, flip});
        }
      }
    }
    REQUIRE(found);
    zeros += std::count(pixels.begin(), pixels.end(), 0) > 0;
  }
  CHECK((mirrored > 60 && mirrored < 140));
  CHECK((zeros > 50 && zeros < 200));
  CHECK(seen.size() > 24);  // of 32
}

TEST_CASE("validation images are cut from the middle") {
  auto set = open(4, {.validation = 0.5, .flip = true, .crop_height = 1, .crop_width = 2});
  const auto batch = set.validation(0, 1);
  CHECK(labels(batch[1])[0] == 2);
  CHECK(std::to_integer<int>(batch[0][0]) == 12 * 2 + 1 * 4 + 1 + 1);
}

TEST_CASE("a restored set goes on with the same rows and changes; another one is refused") {
  const ArraysOptions o{.seed = 9, .flip = true, .padding = 1};
  auto a = open(10, o), b = open(10, o);
  a.next(7);
  REQUIRE(b.restore(a.state()).ok());
  CHECK(a.next(9) == b.next(9));
  CHECK(open(11, o).restore(a.state()).error().message.find("digest") != std::string::npos);
  auto flipless = o;
  flipless.flip = false;
  CHECK(open(10, flipless).restore(a.state()).error().kind == ErrorKind::state);
}

TEST_CASE("a look may end a batch of rows without bytes, and the position stays") {
  struct Ended {};
  const Look look = [] { throw Ended(); };
  auto rows = ArraysDataset::create({array<float>("x", DType::f32, {4, 0}, {})}, {}).value();
  CHECK_THROWS_AS(rows.next(1 << 20, 0, 1, look), Ended);
  CHECK(rows.cursor() == 0);
  auto lines = ArraysDataset::create({array<float>("x", DType::f32, {1, 1 << 20, 1, 0}, {})}, {.flip = true}).value();
  CHECK_THROWS_AS(lines.next(1, 0, 1, look), Ended);
  CHECK(rows.next(3)[0].empty());
}

TEST_CASE("arrays that do not fit together") {
  const auto wrong = [](std::vector<Array> arrays, const ArraysOptions& o) {
    auto made = ArraysDataset::create(std::move(arrays), o);
    REQUIRE_FALSE(made.ok());
    return made.error().message;
  };
  auto two = images(3);
  two[1] = images(4)[1];
  CHECK(wrong(two, {}) == "arrays: 'images' [3, 1, 3, 4] and 'labels' [4] have different numbers of rows");
  CHECK(wrong({images(3)[1]}, {.flip = true}).find("is not images") != std::string::npos);
  CHECK(wrong(images(3), {.crop_height = 5}).find("cannot be cropped to 5 x 4") != std::string::npos);
  CHECK(wrong(images(3), {.padding = std::int64_t{1} << 62}).find("padding = 4611686018427387904") !=
        std::string::npos);
  CHECK(wrong(std::vector<Array>(1001, images(3)[1]), {}).find("1001 arrays are given") != std::string::npos);
  CHECK(wrong({}, {}) == "arrays: no array is given");
}

}  // namespace rille::data
