// Builders of data sets: where texts are cut, CSV's rules, descriptions from strangers, limits. tests/cli/data_test.py
// builds whole data sets, and kills builds.
#include "runtime/compute/data/build.hpp"

#include <pthread.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/compute/data/build_text_cutter.hpp"
#include "runtime/compute/data/csv.hpp"
#include "runtime/compute/data/ordered_jobs.hpp"
#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/plain_json.hpp"

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
    return {write(name, bytes), static_cast<std::int64_t>(bytes.size()), store::fingerprint(bytes).xxh3};
  }
  BuildTask task(const std::vector<BuildSource>& files) const { return {path + "/out", {}, files}; }
  std::vector<TextPiece> pieces_of(const std::vector<BuildSource>& files, std::size_t size, bool apart,
                                   TextPlace from) const;

  // 256 bytes in GPT-2's letters and an end of text.
  std::string write_tokenizer() const {
    Value vocab, model, all, end;
    int n = 0;
    for (int b = 0; b < 256; ++b) {
      const bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      const int letter = plain ? b : 256 + n++;
      std::string text(1, static_cast<char>(letter));
      if (letter >= 0x80) text = {static_cast<char>(0xC0 | (letter >> 6)), static_cast<char>(0x80 | (letter & 0x3F))};
      vocab.set(text, b);
    }
    model.set("type", "BPE").set("vocab", vocab).set("merges", Value::Array{});
    end.set("id", 256).set("content", "<|endoftext|>").set("special", true);
    all.set("model", model).set("added_tokens", Value::Array{end});
    all.set("pre_tokenizer", Value().set("type", "ByteLevel").set("add_prefix_space", false));
    all.set("decoder", Value().set("type", "ByteLevel"));
    return write("tokenizer.json", to_plain_json(all));
  }
  Value text_options(const Value::Array& sources, const std::string& to) const {
    return Value().set("sources", sources).set("to", to).set("tokenizer", write_tokenizer());
  }
};

std::vector<TextPiece> BuildFolder::pieces_of(const std::vector<BuildSource>& files, std::size_t size, bool apart,
                                              TextPlace from) const {
  std::vector<TextPiece> out;
  const BuildTask all = task(files);
  const BuildContext context;
  TextCutter cutter(all, context, size, apart, from);
  for (;;) {
    auto piece = cutter.next();
    REQUIRE(piece.ok());
    if (!*piece) return out;
    out.push_back(std::move(**piece));
  }
}

// The names and bytes of all files beneath a folder.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) out[entry.path().string().substr(folder.size())] = *store::read_file(entry.path());
  return out;
}

// JSONL: texts of 5,000 bytes, each longer than a piece.
std::string long_lines(int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += R"({"text":")" + std::to_string(i) + std::string(5000, static_cast<char>('a' + i % 26)) + "\"}\n";
  return out;
}

struct SetThreads {
  const char* const usual = std::getenv("RILLE_THREADS");
  const std::string before = usual ? usual : "";
  explicit SetThreads(const char* number) { ::setenv("RILLE_THREADS", number, 1); }
  ~SetThreads() {
    if (usual) ::setenv("RILLE_THREADS", before.c_str(), 1);
    else ::unsetenv("RILLE_THREADS");
  }
};

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

  const BuildTask json = task({source("one.jsonl", "\n" + std::string(TextCutter::line_bytes_max + 1, 'x'))});
  const BuildContext context;
  TextCutter cutter(json, context, 1000, true, {});
  const auto refused = cutter.next();
  REQUIRE(!refused.ok());
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(refused.error().message.find("line 2 has more than 64 MiB") != std::string::npos);
}

TEST_CASE_METHOD(BuildFolder, "a source that changes while it is read is noticed") {
  BuildTask longer = task({source("a.txt", "some text")}), other = longer, whole = longer;
  longer.sources[0].size_bytes += 1;
  other.sources[0].xxh3 = store::fingerprint("same size").xxh3;
  const BuildContext context;
  for (const auto& [of, offset] : {std::pair{longer, 0}, {other, 0}, {other, 5}}) {
    TextCutter cutter(of, context, 1000, true, {0, offset, 1});
    REQUIRE(cutter.next().ok());
    CHECK(cutter.next().error().kind == ErrorKind::integrity);
  }
  TextCutter rest(whole, context, 1000, true, {0, 5, 1});  // from the middle on
  CHECK((*rest.next())->text == "text");
  CHECK(!rest.next()->has_value());
}

