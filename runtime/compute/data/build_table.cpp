// Builds columns from CSV files, in two passes: the first finds each column's type, the second writes the columns into
// a file without a name, each at its place, from which the safetensors file is written. So memory does not grow with
// the table. Columns of text become codes of categories, in the order in which the categories first occur.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>

#include "runtime/compute/data/build.hpp"
#include "runtime/compute/data/csv.hpp"
#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/store/safetensors.hpp"

namespace rille::data {

namespace {

constexpr std::size_t categories_max = 1'000'000;
constexpr const char* table_file = "columns.safetensors";

Error bad_table(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::invalid, "data build: " + std::move(message), std::move(hint));
}

struct TableColumn {
  std::string name;
  bool integers = true, numbers = true;
  std::string missing_at;  // where a value is missing first; "": nowhere

  // of the second pass
  std::unordered_map<std::string, std::int32_t> codes;
  Value::Array categories;
  std::string buffer;
  std::int64_t begin = 0, written = 0;  // bytes of the file without a name

  const char* format() const { return integers ? "I64" : numbers ? "F32" : "I32"; }
  const char* type() const { return integers ? "integer" : numbers ? "float" : "category"; }
  std::int64_t width() const { return integers ? 8 : 4; }
};

bool is_missing(std::string_view text) {
  if (text.size() > 4) return false;
  const std::string low = lower_case(text);
  for (const char* word : {"", "na", "n/a", "nan", "null", "none"})
    if (low == word) return true;
  return false;
}

bool as_integer(std::string_view text, std::int64_t& out) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc() && end == text.data() + text.size();
}

// Numbers that f32 can hold.
bool as_float(std::string_view text, float& out) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return false;
  if (!(std::abs(number) <= double(std::numeric_limits<float>::max()))) return false;
  out = static_cast<float>(number);
  return true;
}

class Table {
 public:
  Table(const BuildTask& task, const BuildContext& context, std::optional<double> missing)
      : task_(task), context_(context), missing_(missing) {
    for (const BuildSource& s : task.sources) total_bytes_ += s.size_bytes;
  }

  // The first pass.
  Result<> find_types() {
    RILLE_CHECK(each_row([this](const auto& fields, const CsvReader& at) -> Result<> {
      for (std::size_t i = 0; i < fields.size(); ++i) look_at(columns_[i], fields[i], at);
      ++rows_;
      return success();
    }));
    if (rows_ == 0) return bad_table(fmt::format("'{}' has a header and no rows", task_.sources.front().path));
    std::int64_t whole = 0;
    const bool whole_number = missing_ && as_integer(fmt::format("{}", *missing_), whole);
    for (TableColumn& c : columns_) {
      if (!c.numbers || c.missing_at.empty()) continue;
      if (!missing_)
        return bad_table(fmt::format("{}: the column '{}' has no value", c.missing_at, c.name),
                         "fill it in, or name a number to stand for all missing values: missing");
      if (!whole_number) c.integers = false;
    }
    return success();
  }

  // The second pass.
  Result<store::Fingerprint> write() {
    RILLE_CHECK(open_spool());
    const auto write_row = [this](const auto& fields, const CsvReader& at) -> Result<> {
      for (std::size_t i = 0; i < fields.size(); ++i) {
        RILLE_CHECK(append(columns_[i], fields[i], at));
        if (columns_[i].buffer.size() >= buffer_bytes_) RILLE_CHECK(flush(columns_[i]));
      }
      return success();
    };
    RILLE_CHECK(each_row(write_row));
    std::vector<store::TensorSource> tensors;
    for (TableColumn& c : columns_) {
      RILLE_CHECK(flush(c));
      if (c.written != rows_ * c.width())
        return make_error(ErrorKind::integrity, "data build: the table was changed while it was read",
                          "build the data set again when nothing writes its sources");
      tensors.push_back(
          {c.name, c.format(), {rows_}, nullptr, [this, &c](std::uint64_t offset, char* out, std::size_t size) {
             context_.looks();
             return read_spool(c.begin + static_cast<std::int64_t>(offset), out, size);
           }});
    }
    RILLE_CHECK(context_.writes(static_cast<std::size_t>(spool_bytes_)));
    return store::write_safetensors(task_.to + "/" + table_file, tensors, {}, true);
  }

