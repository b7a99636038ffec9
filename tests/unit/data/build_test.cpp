// Builders of data sets: where texts are cut, CSV's rules, descriptions from strangers, limits. tests/cli/data_test.py
// builds whole data sets, and kills builds.
#include "runtime/compute/data/build.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "runtime/compute/data/build_text_cutter.hpp"
#include "runtime/compute/data/csv.hpp"
#include "runtime/compute/data/ordered_jobs.hpp"
#include "runtime/core/base/base64.hpp"

namespace rille::data {
namespace {

struct BuildFolder {
  std::string path = std::filesystem::temp_directory_path() / ("rille-build-" + std::to_string(::getpid()));
  BuildFolder() { std::filesystem::create_directories(path); }
  ~BuildFolder() { std::filesystem::remove_all(path); }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path + "/" + name, std::ios::binary) << bytes;
    return path + "/" + name;
  }
  BuildSource source(const std::string& name, const std::string& bytes) const {
    return {write(name, bytes), static_cast<std::int64_t>(bytes.size()), ""};
  }
};

std::vector<TextPiece> pieces_of(const std::vector<BuildSource>& files, std::size_t size, bool apart, TextPlace from) {
  std::vector<TextPiece> out;
  TextCutter cutter(files, size, apart, from);
  for (;;) {
    auto piece = cutter.next();
    REQUIRE(piece.ok());
    if (!*piece) return out;
    out.push_back(std::move(**piece));
  }
}

std::string joined(const std::vector<TextPiece>& pieces) {
  std::string out;
  for (const auto& piece : pieces) out += piece.text;
  return out;
}

using Rows = std::vector<std::vector<std::string>>;

Result<Rows> rows_of(const std::string& file) {
  RILLE_TRY(auto reader, CsvReader::open(file, ','));
  Rows out;
  for (std::vector<std::string> fields;;) {
    RILLE_TRY(const bool more, reader.next(fields));
    if (!more) return out;
    out.push_back(fields);
  }
}

}  // namespace

TEST_CASE_METHOD(BuildFolder, "texts are cut at line ends, and every piece can be the first") {
  std::string text, lines;
  for (int i = 0; i < 2000; ++i) text += "line " + std::to_string(i * i) + "\n";
  for (int i = 0; i < 2000; ++i)
    lines += "{\"text\": \"" + std::string(static_cast<std::size_t>(i % 97), 'x') + "\"}\n";
  const std::vector<BuildSource> files{source("a.txt", text), source("b.jsonl", lines), source("c.txt", "")};
  const auto pieces = pieces_of(files, 1000, true, {});
  CHECK(joined(pieces) == text + lines);
  CHECK(pieces.size() > 30);
  for (const auto& piece : pieces) CHECK((piece.text.ends_with('\n') && piece.text.size() < 1200));
  for (std::size_t i = 0; i < pieces.size(); i += 7) {
    const auto rest = pieces_of(files, 1000, true, TextPlace::from_value(pieces[i].begin.to_value()));
    REQUIRE(rest.size() == pieces.size() - i);
    CHECK((rest.front().text == pieces[i].text && rest.back().begin.line == pieces.back().begin.line));
  }
  CHECK(pieces_of(files, 1000, false, {}).front().text == text);  // a tokenizer that joins lines gets the whole
}

TEST_CASE_METHOD(BuildFolder, "a text without line ends is cut between characters; a line of JSON is not cut") {
  std::string text = "a";
  while (text.size() <= 2 * TextCutter::part_bytes_max) text += "\xC3\xA9";
  const std::vector<BuildSource> files{source("one.txt", text)};
  const auto pieces = pieces_of(files, 1000, true, {});
  CHECK((pieces.size() == 3 && joined(pieces) == text));
  for (const auto& piece : pieces) CHECK((is_utf8(piece.text) && piece.text.size() <= TextCutter::part_bytes_max));

  const std::vector<BuildSource> json{source("one.jsonl", "\n" + std::string(TextCutter::line_bytes_max + 1, 'x'))};
  TextCutter cutter(json, 1000, true, {});
  const auto refused = cutter.next();
  REQUIRE(!refused.ok());
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(refused.error().message.find("line 2 has more than 64 MiB") != std::string::npos);
}

TEST_CASE_METHOD(BuildFolder, "a source that changes while it is read is noticed") {
  std::vector<BuildSource> files{source("a.txt", "some text")};
  files[0].size_bytes += 1;
  TextCutter cutter(files, 1000, true, {});
  REQUIRE(cutter.next().ok());
  CHECK(cutter.next().error().kind == ErrorKind::integrity);
}

