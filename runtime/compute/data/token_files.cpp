#include "runtime/compute/data/token_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/compute/data/tokenizer.hpp"
#include "runtime/core/store/hash.hpp"

namespace rille::data {

namespace {

namespace fs = std::filesystem;

constexpr int entries_max = 1'000'000;
constexpr std::size_t header_bytes = 1024;
constexpr std::int32_t magic_u16 = 20240520, magic_u32 = 20240801;
constexpr std::size_t piece_bytes = 1 << 20;  // bytes of text that are encoded at a time

std::int32_t word(std::string_view bytes, std::size_t i) {
  std::int32_t w;
  std::memcpy(&w, bytes.data() + i * 4, 4);
  return w;
}

// Returns where to end the piece of text that starts at `from`: after a line end between two characters that are not
// spaces, because the known patterns always start a new word there (Tokenizer::lines_apart).
std::size_t piece_end(std::string_view text, std::size_t from) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = from + piece_bytes; at + 1 < text.size(); ++at)
    if (text[at] == '\n' && !space(text[at - 1]) && !space(text[at + 1])) return at + 1;
  return text.size();
}

// The text of a file, piece after piece. It is read and not mapped: a script that runs meanwhile may truncate the file,
// and an access to the map would then end the process.
class TextPieces {
 public:
  // lines_apart: as Tokenizer::lines_apart; else the whole text is one piece. room: for the pieces.
  static Result<TextPieces> open(const std::string& path, bool lines_apart, const Asked& asked) {
    TextPieces out(path, lines_apart, asked);
    out.fd_ = store::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!out.fd_.valid()) return errno_error("cannot open", path, errno);
    return out;
  }
  // Returns the next piece, valid until the next call; "" at the end.
  Result<std::string_view> next() {
    RILLE_CHECK(asked_.needs(text_.capacity()));
    for (;;) {
      const std::size_t end = lines_apart_ ? piece_end(text_, taken_) : text_.size();
      if (ended_ || end < text_.size()) {
        const std::size_t begin = std::exchange(taken_, end);
        return std::string_view(text_).substr(begin, end - begin);
      }
      RILLE_CHECK(read_more());
    }
  }

 private:
  TextPieces(std::string path, bool lines_apart, const Asked& asked)
      : path_(std::move(path)), lines_apart_(lines_apart), asked_(asked) {}

  Result<> read_more() {
    if (asked_.look) asked_.look();
    text_.erase(0, std::exchange(taken_, 0));
    const std::size_t had = text_.size(), more = std::max(2 * piece_bytes, had);
    RILLE_CHECK(asked_.needs(more));
    text_.resize(had + more);
    ssize_t got;
    do got = ::read(fd_.get(), text_.data() + had, more);
    while (got < 0 && errno == EINTR);
    if (got < 0) return errno_error("cannot read", path_, errno);
    text_.resize(had + static_cast<std::size_t>(got));
    ended_ = got == 0;
    return success();
  }

  std::string path_, text_;
  bool lines_apart_, ended_ = false;
  const Asked& asked_;
  store::Fd fd_;
  std::size_t taken_ = 0;
};

// Appends token ids to the file, each `width` bytes wide.
class IdWriter {
 public:
  IdWriter(store::FileWriter& file, int width, const Room& disk) : file_(file), width_(width), disk_(disk) {}
  Result<> write(const std::vector<std::int32_t>& ids) {
    buffer_.clear();
    const auto width = static_cast<std::size_t>(width_);
    for (const std::int32_t id : ids) buffer_.append(reinterpret_cast<const char*>(&id), width);
    if (disk_) RILLE_CHECK(disk_(static_cast<std::int64_t>(buffer_.size())));
    return file_.write(buffer_);
  }

 private:
  store::FileWriter& file_;
  int width_;
  const Room& disk_;
  std::string buffer_;
};

std::string made_path(const std::string& directory, const std::string& key, int width) {
  return fmt::format("{}/{}.u{}", directory, key, width * 8);
}

// A hash of everything that the ids depend on: the text files, the tokenizer's files and the pattern.
Result<std::string> key_of(const std::vector<std::string>& files, const std::string& tokenizer,
                           const std::string& pattern) {
  store::Hasher hasher;
  RILLE_TRY(const auto vocabulary, files_of(tokenizer));
  for (const auto* list : {&files, &vocabulary}) {
    for (const std::string& file : *list) {
      RILLE_TRY(const auto print, store::fingerprint_file(file));
      hasher.update(fmt::format("{}:{};", print.size_bytes, print.xxh3));
    }
    hasher.update("|");
  }
  hasher.update(pattern + "|2");  // "|2" is a version: earlier releases read a vocabulary's "$$" as "$"
  return hasher.finish().xxh3;
}

}  // namespace