  std::int64_t rows() const { return rows_; }
  Value columns() {
    Value::Array out;
    for (TableColumn& c : columns_) {
      out.push_back(Value().set("name", c.name).set("type", c.type()));
      if (!c.numbers) out.back().set("categories", std::move(c.categories));
    }
    return out;
  }

 private:
  static void look_at(TableColumn& c, const std::string& field, const CsvReader& at) {
    const std::string text = trimmed(field);
    if (is_missing(text)) {
      if (c.missing_at.empty()) c.missing_at = at_line(at.path(), at.line());
      return;
    }
    std::int64_t whole = 0;
    float number = 0;
    if (c.integers && !as_integer(text, whole)) c.integers = false;
    if (c.numbers && !as_float(text, number)) c.numbers = c.integers = false;
  }

  // Calls row(fields, reader) for each row of all files, and checks their headers.
  template <class F>
  Result<> each_row(const F& row) {
    std::vector<std::string> fields;
    std::int64_t before = 0;
    for (const BuildSource& source : task_.sources) {
      const char separator = lower_case(source.path).ends_with(".tsv") ? '\t' : ',';
      RILLE_TRY(CsvReader reader, CsvReader::open(source.path, separator, context_.memory));
      RILLE_TRY(bool more, reader.next(fields));
      if (more) RILLE_CHECK(take_header(fields, source.path));  // else the file is empty
      Pace pace(context_.look);
      std::int64_t shown = 0;
      while (more) {
        RILLE_TRY(more, reader.next(fields));
        if (!more) break;
        if (fields.size() != columns_.size())
          return bad_table(fmt::format("{} has {} fields, and the header has {}", at_line(source.path, reader.line()),
                                       fields.size(), columns_.size()),
                           "a field that contains the separator stands in quotes");
        RILLE_CHECK(row(fields, reader));
        for (const std::string& field : fields) pace.did(field.size());
        if (reader.read_bytes() == shown || !context_.progress) continue;
        shown = reader.read_bytes();
        context_.progress(before + shown, total_bytes_);
      }
      if (reader.xxh3() != source.xxh3) return changed_source(task_, source.path);
      before += source.size_bytes;
    }
    return success();
  }

  Result<> take_header(const std::vector<std::string>& names, const std::string& path) {
    if (columns_.empty()) {
      std::set<std::string> seen;
      for (const std::string& name : names) {
        if (name.empty() || !is_utf8(name) || !seen.insert(name).second)
          return bad_table(fmt::format("the header of '{}' has {}", path,
                                       name.empty()    ? "a column without a name"
                                       : is_utf8(name) ? fmt::format("two columns '{}'", name)
                                                       : "a name that is not UTF-8"),
                           "the first row names the columns");
        columns_.emplace_back().name = name;
      }
      return success();
    }
    for (std::size_t i = 0; i < std::max(names.size(), columns_.size()); ++i) {
      const std::string here = i < names.size() ? names[i] : "", there = i < columns_.size() ? columns_[i].name : "";
      if (here != there)
        return bad_table(fmt::format("column {} of '{}' is '{}', and '{}' in '{}'", i + 1, path, here, there,
                                     task_.sources.front().path),
                         "all files of a table have the same header");
    }
    return success();
  }

