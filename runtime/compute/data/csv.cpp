#include "runtime/compute/data/csv.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/compute/data/build.hpp"

namespace rille::data {

namespace {
constexpr std::size_t buffer_bytes = 1 << 20, record_bytes_least = 64 << 10;
}

Result<CsvReader> CsvReader::open(const std::string& path, char separator, std::shared_ptr<MemoryUse> memory) {
  store::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("cannot open", path, errno);
  CsvReader reader(path, separator, std::move(fd), std::move(memory));
  RILLE_CHECK(reader.hold(record_bytes_least));
  RILLE_CHECK(reader.peek());
  if (reader.buffer_.starts_with("\xEF\xBB\xBF")) reader.taken_ = 3;
  return reader;
}

// Counts the buffer, what the fields keep, and a record: a field that grows is there twice, with room for as much.
Result<> CsvReader::hold(std::size_t record_bytes) {
  const std::size_t bytes = 3 * buffer_bytes + fields_max * sizeof(std::string) + 3 * record_bytes;
  held_ = MemoryHeld();
  RILLE_TRY(held_, MemoryHeld::take(memory_, MemoryUse::Part::tensors, static_cast<std::int64_t>(bytes)));
  held_bytes_ = record_bytes;
  return success();
}

Result<> CsvReader::record_grows() {
  if (record_bytes_ <= record_bytes_max) return hold(std::min(2 * held_bytes_, record_bytes_max));
  return make_error(ErrorKind::invalid,
                    fmt::format("the record at {} has more than {} MiB", at_line(path_, line_), record_bytes_max >> 20),
                    "is a quote missing? Rows of a table are not that long");
}

Result<int> CsvReader::peek() {
  while (taken_ == buffer_.size()) {
    buffer_.resize(buffer_bytes);
    taken_ = 0;
    const ssize_t got = ::read(fd_.get(), buffer_.data(), buffer_.size());
    const int failed = errno;
    buffer_.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && failed == EINTR) continue;
    if (got < 0) return errno_error("cannot read", path_, failed);
    if (got == 0) return -1;
    hasher_.update(buffer_);
    read_ += got;
  }
  return static_cast<unsigned char>(buffer_[taken_]);
}

Result<int> CsvReader::get() {
  RILLE_TRY(const int c, peek());
  if (c < 0) return c;
  ++taken_;
  if (c == '\n') ++next_line_;
  if (++record_bytes_ > held_bytes_) RILLE_CHECK(record_grows());
  return c;
}

// The rest of a field after its opening quote, with the closing one.
Result<> CsvReader::quoted(std::string& field) {
  const std::int64_t began = next_line_;
  for (;;) {
    RILLE_TRY(const int c, get());
    if (c < 0)
      return make_error(ErrorKind::invalid,
                        fmt::format("a quote that begins at {} does not end", at_line(path_, began)),
                        "close it; a quote inside of quotes is written twice");
    if (c == '"') {
      RILLE_TRY(const int then, peek());
      if (then != '"') return success();
      RILLE_CHECK(get());
    }
    field.push_back(static_cast<char>(c));
  }
}

Result<bool> CsvReader::field(std::string& field) {
  field.clear();
  RILLE_TRY(const int first, peek());
  if (first == '"') {
    RILLE_CHECK(get());
    RILLE_CHECK(quoted(field));
    RILLE_TRY(const int then, peek());
    if (then >= 0 && then != separator_ && then != '\n' && then != '\r')
      return make_error(ErrorKind::invalid, fmt::format("{}: text follows a closing quote", at_line(path_, next_line_)),
                        "a quote inside of quotes is written twice");
  }
  for (;;) {
    RILLE_TRY(const int c, get());
    if (c == separator_) return true;
    if (c < 0 || c == '\n') return false;
    if (c == '\r') {
      RILLE_TRY(const int then, peek());
      if (then == '\n' || then < 0) continue;
    }
    field.push_back(static_cast<char>(c));
  }
}

Result<bool> CsvReader::next(std::vector<std::string>& fields) {
  kept_bytes_ += record_bytes_;
  for (;;) {
    RILLE_TRY(const int c, peek());
    if (c < 0) return false;
    record_bytes_ = 0;
    if (c != '\n' && c != '\r') break;
    RILLE_CHECK(get());
  }
  if (kept_bytes_ > buffer_bytes) {  // else each column would keep the room of its longest field
    fields = {};
    kept_bytes_ = 0;
    RILLE_CHECK(hold(record_bytes_least));
  }
  line_ = next_line_;
  std::size_t count = 0;
  for (bool more = true; more; ++count) {
    if (count == fields_max)
      return make_error(ErrorKind::invalid,
                        fmt::format("{} has more than {} fields", at_line(path_, line_), fields_max),
                        "a table may have so many columns; is another character its separator?");
    if (count == fields.size()) fields.emplace_back();
    RILLE_TRY(more, field(fields[count]));
  }
  fields.resize(count);
  return true;
}

}  // namespace rille::data
