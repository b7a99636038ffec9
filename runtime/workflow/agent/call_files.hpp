// A call's files: D/calls/<id>/{spec.json, stdin, log, metrics, events.json, result.json}. spec.json is written before
// the worker starts, result.json before the result is announced, each atomically. Blocking; one owner per call.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::agent {

std::string call_id(const std::string& call_key);

struct CallRecord {
  std::string key;
  std::int64_t generation = 1, epoch = 0;
  int attempt = 0;
  Value spec;
};

// A file that only grows and is read by offset.
class GrowingFile {
 public:
  Result<> open(std::string path);
  Result<> append(std::string_view bytes);  // does nothing if the file is not open
  Result<std::string> read(std::int64_t offset, std::size_t most) const;
  std::int64_t size_bytes() const { return size_; }

 private:
  std::string path_;
  store::Fd file_;
  std::int64_t size_ = 0;
};

class CallFiles {
 public:
  explicit CallFiles(std::string directory) : directory_(std::move(directory)) {}
  const std::string& directory() const { return directory_; }

  Result<CallRecord> load() const;  // integrity: the spec file is damaged
  Result<> save(const CallRecord& record) const;
  // {progress, checkpoint, grown_attempt}, where grown_attempt is the attempt in which the checkpoint's step last grew;
  // null: there are no events.
  Value events() const;
  Result<> save_events(const Value& progress, const Value& checkpoint, int grown_attempt) const;
  Result<std::string> save_input(std::string_view text) const;  // the program's standard input; returns its path
  bool has_result() const;
  Result<Value> result() const;  // {value} or {error}
  Result<> save_result(const Value& outcome) const;
  Result<> remove_result() const;  // call before another attempt starts
  Result<> remove() const;

  Result<> open_log();  // and the metrics
  std::int64_t log_size_bytes() const { return log_.size_bytes(); }
  // Appends to the log. At the limit, one line says that the log is full, and further output is dropped.
  Result<> append_log(std::string_view bytes, std::int64_t limit_bytes);
  Result<std::string> read_log(std::int64_t offset, std::size_t most) const { return log_.read(offset, most); }
  std::string last_lines() const;  // the log's last lines, at most five, indented

  // Metrics are whole lines (metric.hpp). At metrics_bytes_max further ones are dropped.
  std::int64_t metrics_size_bytes() const { return metrics_.size_bytes(); }
  Result<> append_metrics(std::string_view lines);
  Result<std::string> read_metrics(std::int64_t offset, std::size_t most) const;  // whole lines; "": no whole one

 private:
  std::string path(const char* name) const { return directory_ + "/" + name; }
  std::string directory_;
  GrowingFile log_, metrics_;
  bool log_full_ = false;
};

}  // namespace rille::agent