TEST_CASE_METHOD(BuildFolder, "CSV: quotes, line ends, empty fields and lines") {
  const auto rows = rows_of(write("a.csv",
                                  "\xEF\xBB\xBF"
                                  "a,\"b,\"\"c\"\"\"\r\n\n,\n\"x\ny\",\r\nlast,1"));
  if (!rows) FAIL(rows.error().summary());
  CHECK(*rows == Rows{{"a", "b,\"c\""}, {"", ""}, {"x\ny", ""}, {"last", "1"}});
  CHECK(rows_of(write("b.csv", "a\n\"b\" c\n")).error().message.find("line 2") != std::string::npos);
  CHECK(rows_of(write("c.csv", "a\n\n\"b\nc")).error().message.find("line 3 does not end") != std::string::npos);
  CHECK(rows_of(write("d.csv", std::string(CsvReader::record_bytes_max + 1, 'x'))).error().kind == ErrorKind::invalid);
}

TEST_CASE("ordered jobs: results come in the order of the jobs, errors and bad_alloc too") {
  OrderedJobs<int, int> jobs(3, [](int, int& n, const std::atomic<bool>&) -> Result<int> {
    if (n == 5) return make_error(ErrorKind::invalid, "five");
    if (n == 6) throw std::bad_alloc();
    return n * n;
  });
  for (int i = 0; i < 100; ++i) jobs.give(i);
  bool right = true;
  for (int i = 0; i < 100; ++i) {
    const Result<int> got = jobs.take({});
    if (i == 5 || i == 6) right = right && !got.ok();
    else right = right && got.ok() && *got == i * i;
  }
  CHECK(right);
  CHECK(jobs.given() == 0);
  for (int i = 0; i < 100; ++i) jobs.give(i);  // dropped
}

TEST_CASE_METHOD(BuildFolder, "a description from a stranger stays inside its folder") {
  const auto described = [&](const std::string& shard) {
    write("dataset.json", R"({"format":1,"kind":"text","shards":[{"path":")" + shard +
                              R"(","part":"train","size_bytes":3,"count":1}]})");
    return open_dataset(path, "text");
  };
  write("x.bin", "abc");
  REQUIRE(described("x.bin").ok());
  for (const char* name : {"../x.bin", "/etc/passwd", "a/../../x", "", "./x.bin"})
    CHECK(described(name).error().kind == ErrorKind::integrity);
  CHECK(described("y.bin").error().message.find("'y.bin' is missing") != std::string::npos);
  write("x.bin", "abcd");
  CHECK(described("x.bin").error().message.find("3 bytes, and it has 4") != std::string::npos);
  CHECK(open_dataset(path, "csv").error().kind == ErrorKind::state);
  for (const char* text : {"", "[]", "{}", "{\"format\":1}", "{\"format\":2}", "{\"format\":1,\"shards\":[5]}"}) {
    write("dataset.json", text);
    CHECK(!open_dataset(path, "text").ok());
  }
  CHECK(!*open_dataset(path + "/nowhere", "text"));
}

TEST_CASE_METHOD(BuildFolder, "tables: memory and disk are counted, and a look can end the build") {
  std::string table = "n,word\n";
  for (int i = 0; i < 20000; ++i) table += std::to_string(i) + ",word" + std::to_string(i) + "\n";
  const Value options = Value().set("sources", Value::Array{write("t.csv", table)}).set("to", path + "/out");
  const auto memory = std::make_shared<MemoryUse>(1 << 20);
  CHECK(build_dataset(options, {{}, memory, {}, {}}).error().kind == ErrorKind::memory);
  CHECK(memory->total_bytes() == 0);
  const Room full = [](std::int64_t) -> Result<> { return make_error(ErrorKind::quota, "full"); };
  CHECK(build_dataset(options, {{}, {}, full, {}}).error().kind == ErrorKind::quota);
  struct Stop {};
  CHECK_THROWS_AS(build_dataset(options, {[] { throw Stop(); }, {}, {}, {}}), Stop);
  std::int64_t bytes = 0, shown = 0;
  const auto made =
      build_dataset(options, {{},
                              {},
                              [&](std::int64_t more) -> Result<> {
                                bytes += more;
                                return success();
                              },
                              [&](std::int64_t done, std::int64_t total) { shown = done * 100 / total; }});
  if (!made) FAIL(made.error().summary());
  CHECK((made->facts.integer("rows") == 20000 && shown == 100));
  CHECK(bytes >= made->shards.front().print.size_bytes);
  CHECK((*made->facts["columns"].as_array())[1]["categories"].as_array()->size() == 20000);
}

}  // namespace rille::data
