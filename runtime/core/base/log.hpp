// The log: one sink per runtime, no global. Messages are single lines; callers remove secrets before they log
// (net/redact.hpp). Thread-safe when the sink is.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rille {

enum class LogLevel { debug, info, warn, error };
std::string_view to_string(LogLevel level);

class Log {
 public:
  using Sink = std::function<void(LogLevel, std::string_view line)>;
  Log() = default;
  explicit Log(Sink sink, LogLevel least = LogLevel::info) : sink_(std::move(sink)), least_(least) {}
  void write(LogLevel level, std::string_view line) const {
    if (sink_ && level >= least_) sink_(level, line);
  }
  void debug(std::string_view line) const { write(LogLevel::debug, line); }
  void info(std::string_view line) const { write(LogLevel::info, line); }
  void warn(std::string_view line) const { write(LogLevel::warn, line); }
  void error(std::string_view line) const { write(LogLevel::error, line); }

 private:
  Sink sink_;
  LogLevel least_ = LogLevel::info;
};

}  // namespace rille