Result<TokenFile> TokenFile::open(const std::string& path, int width_bytes) {
  TokenFile file;
  file.path_ = path;
  file.width_ = width_bytes ? width_bytes : path.ends_with(".u32") ? 4 : 2;
  RILLE_TRY(file.map_, store::MappedFile::open(path));
  const std::string_view all = file.map_.view();
  if (all.size() >= header_bytes && (word(all, 0) == magic_u16 || word(all, 0) == magic_u32)) {
    file.width_ = word(all, 0) == magic_u16 ? 2 : 4;
    file.skip_ = header_bytes;
    const std::int32_t version = word(all, 1), count = word(all, 2);
    if (version != (file.width_ == 2 ? 1 : 7))
      return make_error(
          ErrorKind::integrity,
          fmt::format("'{}' is a token file of version {}, which Rille cannot read", path, version),
          "write it again with version 1 (16-bit ids) or 7 (32-bit ids), or as plain ids without a header");
    if (count < 0 || static_cast<std::uint64_t>(count) != file.count())
      return make_error(ErrorKind::integrity,
                        fmt::format("'{}' should contain {} ids, but contains {}", path, count, file.count()),
                        "fetch it again: it is truncated or was changed");
  }
  if (file.ids().size() % static_cast<std::size_t>(file.width_) != 0)
    return make_error(
        ErrorKind::invalid,
        fmt::format("'{}' has {} bytes: not a whole number of ids of {} bytes", path, all.size(), file.width_),
        "dtype = \"u16\" or \"u32\" tells how it was written");
  return file;
}

std::string token_header(int width_bytes, std::int64_t count) {
  std::string out(header_bytes, '\0');
  const std::int32_t words[3] = {width_bytes == 2 ? magic_u16 : magic_u32, width_bytes == 2 ? 1 : 7,
                                 static_cast<std::int32_t>(count)};
  std::memcpy(out.data(), words, sizeof words);
  return out;
}

Result<std::vector<std::string>> files_of(const std::string& path, const Look& look) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  fs::recursive_directory_iterator it(path, failed), end;
  for (int entries = 1; !failed && it != end; it.increment(failed), ++entries) {
    if (entries % 1000 == 0 && look) look();
    if (entries > entries_max)
      return make_error(ErrorKind::invalid,
                        fmt::format("the directory '{}' has more than {} entries", path, entries_max),
                        "name a directory of data only, or join its files");
    const bool hidden = it->path().filename().native().front() == '.';
    if (hidden && it->is_directory(failed)) it.disable_recursion_pending();
    if (!hidden && it->is_regular_file(failed)) files.push_back(it->path());
  }
  if (failed) return errno_error("cannot list", path, failed.value());
  if (files.empty())
    return make_error(ErrorKind::invalid, fmt::format("the directory '{}' has no files", path),
                      "name a directory of files, or one file");
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> tokenize(const std::string& path, const std::string& tokenizer, const std::string& pattern,
                             const std::string& directory, const Asked& asked, const Room& disk) {
  RILLE_TRY(const auto files, files_of(path, asked.look));
  RILLE_TRY(const std::string key, key_of(files, tokenizer, pattern));
  std::error_code failed;
  for (const int width : {2, 4})
    if (const auto made = made_path(directory, key, width); fs::exists(made, failed)) return made;
  RILLE_TRY(auto vocabulary, Tokenizer::open(tokenizer, pattern, asked));
  RILLE_CHECK(store::make_directories(directory));
  const int width = vocabulary.size() <= 65536 ? 2 : 4;
  const auto end_of_text = files.size() > 1 ? vocabulary.id_of("<|endoftext|>") : std::nullopt;
  RILLE_TRY(auto out, store::FileWriter::create(made_path(directory, key, width)));
  IdWriter writer(out, width, disk);
  for (const std::string& file : files) {
    if (end_of_text) RILLE_CHECK(writer.write({*end_of_text}));
    RILLE_TRY(auto pieces, TextPieces::open(file, vocabulary.lines_apart(), asked));
    for (bool continued = false;; continued = true) {
      RILLE_TRY(const std::string_view text, pieces.next());
      if (text.empty()) break;
      RILLE_TRY(const auto ids, vocabulary.encode(text, {.continued = continued, .asked = asked}));
      RILLE_CHECK(writer.write(ids));
      if (asked.over) asked.over();
    }
  }
  RILLE_CHECK(out.commit());
  return out.path();
}

}  // namespace rille::data
