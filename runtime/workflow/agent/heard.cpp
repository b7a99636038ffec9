#include "runtime/workflow/agent/heard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/net/private_network.hpp"
#include "runtime/core/store/unpack.hpp"
#include "runtime/workflow/agent/call.hpp"
#include "runtime/workflow/agent/frame.hpp"
#include "runtime/workflow/agent/metric.hpp"
#include "runtime/workflow/agent/peers.hpp"

namespace rille::agent {

namespace {
constexpr std::size_t name_bytes_max = 256, path_bytes_max = 4096, version_bytes_max = 1024, training_bytes_max = 64;

// The whole number in a field, `otherwise` if the field is missing.
Result<std::int64_t> number_in(const Value& value, const char* field, std::int64_t otherwise, std::int64_t most) {
  const Value& member = value[field];
  if (member.is_null()) return otherwise;
  const double* number = member.as_number();
  if (!number || !(*number >= 0 && *number <= static_cast<double>(most)))
    return lie(fmt::format("{} = {}: expected a number from 0 to {}", field, member.to_json().substr(0, 100), most));
  return static_cast<std::int64_t>(*number);
}

Result<std::string> name_in(const Value& value, const char* field) {
  std::string text = value.text(field);
  if (text.size() > name_bytes_max)
    return lie(fmt::format("{} has {} bytes: at most {} are allowed", field, text.size(), name_bytes_max));
  return text;
}

Result<> check_size(const Value& value, const char* what) {
  if (value.to_json_within(event_bytes_max)) return success();
  return lie(fmt::format("a {} of more than {} (event_bytes_max)", what, format_size_bytes(event_bytes_max)));
}

// Of a rank that writes to its own machine (stdlib/tools/shares.lua). A training has the name of a hidden folder.
Result<> check_share(const Value& share) {
  if (share.is_null()) return success();
  if (!share.as_object()) return lie("a share of a checkpoint that is no object");
  for (const auto& [field, most] :
       {std::pair("training", training_bytes_max), {"manifest", name_bytes_max}, {"directory", path_bytes_max}}) {
    const std::string* text = share[field].as_string();
    if (!share[field].is_null() && (!text || text->size() > most))
      return lie(fmt::format("a share of a checkpoint whose {} is no text of at most {} bytes", field, most));
  }
  return success();
}

Result<> check_checkpoint(const Value& value) {
  if (value.is_null()) return success();
  if (!value.as_object()) return lie("a checkpoint that is no object");
  RILLE_CHECK(check_size(value, "checkpoint"));
  RILLE_CHECK(number_in(value, "step", 0, step_max));
  const std::string* directory = value["directory"].as_string();
  if (!value["directory"].is_null() && (!directory || directory->size() > path_bytes_max))
    return lie("a checkpoint whose directory is no path");
  return check_share(value["share"]);
}
}  // namespace

Error lie(std::string what) {
  Error e = make_error(ErrorKind::integrity, "the agent on the machine sent what no agent sends: " + std::move(what),
                       "the agent program there is damaged or hostile: release the machine, and rent another one");
  e.code = broken_protocol;
  return e;
}

Result<AgentInfo> agent_info_from(const Value& hello) {
  AgentInfo out;
  RILLE_TRY(out.build, name_in(hello, "build"));
  RILLE_TRY(out.instance, name_in(hello, "instance"));
  RILLE_TRY(out.process, name_in(hello, "process"));
  RILLE_TRY(out.pid, number_in(hello, "pid", 0, INT32_MAX));
  RILLE_TRY(out.started_wall_us, number_in(hello, "started_wall_us", 0, latest_wall_us));
  return out;
}

Result<CallStatus> call_status_from(const Value& value) {
  CallStatus out;
  const std::string state = value.text("state");
  if (state == "done") out.state = CallState::done;
  else if (state == "running") out.state = CallState::running;
  else if (state != "absent") return lie("a call whose state is " + value["state"].to_json().substr(0, 100));
  RILLE_TRY(const std::int64_t attempt, number_in(value, "attempt", 0, call_attempts_max));
  if (attempt == 0 && out.state != CallState::absent) return lie("a call that is " + state + " and never started");
  RILLE_TRY(const std::int64_t idle, number_in(value, "idle_attempts", 0, attempt));
  out.attempt = static_cast<int>(attempt);
  out.idle_attempts = static_cast<int>(idle);
  RILLE_TRY(out.log_size_bytes, number_in(value, "log_size_bytes", 0, file_bytes_max));
  out.progress = value["progress"];
  RILLE_CHECK(check_size(out.progress, "progress"));
  out.checkpoint = value["checkpoint"];
  RILLE_CHECK(check_checkpoint(out.checkpoint));
  if (out.state != CallState::done) return out;
  if (!value["outcome"].as_object()) return lie("a call that is done and has no outcome");
  out.result = outcome_from_value(value["outcome"]);
  return out;
}

Result<FileInfo> file_info_from(const Value& value) {
  FileInfo out;
  out.path = value.text("path");
  out.directory = value.boolean("directory");
  RILLE_TRY(out.size_bytes, number_in(value, "size", 0, file_bytes_max));
  out.modified_wall_us = value.integer("modified_wall_us");
  out.mode = static_cast<int>(value.integer("mode", 0644)) & 0777;
  out.sha256 = value.text("sha256");
  if (!out.sha256.empty() && !is_sha256_hex(out.sha256))
    return lie("a file whose sha256 is " + value["sha256"].to_json().substr(0, 100));
  return out;
}

Result<Pulled> pulled_from(const Value& value, const PullRequest& request, std::size_t machines) {
  Pulled out;
  RILLE_TRY(out.size_bytes, number_in(value, "size", -1, file_bytes_max));
  RILLE_TRY(out.moved_bytes, number_in(value, "moved", 0, file_bytes_max));
  out.version = value.text("version"), out.sha256 = value.text("sha256");
  const bool plain =
      std::all_of(out.version.begin(), out.version.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
  const bool fits = out.size_bytes >= 0 && (request.size_bytes < 0 || out.size_bytes == request.size_bytes) && plain &&
                    out.version.size() <= version_bytes_max &&
                    (request.version.empty() || out.version == request.version) && is_sha256_hex(out.sha256) &&
                    (request.sha256.empty() || out.sha256 == request.sha256);
  if (!fits) return lie(fmt::format("a fetched file that is {}", value.to_json().substr(0, 200)));
  RILLE_TRY(out.shared_bytes, number_in(value, "shared", 0, file_bytes_max));
  const Value::Array* liars = value["liars"].as_array();
  for (std::size_t i = 0; liars && i < liars->size() && i < machines; ++i) {
    const double* index = (*liars)[i].as_number();
    if (!index || !(*index >= 0 && *index < static_cast<double>(machines))) return lie("a machine that was not named");
    out.liars.push_back(static_cast<int>(*index));
  }
  return out;
}

Result<ShareNews> share_news_from(const Value& value) {
  ShareNews out;
  if (const Value::Array* addresses = value["addresses"].as_array()) {
    for (std::size_t i = 0; i < addresses->size() && out.addresses.size() < Peers::addresses_max; ++i)
      if (const std::string* one = (*addresses)[i].as_string(); one && net::is_private_address(*one))
        out.addresses.push_back(*one);
    return out;
  }
  RILLE_TRY(out.share, name_in(value, "share"));
  if (!value["part"].is_null()) {
    out.kind = ShareNews::Kind::digest;
    RILLE_TRY(out.part, number_in(value, "part", 0, share_parts_max - 1));
    out.sha256 = value.text("sha256");
    if (!is_sha256_hex(out.sha256)) return lie("a part whose sha256 is " + value["sha256"].to_json().substr(0, 100));
    return out;
  }
  out.kind = ShareNews::Kind::object;
  RILLE_TRY(out.size_bytes, number_in(value, "size", 0, file_bytes_max));
  RILLE_TRY(out.version, name_in(value, "version"));
  const bool quoted = out.version.size() > 2 && out.version.starts_with('"') && out.version.ends_with('"');
  const bool plain =
      std::all_of(out.version.begin(), out.version.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
  if (!quoted || !plain) out.version.clear();
  return out;
}

Result<PullProgress> pull_progress_from(const Value& value) {
  PullProgress out;
  RILLE_TRY(out.done_bytes, number_in(value, "done_bytes", 0, file_bytes_max));
  if (value["total_bytes"].as_number() && value.integer("total_bytes") == -1) return out;  // not known yet
  RILLE_TRY(out.total_bytes, number_in(value, "total_bytes", -1, file_bytes_max));
  return out;
}

Result<Transfer> unpacked_from(const Value& value) {
  for (const char* field : {"files", "size"})
    if (value[field].is_null()) return lie(fmt::format("an unpacked archive without {}", field));
  Transfer out;
  RILLE_TRY(out.files, number_in(value, "files", 0, store::unpacked_entries_max));
  RILLE_TRY(out.size_bytes, number_in(value, "size", 0, file_bytes_max));
  return out;
}

Result<Pushed> pushed_from(const Value& value) {
  Pushed out;
  RILLE_TRY(out.mark, name_in(value, "mark"));
  return out;
}

Result<HeardEvent> event_from(const Value& header, std::string_view body) {
  HeardEvent out;
  const std::string event = header.text("event");
  if (event == "log") {
    out.kind = HeardEvent::Kind::log;
    const auto most = file_bytes_max - static_cast<std::int64_t>(body.size());
    RILLE_TRY(out.offset, number_in(header, "offset", 0, most));
  } else if (event == "metrics") {
    out.kind = HeardEvent::Kind::metrics;
    RILLE_TRY(out.offset, number_in(header, "offset", 0, metrics_bytes_max));
    if (Result<> sound = check_metric_lines(body); !sound) return lie(sound.error().message);
  } else if (event == "notice") {
    out.kind = HeardEvent::Kind::notice;
    RILLE_TRY(out.deadline_wall_us, number_in(header, "deadline_wall_us", 0, latest_wall_us));
  } else if (event == "progress") {
    out.kind = HeardEvent::Kind::progress;
    out.value = header["value"];
    RILLE_CHECK(check_size(out.value, "progress"));
  } else if (event == "checkpoint") {
    out.kind = HeardEvent::Kind::checkpoint;
    out.value = header["value"];
    RILLE_CHECK(check_checkpoint(out.value));
  }
  return out;
}

}  // namespace rille::agent
