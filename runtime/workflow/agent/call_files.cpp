#include "runtime/workflow/agent/call_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/agent/frame.hpp"
#include "runtime/workflow/agent/metric.hpp"

namespace rille::agent {

namespace {
Result<Value> read_json(const std::string& path) {
  RILLE_TRY(std::string text, store::read_file(path, 2 * static_cast<std::int64_t>(result_frame_bytes_max)));
  auto value = Value::from_json(text);
  if (!value)
    return make_error(ErrorKind::integrity, "'" + path + "' on the machine is damaged: " + value.error().message,
                      "release the machine and rent again: its agent cannot continue this call");
  return value;
}
}  // namespace

std::string call_id(const std::string& call_key) { return derive_hex({"call", call_key}, 32); }

Result<CallRecord> CallFiles::load() const {
  RILLE_TRY(Value v, read_json(path("spec.json")));
  CallRecord record;
  record.key = v.text("key");
  record.generation = v.integer("generation");
  record.epoch = v.integer("epoch");
  record.attempt = static_cast<int>(v.integer("attempt"));
  record.spec = v["spec"];
  return record;
}

Result<> CallFiles::save(const CallRecord& record) const {
  Value v;
  v.set("key", record.key).set("generation", record.generation).set("epoch", record.epoch);
  v.set("attempt", record.attempt).set("spec", record.spec);
  RILLE_CHECK(store::make_directories(directory_));
  return store::write_file_atomic(path("spec.json"), v.to_json(), 0600);
}

Value CallFiles::events() const {
  auto v = read_json(path("events.json"));
  return v ? std::move(*v) : Value();
}

Result<> CallFiles::save_events(const Value& progress, const Value& checkpoint, int grown_attempt) const {
  Value v;
  v.set("progress", progress).set("checkpoint", checkpoint).set("grown_attempt", grown_attempt);
  return store::write_file_atomic(path("events.json"), v.to_json(), 0600);
}

Result<std::string> CallFiles::save_input(std::string_view text) const {
  RILLE_CHECK(store::write_file_atomic(path("stdin"), text, 0600));
  return path("stdin");
}

bool CallFiles::has_result() const { return access(path("result.json").c_str(), F_OK) == 0; }
Result<Value> CallFiles::result() const { return read_json(path("result.json")); }

Result<> CallFiles::save_result(const Value& outcome) const {
  return store::write_file_atomic(path("result.json"), outcome.to_json(), 0600);
}

Result<> CallFiles::remove_result() const { return store::remove_tree(path("result.json")); }

// Removes the call's directory, spec.json first: without that file, the next agent deletes the rest.
Result<> CallFiles::remove() const {
  RILLE_CHECK(store::remove_tree(path("spec.json")));
  return store::remove_tree(directory_);
}

Result<> GrowingFile::open(std::string path) {
  path_ = std::move(path);
  file_ = store::Fd(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file_.valid()) return errno_error("open", path_, errno);
  struct stat st {};
  fstat(file_.get(), &st);
  size_ = st.st_size;
  return {};
}

Result<> GrowingFile::append(std::string_view bytes) {
  if (!file_.valid()) return {};
  RILLE_CHECK(store::write_all(file_.get(), bytes, path_));
  size_ += static_cast<std::int64_t>(bytes.size());
  return {};
}

Result<std::string> GrowingFile::read(std::int64_t offset, std::size_t most) const {
  std::string out(std::min<std::size_t>(most, static_cast<std::size_t>(std::max<std::int64_t>(0, size_ - offset))),
                  '\0');
  if (out.empty()) return out;
  ssize_t n = pread(file_.get(), out.data(), out.size(), offset);
  if (n < 0) return errno_error("read", path_, errno);
  out.resize(static_cast<std::size_t>(n));
  return out;
}

Result<> CallFiles::open_log() {
  RILLE_CHECK(log_.open(path("log")));
  return metrics_.open(path("metrics"));
}

Result<> CallFiles::append_log(std::string_view bytes, std::int64_t limit_bytes) {
  if (log_full_) return {};
  std::string end;
  const std::int64_t size = log_.size_bytes();
  if (size + static_cast<std::int64_t>(bytes.size()) > limit_bytes) {
    log_full_ = true;
    bytes = bytes.substr(0, static_cast<std::size_t>(std::max<std::int64_t>(0, limit_bytes - size)));
    end = fmt::format("\n[rille: the log has reached its limit of {} (log_bytes_max); the rest is dropped]\n",
                      format_size_bytes(limit_bytes));
  }
  RILLE_CHECK(log_.append(bytes));
  return log_.append(end);
}

Result<> CallFiles::append_metrics(std::string_view lines) {
  if (metrics_.size_bytes() + static_cast<std::int64_t>(lines.size()) > metrics_bytes_max) return {};
  return metrics_.append(lines);
}

Result<std::string> CallFiles::read_metrics(std::int64_t offset, std::size_t most) const {
  RILLE_TRY(std::string lines, metrics_.read(offset, most));
  lines.resize(lines.rfind('\n') == std::string::npos ? 0 : lines.rfind('\n') + 1);
  return lines;
}

std::string CallFiles::last_lines() const {
  auto tail = read_log(std::max<std::int64_t>(0, log_size_bytes() - 2048), 2048);
  if (!tail) return {};
  while (!tail->empty() && tail->back() == '\n') tail->pop_back();
  std::size_t at = tail->size();
  for (int lines = 0; lines < 5 && at != std::string::npos && at > 0; ++lines) at = tail->rfind('\n', at - 1);
  std::string out, text = at == std::string::npos || at == 0 ? *tail : tail->substr(at + 1);
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    out += "\n    " + text.substr(begin, end - begin);
    begin = end + 1;
  }
  return out;
}

}  // namespace rille::agent