TEST_CASE_METHOD(BuildFolder, "nothing goes on after a source that changed between two reads") {
  const std::string changed = source("z.jsonl", long_lines(1)).path;
  Value options = text_options({write("a.jsonl", long_lines(40)), changed}, path + "/out");
  options.set("shard_tokens", 4096);
  const SetThreads few("2");  // four pieces are cut ahead
  bool once = true;
  const auto progress = [&](std::int64_t, std::int64_t) {
    if (std::exchange(once, false)) write("z.jsonl", R"({"text":"0)" + std::string(5000, 'b') + "\"}\n");
  };
  const auto refused = build_dataset(options, {{}, {}, {}, progress});
  REQUIRE(!refused.ok());
  CHECK(refused.error().kind == ErrorKind::integrity);
  CHECK(refused.error().message.find("z.jsonl' was changed") != std::string::npos);
  CHECK(refused.error().hint.find("remove '" + path + "/out'") != std::string::npos);
  CHECK(build_dataset(options, {}).error().kind == ErrorKind::state);
  std::filesystem::remove_all(path + "/out");
  CHECK(build_dataset(options, {}).ok());

  options = Value().set("sources", Value::Array{write("t.csv", "a\n1\n2\n")}).set("to", path + "/table");
  const auto table = build_dataset(options, {{}, {}, {}, [&](auto, auto) { write("t.csv", "a\n1\n3\n"); }});
  REQUIRE(!table.ok());
  CHECK(table.error().kind == ErrorKind::integrity);
}

TEST_CASE_METHOD(BuildFolder, "an interrupted build goes on where it stopped, whatever parts its shards have") {
  Value options = text_options({write("a.jsonl", long_lines(40))}, path + "/whole");
  options.set("shard_tokens", 4096).set("validation", 0.8);  // most groups have a shard for validation alone
  REQUIRE(build_dataset(options, {}).ok());
  const auto whole = contents(path + "/whole");
  REQUIRE(whole.size() == 41);
  struct Stop {};
  for (const int stop : {1, 2, 7, 20, 39}) {
    options.set("to", path + "/stopped" + std::to_string(stop));
    int seen = 0;
    const auto progress = [&](std::int64_t, std::int64_t) {
      if (++seen == stop) throw Stop();
    };
    CHECK_THROWS_AS(build_dataset(options, {{}, {}, {}, progress}), Stop);
    const auto made = build_dataset(options, {});
    if (!made) FAIL(made.error().summary());
    CHECK(made->kept == stop);
    CHECK(contents(options.text("to")) == whole);
  }
}

TEST_CASE_METHOD(BuildFolder, "texts: memory and disk are counted; too many shards are refused") {
  const auto refused = [&](const Value& options, std::int64_t limit_bytes) {
    const auto memory = std::make_shared<MemoryUse>(limit_bytes);
    bool out = false;
    {
      const auto made = build_dataset(options, {{}, memory, {}, {}});
      out = !made.ok() && made.error().kind == ErrorKind::memory;
    }
    CHECK(memory->total_bytes() == 0);
    return out;
  };
  std::string zeros = R"({"text":"a","list":[0)";
  for (int i = 0; i < 1'000'000; ++i) zeros += ",0";
  const Value list = text_options({write("list.jsonl", zeros + "]}\n")}, path + "/list");
  CHECK(refused(list, 100 << 20));
  CHECK_FALSE(refused(list, std::int64_t{8} << 30));

  const BuildTask line = task({source("line.jsonl", std::string(40 << 20, 'x'))});
  const BuildContext small{{}, std::make_shared<MemoryUse>(32 << 20), {}, {}};
  TextCutter cutter(line, small, 4096, true, {});
  CHECK(cutter.next().error().kind == ErrorKind::memory);

  std::filesystem::create_directories(path + "/described");
  write("described/dataset.json", "{" + std::string(8 << 20, ' ') + "}");  // parsed, it may need 24 times as much
  CHECK(
      refused(Value().set("sources", Value::Array{write("t.csv", "a\n1\n")}).set("to", path + "/described"), 64 << 20));

  std::int64_t bytes = 0;
  const Room disk = [&](std::int64_t more) -> Result<> {
    bytes += more;
    return success();
  };
  Value options = text_options({write("a.jsonl", long_lines(10))}, path + "/counted");
  const auto made = build_dataset(options.set("shard_tokens", 4096), {{}, {}, disk, {}});
  if (!made) FAIL(made.error().summary());
  std::int64_t files = 0, description = 0;
  for (const auto& [name, text] : contents(path + "/counted")) {
    files += static_cast<std::int64_t>(text.size());
    if (name == "/dataset.json") description = static_cast<std::int64_t>(text.size());
  }
  CHECK(bytes > files + 3 * description);  // progress.json was written for each shard

  Dataset large;
  large.facts.set("list", std::string(64 << 20, 'x'));
  CHECK(write_dataset(path, "large.json", large).error().kind == ErrorKind::invalid);  // nothing could read it
  Dataset many;
  many.shards.resize(shards_max + 1);
  const auto error = note_progress(task({}), many, "shard_tokens", {});
  REQUIRE(!error.ok());
  CHECK(error.error().hint.find("shard_tokens") != std::string::npos);
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
  const auto many = rows_of(write("e.csv", std::string(CsvReader::fields_max, ',')));
  REQUIRE(!many.ok());
  CHECK(many.error().message.find("line 1 has more than 10000 fields") != std::string::npos);
  CHECK(rows_of(write("f.csv", std::string(CsvReader::fields_max - 1, ','))).value().front().size() == 10000);
}

