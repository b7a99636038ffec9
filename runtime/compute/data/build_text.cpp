// Builds token shards from texts. The reader cuts the sources into pieces, threads encode them, and the results are
// written in the order of the sources. Shards end where a piece ends; then all parts' shards are finished together, and
// progress.json says where the next piece begins, so that an interrupted build goes on from there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "runtime/compute/data/build_text_cutter.hpp"
#include "runtime/compute/data/ordered_jobs.hpp"
#include "runtime/compute/data/token_files.hpp"
#include "runtime/compute/data/tokenizer.hpp"
#include "runtime/compute/data/utf8.hpp"
#include "runtime/compute/device/lane.hpp"
#include "runtime/core/base/plain_json.hpp"

namespace rille::data {

namespace {

constexpr const char* part_names[] = {"train", "validation"};
constexpr int parts = 2;

struct TextOptions {
  std::string tokenizer, pattern, field, separator;
  std::int64_t shard_tokens = 0;
  double validation = 0;
};

Error bad_text(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::invalid, "data build: " + std::move(message), std::move(hint));
}

Result<TextOptions> text_options(const Value& given) {
  constexpr std::int64_t shard_least = 1, shard_most = 1'000'000'000;  // llm.c's header counts up to 2^31
  for (const char* name : {"tokenizer", "pattern", "field", "separator"})
    if (!given[name].is_null() && !given[name].as_string())
      return bad_text(fmt::format("{} = {}: expected a text", name, given[name].to_json()));
  for (const char* name : {"shard_tokens", "validation"})
    if (!given[name].is_null() && !given[name].as_number())
      return bad_text(fmt::format("{} = {}: expected a number", name, given[name].to_json()));
  TextOptions o{
      given.text("tokenizer"),   given.text("pattern"), given.text("field", "text"), given.text("separator"), 0,
      given.number("validation")};
  const double tokens = given.number("shard_tokens", 100e6);
  if (o.tokenizer.empty())
    return bad_text("texts need a tokenizer", "name its file: tokenizer.json, or the folder of a model that has it");
  if (!(tokens >= shard_least && tokens <= shard_most) || tokens != std::floor(tokens))
    return bad_text(
        fmt::format("shard_tokens = {}: expected a whole number from {} to {}", tokens, shard_least, shard_most));
  if (!(o.validation >= 0 && o.validation < 1))
    return bad_text(fmt::format("validation = {}: expected a number from 0 to below 1", o.validation));
  o.shard_tokens = static_cast<std::int64_t>(tokens);
  return o;
}

// The id that stands before each document; -1: none.
Result<std::int32_t> separator_of(const Tokenizer& tokenizer, const std::string& given) {
  if (given == "none") return -1;
  if (!given.empty()) {
    if (const auto id = tokenizer.id_of(given)) return *id;
    return bad_text(fmt::format("the tokenizer has no token '{}' to separate documents", given),
                    fmt::format("its special tokens: {}", fmt::join(tokenizer.special(), " ")));
  }
  for (const char* known : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"})
    if (const auto id = tokenizer.id_of(known)) return *id;
  return bad_text("the tokenizer has no end-of-text token that Rille knows",
                  fmt::format("name the token that separates documents: separator, or \"none\"; its special tokens: {}",
                              fmt::join(tokenizer.special(), " ")));
}

struct EncodedPiece {
  std::vector<std::int32_t> ids[parts];
  std::int64_t documents[parts] = {};
  TextPlace next;
  MemoryHeld held;
};

// What the parsed JSON needs at most: its texts, and a value for each mark. A list of "0,0,0.." needs the most, while
// it grows.
std::size_t bytes_of_json(std::string_view text) {
  constexpr std::size_t bytes_of_value = 3 * sizeof(Value);
  const auto is_mark = [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; };
  return 2 * text.size() + bytes_of_value * static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_mark));
}

// Encodes pieces. Each thread has its own tokenizer.
class PieceEncoder {
 public:
  PieceEncoder(const BuildTask& task, const BuildContext& context, const TextOptions& options, Tokenizer first,
               std::int32_t separator, int threads)
      : task_(task), context_(context), options_(options), separator_(separator) {
    for (int i = 1; i < threads; ++i) tokenizers_.push_back(first.twin());
    tokenizers_.push_back(std::move(first));
  }