  template <class T>
  static void append_number(TableColumn& c, T number) {
    c.buffer.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  Result<> append(TableColumn& c, const std::string& field, const CsvReader& at) {
    if (!c.numbers) {
      RILLE_TRY(const std::int32_t code, code_of(c, field, at));
      append_number(c, code);
      return success();
    }
    const std::string text = trimmed(field);
    const bool missing = is_missing(text);
    std::int64_t whole = missing && missing_ ? static_cast<std::int64_t>(*missing_) : 0;
    float number = missing && missing_ ? static_cast<float>(*missing_) : 0;
    if (!missing && !(c.integers ? as_integer(text, whole) : as_float(text, number)))
      return make_error(ErrorKind::integrity,
                        fmt::format("{} was changed while it was read", at_line(at.path(), at.line())),
                        "build the data set again when nothing writes its sources");
    if (c.integers) append_number(c, whole);
    else append_number(c, number);
    return success();
  }

  Result<std::int32_t> code_of(TableColumn& c, const std::string& text, const CsvReader& at) {
    if (const auto known = c.codes.find(text); known != c.codes.end()) return known->second;
    constexpr std::size_t bytes_of_category = 256;
    if (!is_utf8(text))
      return bad_table(fmt::format("{}: the column '{}' is not UTF-8", at_line(at.path(), at.line()), c.name),
                       "convert the file first, as by `iconv -f latin1 -t utf-8`");
    if (c.codes.size() == categories_max)
      return bad_table(fmt::format("the column '{}' has more than {} different texts", c.name, categories_max),
                       "remove the column: it is no category");
    RILLE_TRY(MemoryHeld one, context_.hold(2 * text.size() + bytes_of_category));
    held_.push_back(std::move(one));
    const auto code = static_cast<std::int32_t>(c.codes.size());
    c.codes.emplace(text, code);
    c.categories.emplace_back(text);
    return code;
  }

  Result<> open_spool() {
    constexpr std::size_t buffers_bytes = 64 << 20, buffer_least = 4096, buffer_most = 64 << 10;
    buffer_bytes_ = std::clamp(buffers_bytes / columns_.size(), buffer_least, buffer_most);
    RILLE_TRY(MemoryHeld one, context_.hold(columns_.size() * buffer_bytes_ * 2));
    held_.push_back(std::move(one));
    const std::string path = task_.to + "/columns.tmp-spool";
    ::unlink(path.c_str());  // of an interrupted build
    spool_ = store::Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!spool_.valid()) return errno_error("cannot create", path, errno);
    ::unlink(path.c_str());
    for (TableColumn& c : columns_) {
      c.begin = spool_bytes_;
      spool_bytes_ += rows_ * c.width();
    }
    return context_.writes(static_cast<std::size_t>(spool_bytes_));
  }

  Result<> flush(TableColumn& c) {
    if (c.written + static_cast<std::int64_t>(c.buffer.size()) > rows_ * c.width())
      return make_error(ErrorKind::integrity, "data build: the table grew while it was read",
                        "build the data set again when nothing writes its sources");
    for (std::size_t done = 0; done < c.buffer.size();) {
      const ssize_t wrote = ::pwrite(spool_.get(), c.buffer.data() + done, c.buffer.size() - done,
                                     c.begin + c.written + static_cast<std::int64_t>(done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return errno_error("cannot write a temporary file in", task_.to, errno);
      done += static_cast<std::size_t>(wrote);
    }
    c.written += static_cast<std::int64_t>(c.buffer.size());
    c.buffer.clear();
    return success();
  }

  Result<> read_spool(std::int64_t at, char* out, std::size_t size) const {
    while (size > 0) {
      const ssize_t got = ::pread(spool_.get(), out, size, at);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return errno_error("cannot read a temporary file in", task_.to, got ? errno : EIO);
      out += got, at += got, size -= static_cast<std::size_t>(got);
    }
    return success();
  }

  const BuildTask& task_;
  const BuildContext& context_;
  const std::optional<double> missing_;
  std::vector<TableColumn> columns_;
  std::int64_t rows_ = 0, total_bytes_ = 0, spool_bytes_ = 0;
  std::size_t buffer_bytes_ = 0;
  store::Fd spool_;
  std::vector<MemoryHeld> held_;
};

}  // namespace

Result<Dataset> build_table(const BuildTask& task, const BuildContext& context) {
  const Value& given = task.options["missing"];
  std::optional<double> missing;
  if (const double* number = given.as_number()) missing = *number;
  constexpr double exact = 0x1p53;
  if ((!given.is_null() && !missing) || (missing && !(std::abs(*missing) <= exact)))
    return bad_table(fmt::format("missing = {}: expected a number", given.to_json()));
  Dataset plan;
  plan.kind = "csv";
  plan.options.set("missing", given);
  Table table(task, context, missing);
  RILLE_CHECK(table.find_types());  // before the folder is made: most mistakes are found here
  RILLE_TRY(Begun begun, begin_dataset(task, std::move(plan), context));
  if (begun.complete) return std::move(begun.from);
  RILLE_TRY(const store::Fingerprint print, table.write());
  Dataset& set = begun.from;
  set.shards = {{table_file, "train", print, table.rows()}};
  set.facts.set("rows", table.rows()).set("columns", table.columns());
  RILLE_CHECK(end_dataset(task, set, context));
  return std::move(set);
}

}  // namespace rille::data
