// Token files in common formats, windows over several files, and texts encoded once.
#include "runtime/compute/data/token_files.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/compute/data/bytes_dataset.hpp"
#include "runtime/compute/data/tokenizer.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::data {
namespace {

struct Folder {
  std::string path = std::filesystem::temp_directory_path() / ("rille-tokens-" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path + "/" + name, std::ios::binary) << bytes;
    return path + "/" + name;
  }
};

template <class T>
std::string ids(int first, int count) {
  std::string out;
  for (int i = first; i < first + count; ++i) {
    const T id = static_cast<T>(i);
    out.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
  return out;
}

std::string header(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::int32_t words[256] = {magic, version, count};
  return std::string(reinterpret_cast<const char*>(words), sizeof words);
}

TokenFile opened(const std::string& path, int width = 0) {
  auto file = TokenFile::open(path, width);
  REQUIRE(file.ok());
  return std::move(*file);
}

}  // namespace

TEST_CASE_METHOD(Folder, "token files: raw, and with llm.c's header") {
  CHECK(opened(write("raw.bin", ids<std::uint16_t>(0, 10))).count() == 10);
  CHECK(opened(write("raw32.bin", ids<std::uint32_t>(0, 10)), 4).count() == 10);
  CHECK(opened(write("named.u32", ids<std::uint32_t>(0, 10))).width_bytes() == 4);
  const auto gpt2 = opened(write("gpt2.bin", header(20240520, 1, 10) + ids<std::uint16_t>(7, 10)));
  CHECK((gpt2.count() == 10 && gpt2.width_bytes() == 2));
  const auto llama = opened(write("llama.bin", header(20240801, 7, 10) + ids<std::uint32_t>(7, 10)));
  CHECK((llama.count() == 10 && llama.width_bytes() == 4));
  CHECK(TokenFile::open(write("cut.bin", header(20240520, 1, 10) + ids<std::uint16_t>(7, 9))).error().kind ==
        ErrorKind::integrity);
  CHECK(TokenFile::open(write("odd.bin", "abc")).error().kind == ErrorKind::invalid);
  CHECK(TokenFile::open(path + "/nowhere").error().kind == ErrorKind::io);
}

TEST_CASE_METHOD(Folder, "windows reach over the ends of files, each id once in an epoch") {
  std::vector<TokenFile> files;
  files.push_back(opened(write("a.bin", ids<std::uint16_t>(0, 37))));
  files.push_back(opened(write("b.bin", header(20240801, 7, 300) + ids<std::uint32_t>(37, 300))));
  files.push_back(opened(write("c.bin", ids<std::uint16_t>(337, 63))));
  auto set = BytesDataset::open_tokens(std::move(files), {}, {.context = 8, .seed = 3, .validation = 0.2});
  REQUIRE(set.ok());
  CHECK(set->is_tokens());
  CHECK((set->elements(Split::train) == 320 && set->elements(Split::validation) == 80));
  const auto windows = static_cast<std::int64_t>(set->windows(Split::train));
  std::vector<int> seen(400);
  std::vector<std::int32_t> x(static_cast<std::size_t>(windows * 8)), y(x.size());
  set->next_batch(windows, x.data(), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(y[i] == x[i] + 1);
    ++seen[static_cast<std::size_t>(x[i])];
  }
  CHECK(std::count(seen.begin(), seen.begin() + 320, 1) == windows * 8);
  CHECK(std::count(seen.begin() + 320, seen.end(), 0) == 80);
  set->validation_batch(0, 1, x.data(), y.data());
  CHECK((x[0] >= 320 && y[7] < 400));
}