  Result<EncodedPiece> encode(int thread, TextPiece& piece, const std::atomic<bool>& ended) {
    RILLE_CHECK(check_utf8(piece));
    EncodedPiece out;
    out.next = piece.next;
    Tokenizer& tokenizer = tokenizers_[static_cast<std::size_t>(thread)];
    if (!piece.lines) {
      RILLE_CHECK(encode_part(tokenizer, piece, out));
    } else {
      std::string_view rest = piece.text;
      for (std::int64_t line = piece.begin.line; !rest.empty() && !ended; ++line) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        RILLE_CHECK(encode_line(tokenizer, rest.substr(0, end), piece, line, out));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    std::int64_t bytes = 0;
    for (const auto& ids : out.ids) bytes += static_cast<std::int64_t>(ids.capacity() * sizeof ids[0]);
    RILLE_TRY(out.held, context_.hold(static_cast<std::size_t>(bytes)));
    piece.text = {};
    piece.held = {};
    return out;
  }

 private:
  const std::string& path_of(const TextPiece& piece) const { return task_.sources[piece.begin.file].path; }

  Result<> check_utf8(const TextPiece& piece) const {
    if (is_utf8(piece.text)) return success();
    std::size_t at = 0;
    const auto is_bad = [&] {
      return static_cast<unsigned char>(piece.text[at]) >= 0x80 && char_bytes(piece.text, at) == 1;
    };
    while (!is_bad()) at += char_bytes(piece.text, at);
    const auto lines = std::count(piece.text.begin(), piece.text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return bad_text(fmt::format("{} is not UTF-8: the byte 0x{:02X}", at_line(path_of(piece), piece.begin.line + lines),
                                static_cast<unsigned char>(piece.text[at])),
                    "convert the file first, as by `iconv -f latin1 -t utf-8`; compressed files must be unpacked");
  }

  // By the first 52 bits of the document's hash.
  int part_of(const std::string& xxh3) const {
    constexpr int digits = 13, base = 16;
    const double place = static_cast<double>(std::stoull(xxh3.substr(0, digits), nullptr, base)) / 0x1p52;
    return place < options_.validation ? 1 : 0;
  }

  Result<> add(Tokenizer& tokenizer, std::string_view text, int part, bool continued, EncodedPiece& out) {
    if (text.empty()) return success();
    auto& ids = out.ids[part];
    if (!continued) {
      ++out.documents[part];
      if (separator_ >= 0) ids.push_back(separator_);
    }
    std::vector<MemoryHeld> held;
    const Encoding how{.continued = continued, .asked = {{}, context_.room(held), {}}};
    RILLE_TRY(const auto more, tokenizer.encode(text, how));
    ids.insert(ids.end(), more.begin(), more.end());
    return success();
  }

  Result<> encode_part(Tokenizer& tokenizer, const TextPiece& piece, EncodedPiece& out) {
    std::string_view text = piece.text;
    if (piece.begin.offset == 0 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    return add(tokenizer, text, part_of(task_.sources[piece.begin.file].xxh3), piece.begin.offset > 0, out);
  }

  Result<> encode_line(Tokenizer& tokenizer, std::string_view line, const TextPiece& piece, std::int64_t number,
                       EncodedPiece& out) {
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    if (line.find_first_not_of(" \t\r") == line.npos) return success();
    const std::string where = at_line(path_of(piece), number);
    RILLE_TRY(const MemoryHeld held, context_.hold(bytes_of_json(line)));
    const Result<Value> document = plain_json(line);
    if (!document)
      return bad_text(fmt::format("{}: {}", where, document.error().message), "each line is one JSON object");
    const Value::Object* object = document->as_object();
    if (!object) return bad_text(fmt::format("{} is no JSON object", where), "each line is one JSON object");
    const auto found = object->find(options_.field);
    if (found == object->end()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : *object) names.push_back(name);
      return bad_text(fmt::format("{} has no field '{}'", where, options_.field),
                      fmt::format("name the field that has the text; it has: {}", fmt::join(names, ", ")));
    }
    const std::string* text = found->second.as_string();
    if (!text) return bad_text(fmt::format("{}: the field '{}' is no text", where, options_.field));
    const int part = options_.validation > 0 ? part_of(store::fingerprint(*text).xxh3) : 0;
    return add(tokenizer, *text, part, false, out);
  }

  const BuildTask& task_;
  const BuildContext& context_;
  const TextOptions& options_;
  const std::int32_t separator_;
  std::vector<Tokenizer> tokenizers_;
};

// Writes the shards of both parts. The data set counts what is finished; progress.json is written after each shard.
class TokenShards {
 public:
  TokenShards(const BuildTask& task, Dataset& set, int width, std::int64_t shard_tokens, const BuildContext& context)
      : task_(task), set_(set), width_(width), shard_tokens_(shard_tokens), context_(context) {}

  // Removes what an interrupted build left unfinished, and goes on with the number after the last one: a group of
  // shards need not have one of each part.
  Result<> clean() {
    namespace fs = std::filesystem;
    for (const char* part : part_names) {
      const std::string folder = task_.to + "/" + part;
      std::error_code failed;
      for (const auto& entry : fs::directory_iterator(folder, failed)) {
        const std::string name = std::string(part) + "/" + entry.path().filename().string();
        const bool kept = std::any_of(set_.shards.begin(), set_.shards.end(), [&](auto& s) { return s.path == name; });
        if (!kept) RILLE_CHECK(store::remove_tree(entry.path()));
      }
      RILLE_CHECK(store::make_directories(folder));
    }
    for (const Shard& s : set_.shards) {
      const std::string name = fs::path(s.path).stem();
      std::int32_t number = 0;
      std::from_chars(name.data(), name.data() + name.size(), number);
      number_ = std::max(number_, std::int64_t{number} + 1);
    }
    return success();
  }

  Result<> write(const EncodedPiece& piece) {
    for (int part = 0; part < parts; ++part) {
      RILLE_CHECK(write(part, piece.ids[part]));
      documents_[part] += piece.documents[part];
    }
    next_ = piece.next;
    return open_[0].count + open_[1].count >= shard_tokens_ ? finish_shards() : success();
  }

  // Finishes the shards that are open.
  Result<> finish_shards() {
    if (open_[0].count + open_[1].count == 0) return success();
    for (int part = 0; part < parts; ++part) RILLE_CHECK(finish(part));
    ++number_;
    set_.facts.set("next", next_.to_value());
    for (int part = 0; part < parts; ++part) {
      const std::string name = std::string(part_names[part]) + "_documents";
      set_.facts.set(name, set_.facts.integer(name) + std::exchange(documents_[part], 0));
    }
    return note_progress(task_, set_, "shard_tokens", context_);
  }

 private:
  struct Open {
    std::optional<store::FileWriter> file;
    std::string path;  // inside the folder
    std::int64_t count = 0;
  };

  Result<> write(int part, const std::vector<std::int32_t>& ids) {
    if (ids.empty()) return success();
    Open& open = open_[part];
    if (!open.file) {
      open.path = fmt::format("{}/{:06}.bin", part_names[part], number_);
      const std::string header = token_header(width_, 0);
      RILLE_CHECK(context_.writes(header.size()));
      RILLE_TRY(auto file, store::FileWriter::create(task_.to + "/" + open.path));
      open.file.emplace(std::move(file));
      RILLE_CHECK(open.file->write(header));
    }
    bytes_.clear();
    for (const std::int32_t id : ids)
      bytes_.append(reinterpret_cast<const char*>(&id), static_cast<std::size_t>(width_));
    RILLE_CHECK(context_.writes(bytes_.size()));
    open.count += static_cast<std::int64_t>(ids.size());
    return open.file->write(bytes_);
  }

  Result<> finish(int part) {
    Open& open = open_[part];
    if (!open.file) return success();
    RILLE_CHECK(open.file->rewrite(0, token_header(width_, open.count)));
    RILLE_CHECK(open.file->commit());
    open.file.reset();
    RILLE_TRY(const auto print, store::fingerprint_file(task_.to + "/" + open.path, true));
    set_.shards.push_back({open.path, part_names[part], print, open.count});
    const std::string name = std::string(part_names[part]) + "_tokens";
    set_.facts.set(name, set_.facts.integer(name) + std::exchange(open.count, 0));
    return success();
  }

  const BuildTask& task_;
  Dataset& set_;
  const int width_;
  const std::int64_t shard_tokens_;
  const BuildContext& context_;
  Open open_[parts];
  std::int64_t documents_[parts] = {};
  std::int64_t number_ = 0;  // of the shards that are open
  TextPlace next_;
  std::string bytes_;
};

Result<std::string> digest_of(const std::string& tokenizer) {
  store::Hasher hasher;
  for (const std::string& file : tokenizer_files(tokenizer)) {
    Result<store::Fingerprint> print = store::fingerprint_file(file);
    if (!print)
      return std::move(print).error().with_hint("name the tokenizer's file: tokenizer.json, or the folder that has it");
    hasher.update(fmt::format("{}:{};", print->size_bytes, print->xxh3));
  }
  return hasher.finish().xxh3;
}

// What one thread has in memory: two pieces that wait or are encoded.
constexpr std::size_t bytes_of_thread = 2 * (TextCutter::part_bytes_max + (1 << 20));

// As many threads as there are, or as the memory allows.
Result<std::pair<int, MemoryHeld>> threads_within(const BuildContext& context) {
  for (int threads = device::Lane::threads_for(0);; threads /= 2) {
    auto held = context.hold(static_cast<std::size_t>(threads) * bytes_of_thread);
    if (held) return std::pair(threads, std::move(*held));
    if (threads == 1) return std::move(held).error();
  }
}

// The bytes of the sources before the place.
std::int64_t bytes_before(const BuildTask& task, const TextPlace& place) {
  std::int64_t bytes = place.offset;
  for (std::size_t i = 0; i < std::min(place.file, task.sources.size()); ++i) bytes += task.sources[i].size_bytes;
  return bytes;
}

Result<> encode_all(const BuildTask& task, const BuildContext& context, TextCutter& cutter, PieceEncoder& encoder,
                    int threads, TokenShards& shards) {
  OrderedJobs<TextPiece, EncodedPiece> jobs(
      threads, [&](int thread, TextPiece& piece, const auto& ended) { return encoder.encode(thread, piece, ended); });
  const std::size_t given_max = 2 * static_cast<std::size_t>(threads);
  const std::int64_t total = bytes_before(task, {task.sources.size(), 0, 1});
  for (bool more = true; more || jobs.given();) {
    while (more && jobs.given() < given_max) {
      context.looks();
      RILLE_TRY(auto piece, cutter.next());
      more = piece.has_value();
      if (!more) break;
      if (piece->text.size() > TextCutter::part_bytes_max) { RILLE_TRY(piece->held, context.hold(piece->text.size())); }
      jobs.give(std::move(*piece));
    }
    if (!jobs.given()) break;
    RILLE_TRY(const EncodedPiece done, jobs.take(context.look));
    RILLE_CHECK(shards.write(done));
    if (context.progress) context.progress(bytes_before(task, done.next), total);
  }
  return shards.finish_shards();
}

}  // namespace

Result<Dataset> build_text(const BuildTask& task, const BuildContext& context) {
  RILLE_TRY(const TextOptions options, text_options(task.options));
  RILLE_TRY(const std::string digest, digest_of(options.tokenizer));
  std::vector<MemoryHeld> held;
  RILLE_TRY(auto tokenizer,
            Tokenizer::open(options.tokenizer, options.pattern, {context.look, context.room(held), {}}));
  RILLE_TRY(const std::int32_t separator, separator_of(tokenizer, options.separator));
  const int width = tokenizer.size() <= 65536 ? 2 : 4;
  Dataset plan;
  plan.kind = "text";
  plan.options.set("tokenizer", digest).set("pattern", options.pattern).set("field", options.field);
  plan.options.set("separator", separator).set("shard_tokens", options.shard_tokens);
  plan.options.set("validation", options.validation);
  plan.facts.set("dtype", width == 2 ? "u16" : "u32").set("vocabulary", tokenizer.size());
  for (const char* part : part_names)
    plan.facts.set(std::string(part) + "_tokens", 0).set(std::string(part) + "_documents", 0);
  RILLE_TRY(Begun begun, begin_dataset(task, std::move(plan), context));
  if (begun.complete) return std::move(begun.from);
  Dataset& set = begun.from;
  TokenShards shards(task, set, width, options.shard_tokens, context);
  RILLE_CHECK(shards.clean());
  constexpr std::int64_t piece_least = 4096, piece_most = 1 << 20;
  const auto piece_bytes = static_cast<std::size_t>(std::clamp(options.shard_tokens, piece_least, piece_most));
  const bool lines_apart = tokenizer.lines_apart();
  RILLE_TRY(const auto threads, threads_within(context));
  PieceEncoder encoder(task, context, options, std::move(tokenizer), separator, threads.first);
  TextCutter cutter(task, context, piece_bytes, lines_apart, TextPlace::from_value(set.facts["next"]));
  if (auto done = encode_all(task, context, cutter, encoder, threads.first, shards); !done)
    return with_kept(std::move(done).error(), set);
  if (set.facts.integer("train_tokens") == 0)
    return bad_text(
        set.shards.empty() ? "the sources have no text" : "all documents are for validation, and none for training",
        "name more texts, or another share: validation");
  set.facts.as_object()->erase("next");
  RILLE_CHECK(end_dataset(task, set, context));
  return std::move(set);
}

}  // namespace rille::data
