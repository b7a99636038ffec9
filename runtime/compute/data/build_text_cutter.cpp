#include "runtime/compute/data/build_text_cutter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include "runtime/compute/data/utf8.hpp"
#include "runtime/core/base/text.hpp"

namespace rille::data {

namespace {

// Whether a text may be cut before `at`: after a line end between two characters that are not spaces.
bool is_line_cut(std::string_view text, std::size_t at) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  return at >= 2 && at < text.size() && text[at - 1] == '\n' && !space(text[at - 2]) && !space(text[at]);
}

}  // namespace

Value TextPlace::to_value() const {
  return Value().set("file", static_cast<std::int64_t>(file)).set("offset", offset).set("line", line);
}

TextPlace TextPlace::from_value(const Value& v) {
  return {static_cast<std::size_t>(std::max<std::int64_t>(0, v.integer("file"))),
          std::max<std::int64_t>(0, v.integer("offset")), std::max<std::int64_t>(1, v.integer("line", 1))};
}

bool TextCutter::lines() const {
  const std::string name = lower_case(path());
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

// Opens the file at the place. What is before the place is read for the hash of the whole.
Result<> TextCutter::open() {
  fd_ = store::Fd(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_.valid()) return errno_error("cannot open", path(), errno);
  hasher_.emplace();
  ended_ = false;
  for (std::int64_t left = at_.offset; left > 0;) {
    context_.looks();
    RILLE_TRY(const std::size_t got, read_more(std::min(static_cast<std::size_t>(left), piece_bytes_)));
    if (got == 0) return changed_source(task_, path());
    left -= static_cast<std::int64_t>(got);
    text_.clear();
  }
  return success();
}

// Returns the number of bytes that were read; 0: the file has ended.
Result<std::size_t> TextCutter::read_more(std::size_t bytes_max) {
  for (;;) {
    const std::size_t had = text_.size();
    text_.resize(had + bytes_max);
    const ssize_t got = ::read(fd_.get(), text_.data() + had, bytes_max);
    const int failed = errno;
    text_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && failed == EINTR) continue;
    if (got < 0) return errno_error("cannot read", path(), failed);
    hasher_->update(std::string_view(text_).substr(had));
    return static_cast<std::size_t>(got);
  }
}

// Reads until rest() has so many bytes, or the file ends. Reads up to twice as many, so that few bytes are moved.
Result<> TextCutter::fill(std::size_t bytes) {
  const std::size_t wanted = bytes + std::min(bytes, part_bytes_max);
  if (wanted > text_.capacity()) {
    RILLE_TRY(MemoryHeld more, context_.hold(text_.capacity() + wanted));  // both while it grows
    held_ = std::move(more);
  }
  if (!fd_.valid()) RILLE_CHECK(open());
  if (ended_ || rest().size() >= bytes) return success();
  text_.erase(0, std::exchange(taken_, 0));
  while (!ended_ && text_.size() < wanted) {
    RILLE_TRY(const std::size_t got, read_more(wanted - text_.size()));
    ended_ = got == 0;
  }
  return success();
}

Result<std::size_t> TextCutter::end_of_lines() {
  for (std::size_t from = piece_bytes_ - 1, want = 2 * piece_bytes_;; want *= 2) {
    RILLE_CHECK(fill(want));
    const std::string_view text = rest();
    const std::size_t found = text.find('\n', from), end = std::min(found, text.size());
    const std::string_view before = text.substr(0, end);
    const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
    if (end - begin > line_bytes_max)
      return make_error(
          ErrorKind::invalid,
          fmt::format("{} has more than {} MiB",
                      at_line(path(), at_.line + std::count(before.begin(), before.end(), '\n')), line_bytes_max >> 20),
          "a JSONL file has one document in each line; split this document");
    if (found != text.npos) return found + 1;
    if (ended_) return text.size();
    from = text.size();
  }
}

Result<std::size_t> TextCutter::end_of_part() {
  RILLE_CHECK(fill(part_bytes_max + 1));
  const std::string_view text = rest();
  if (!lines_apart_ && text.size() <= part_bytes_max) return text.size();
  const std::size_t last = std::min(text.size(), part_bytes_max);
  if (lines_apart_)
    for (std::size_t at = piece_bytes_; at <= last; ++at)
      if (is_line_cut(text, at)) return at;
  if (text.size() <= part_bytes_max) return text.size();
  for (std::size_t at = last; at > last / 2; --at)
    if (is_line_cut(text, at)) return at;
  std::size_t end = last;  // no line ends here: cut between two characters
  while (end > last - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return end;
}

Result<std::optional<TextPiece>> TextCutter::next() {
  for (; at_.file < task_.sources.size(); ++at_.file, at_.offset = 0, at_.line = 1, fd_ = store::Fd()) {
    RILLE_TRY(const std::size_t end, end_of_piece());
    if (end == 0) {
      if (at_.offset == file().size_bytes && hasher_->finish().xxh3 == file().xxh3) continue;
      return changed_source(task_, path());
    }
    TextPiece piece{std::string(rest().substr(0, end)), at_, at_, lines(), {}};
    taken_ += end;
    piece.next.offset += static_cast<std::int64_t>(end);
    piece.next.line += std::count(piece.text.begin(), piece.text.end(), '\n');
    at_ = piece.next;
    return std::optional<TextPiece>(std::move(piece));
  }
  return std::optional<TextPiece>();
}

}  // namespace rille::data