TEST_CASE_METHOD(Folder, "the position of tokens goes on, and other files are refused") {
  const auto a = write("a.bin", ids<std::uint16_t>(0, 500)), b = write("b.bin", ids<std::uint16_t>(1, 500));
  const auto open = [&](const std::string& file, const std::string& other) {
    std::vector<TokenFile> training, validation;
    training.push_back(opened(file));
    validation.push_back(opened(other));
    auto set = BytesDataset::open_tokens(std::move(training), std::move(validation), {.context = 16});
    REQUIRE(set.ok());
    return std::move(*set);
  };
  auto first = open(a, b), second = open(a, b), other = open(b, a);
  CHECK(first.elements(Split::train) == 500);
  std::vector<std::int32_t> x(64), y(64), want(64);
  first.next_batch(4, x.data(), y.data());
  REQUIRE(second.restore(first.state()).ok());
  first.next_batch(4, want.data(), y.data());
  second.next_batch(4, x.data(), y.data());
  CHECK(x == want);
  CHECK(other.restore(first.state()).error().kind == ErrorKind::state);
}

TEST_CASE_METHOD(Folder, "texts become ids once, the same as of the whole text") {
  // A byte-level vocabulary in GPT-2's spelling, two merges and an end-of-text token, as a tokenizer.json.
  std::string vocab, text;
  int n = 0, beyond = 0;
  for (int b = 0; b < 256; ++b) {
    const bool plain = (b > 32 && b < 127) || (b > 160 && b != 173);
    const int code = plain ? b : 256 + beyond++;
    std::string letter(1, static_cast<char>(code));
    if (code >= 128) letter = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    if (letter == "\"" || letter == "\\") letter.insert(0, "\\");
    vocab += "\"" + letter + "\":" + std::to_string(n++) + ",";
  }
  const std::string json =
      R"({"model":{"type":"BPE","vocab":{)" + vocab +
      R"("ab":256,"abc":257},"merges":["a b","ab c"]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
      R"("decoder":{"type":"ByteLevel"},"added_tokens":[{"id":258,"content":"<|endoftext|>","special":true}]})";
  const auto tokenizer = write("tokenizer.json", json);
  while (text.size() < (3u << 20)) text += "abc ab\ncab abcab\n\nb ab\n";  // more than one piece
  const auto file = write("text.txt", text), cache = path + "/cache";
  const auto made = tokenize(file, tokenizer, "", cache);
  if (!made) FAIL(made.error().summary());
  auto whole = Tokenizer::open(tokenizer);
  REQUIRE(whole.ok());
  const auto want = whole->encode(text);
  REQUIRE(want.ok());
  const auto got = opened(*made);
  REQUIRE(got.count() == want->size());
  bool same = true;
  for (std::size_t i = 0; i < want->size(); ++i) {
    std::uint16_t id;
    std::memcpy(&id, got.ids().data() + 2 * i, 2);
    same = same && id == (*want)[i];
  }
  CHECK(same);
  const auto written = std::filesystem::last_write_time(*made);
  CHECK(*tokenize(file, tokenizer, "", cache) == *made);
  CHECK(std::filesystem::last_write_time(*made) == written);
  write("text.txt", text + "b");
  CHECK(*tokenize(file, tokenizer, "", cache) != *made);
  // A script truncates the file while it is encoded: the text ends there, and the process goes on.
  const auto torn = write("torn.txt", "a" + text);
  const auto truncate = [&](std::int64_t) -> Result<> {
    std::filesystem::resize_file(torn, 0);
    return success();
  };
  const auto part = tokenize(torn, tokenizer, "", cache, {}, truncate);
  REQUIRE(part.ok());
  CHECK(opened(*part).count() < want->size());
  std::filesystem::create_directories(path + "/texts");
  write("texts/1", "ab");
  write("texts/2", "abc");
  const auto joined = opened(*tokenize(path + "/texts", tokenizer, "", cache));
  std::uint16_t four[4];
  REQUIRE(joined.count() == 4);
  std::memcpy(four, joined.ids().data(), 8);
  CHECK((four[0] == 258 && four[1] == 256 && four[2] == 258 && four[3] == 257));
}

}  // namespace rille::data
