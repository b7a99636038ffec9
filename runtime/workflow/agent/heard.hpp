// What the runner hears from an agent, as typed values. A rented machine may lie in every message, so everything that
// the engine uses of a header is checked here, where it enters. Each function fails with lie() if a value is missing,
// of another type, out of range or too large.
#pragma once

#include <string>
#include <string_view>

#include "runtime/workflow/agent/client.hpp"

namespace rille::agent {

inline constexpr std::int64_t file_bytes_max = std::int64_t{1} << 42;  // the sum of a million file sizes fits 63 bits
inline constexpr std::size_t listed_files_max = 1'000'000;
inline constexpr std::int64_t call_attempts_max = 1'000'000;
inline constexpr std::int64_t step_max = std::int64_t{1} << 53;              // of a checkpoint
inline constexpr std::int64_t latest_wall_us = 4'102'444'800LL * 1'000'000;  // the year 2100

// Error integrity, code broken_protocol, not retryable.
Error lie(std::string what);

Result<AgentInfo> agent_info_from(const Value& hello);
Result<CallStatus> call_status_from(const Value& value);
Result<FileInfo> file_info_from(const Value& value);  // the path is not checked
Result<Transfer> unpacked_from(const Value& value);

// What is fetched must be what was asked for: its size, version and digest, as far as the request has them. `machines`:
// how many other machines the pull was told of.
Result<Pulled> pulled_from(const Value& value, const PullRequest& request, std::size_t machines = 0);
struct PullProgress {
  std::int64_t done_bytes = 0, total_bytes = -1;
};
Result<PullProgress> pull_progress_from(const Value& value);
Result<Pushed> pushed_from(const Value& value);

// News about the shares of a channel (AgentClient::listen). Addresses that are not of a private network are left out:
// other machines are told to connect to them.
struct ShareNews {
  enum class Kind : std::uint8_t { listening, digest, object } kind = Kind::listening;
  std::vector<std::string> addresses;
  std::string share, sha256, version;  // version: an ETag in quotes, or ""
  std::int64_t part = 0, size_bytes = 0;
};
Result<ShareNews> share_news_from(const Value& value);

// News about an attached call.
struct HeardEvent {
  enum class Kind : std::uint8_t { log, metrics, progress, checkpoint, notice, other } kind = Kind::other;
  std::int64_t offset = 0;            // of log and metrics
  std::int64_t deadline_wall_us = 0;  // of notice
  Value value;                        // of progress and checkpoint
};
// `other`: an event of a newer agent, to be ignored.
Result<HeardEvent> event_from(const Value& header, std::string_view body);

}  // namespace rille::agent