TEST_CASE_METHOD(BuildFolder, "CSV: a long record is counted before it is read, and given back after it") {
  const std::string file = write("long.csv", "a\n" + std::string(8 << 20, 'x') + "\nb\n");
  const auto memory = std::make_shared<MemoryUse>(std::int64_t{64} << 20);
  std::vector<std::string> fields;
  {
    CsvReader reader = CsvReader::open(file, ',', memory).value();
    REQUIRE(reader.next(fields).value());
    const std::int64_t before = memory->total_bytes();
    REQUIRE(reader.next(fields).value());
    CHECK(memory->total_bytes() > before + (8 << 20));
    REQUIRE(reader.next(fields).value());
    CHECK(memory->total_bytes() == before);
    CHECK((fields == std::vector<std::string>{"b"} && fields.front().capacity() < 1000));
  }
  CHECK(memory->total_bytes() == 0);
  CsvReader refused = CsvReader::open(file, ',', std::make_shared<MemoryUse>(16 << 20)).value();
  REQUIRE(refused.next(fields).value());
  CHECK(refused.next(fields).error().kind == ErrorKind::memory);
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

TEST_CASE("ordered jobs: without a thread, the one that takes does the work") {
  pthread_attr_t usual, huge;  // no address space has room for such a stack
  REQUIRE(::pthread_getattr_default_np(&usual) == 0);
  REQUIRE(::pthread_attr_init(&huge) == 0);
  REQUIRE(::pthread_attr_setstacksize(&huge, std::size_t{1} << 48) == 0);
  REQUIRE(::pthread_setattr_default_np(&huge) == 0);
  OrderedJobs<int, std::thread::id> jobs(
      2, [](int, int&, const std::atomic<bool>&) -> Result<std::thread::id> { return std::this_thread::get_id(); });
  ::pthread_setattr_default_np(&usual);
  ::pthread_attr_destroy(&huge);
  ::pthread_attr_destroy(&usual);
  for (int i = 0; i < 3; ++i) jobs.give(i);
  for (int i = 0; i < 3; ++i) CHECK(jobs.take({}).value() == std::this_thread::get_id());
  CHECK(jobs.given() == 0);
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
  const auto memory = std::make_shared<MemoryUse>(6 << 20);
  CHECK(build_dataset(options, {{}, memory, {}, {}}).error().kind == ErrorKind::memory);
  CHECK(memory->total_bytes() == 0);
  Value::Array files;
  for (int i = 0; i < 5000; ++i) files.emplace_back(write("part" + std::to_string(i) + ".csv", "a\n1\n"));
  const auto small = std::make_shared<MemoryUse>(5 << 20);  // for one file it is enough
  const auto many = build_dataset(Value().set("sources", files).set("to", path + "/many"), {{}, small, {}, {}});
  CHECK((!many.ok() && many.error().kind == ErrorKind::memory));
  files.resize(1);
  CHECK(build_dataset(Value().set("sources", files).set("to", path + "/one"), {{}, small, {}, {}}).ok());
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
