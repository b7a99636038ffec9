// Frames between runner, agent and worker, in any pieces: what is malformed is refused once and for all, what is
// accepted is written as the same frame. What their headers describe is read or refused. Metrics that a program prints.
#include <algorithm>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/agent/call.hpp"
#include "runtime/workflow/agent/frame.hpp"
#include "runtime/workflow/agent/heard.hpp"
#include "runtime/workflow/agent/metric.hpp"
#include "runtime/workflow/agent/paths.hpp"
#include "runtime/workflow/agent/printed_metrics.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
using namespace rille::agent;

namespace {

std::vector<std::string> read_frames(std::string_view stream, std::size_t step, bool& good) {
  std::vector<std::string> out;
  FrameParser parser;
  good = true;
  for (;;) {
    const Result<std::optional<Frame>> next = parser.next();
    if (!next) {
      fuzz_check(next.error().kind == ErrorKind::integrity, "a refusal is an integrity error");
      parser.feed("more");
      fuzz_check(!parser.next().ok(), "a stream that is wrong stays wrong");
      good = false;
      return out;
    }
    if (*next) {
      const Result<std::string> again = encode_frame(**next);
      fuzz_check(again.ok(), "a frame that was read can be written");
      out.push_back(*again);
      continue;
    }
    if (stream.empty()) return out;
    const std::size_t n = std::min(step, stream.size());
    parser.feed(stream.substr(0, n));
    stream.remove_prefix(n);
  }
}

void check_header(const Value& header) {
  (void)outcome_from_value(header["value"]);
  (void)agent_info_from(header);
  (void)event_from(header, std::string(1000, 'x'));
  if (const Result<FileInfo> file = file_info_from(header["value"]))
    fuzz_check(file->size_bytes >= 0 && file->size_bytes <= file_bytes_max, "a file has a size");
  if (const Result<CallStatus> call = call_status_from(header["value"]))
    fuzz_check(call->idle_attempts >= 0 && call->idle_attempts <= call->attempt, "idle attempts are attempts");
  (void)ChannelSpec::from_value(header);
  (void)InstanceFile::from_value(header);
  (void)NoticeSpec::from_value(header);
  const std::string path = header.text("path");
  if (const Result<std::string> whole = inside("/root/of/it", path)) {
    fuzz_check(whole->starts_with("/root/of/it"), "a path stays beneath its root");
    fuzz_check(("/" + path + "/").find("/../") == std::string::npos, "a path climbs nowhere");
    fuzz_check(path.find('\0') == std::string::npos, "a path has no NUL");
  }
}

void check_printed(std::string_view output) {
  PrintedMetrics whole, pieces;
  const std::string lines = whole.add(output, 1);
  std::string same;
  for (std::size_t i = 0; i < output.size(); i += 3) same += pieces.add(output.substr(i, 3), 1);
  fuzz_check(same == lines, "the pieces in which a program's output arrives change nothing");
  fuzz_check(check_metric_lines(lines).ok(), "what a program reports are metrics");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  bool whole_good = false, pieces_good = false;
  const std::vector<std::string> whole = read_frames(stream, size, whole_good);
  fuzz_check(read_frames(stream, 3, pieces_good) == whole && pieces_good == whole_good,
             "the pieces in which a stream arrives change nothing");
  FrameParser parser;
  parser.feed(stream);
  for (Result<std::optional<Frame>> next = parser.next(); next && *next; next = parser.next())
    check_header((*next)->header);
  check_printed(stream);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<Frame> frames = {
      {FrameType::hello, Value().set("protocol", 1).set("build", "x").set("epoch", 3), ""},
      {FrameType::request, Value().set("id", 7).set("op", "put").set("path", "a/b.txt").set("mode", 420), "bytes"},
      {FrameType::response, Value().set("id", 7).set("error", Value().set("kind", "io").set("message", "m")), ""},
      {FrameType::event, Value().set("event", "checkpoint").set("directory", "step-00000005").set("step", 5), ""},
      {FrameType::response, Value().set("value", Value().set("ok", true).set("result", 4)), ""},
      {FrameType::response, Value().set("value", Value().set("state", "running").set("attempt", 2)), ""},
      {FrameType::event, Value().set("event", "log").set("offset", 7), "a line"},
      {FrameType::request,
       Value().set("argv_prefix", Value(Value::Array{"ssh", "h"})).set("directory", "/d").set("id", "x").set("end", 1),
       ""}};
  std::vector<std::string> out;
  for (const Frame& frame : frames) out.push_back(*encode_frame(frame));
  out.push_back(out[0] + out[1] + out[2]);
  out.emplace_back("5 %\rrille.metric loss=2.5 lr=1e-3 step=120\nrille.metric a=-inf\n");
  return out;
}

std::vector<std::string> fuzz_words() {
  return {std::string(4, '\0'),
          std::string("\xff\xff\xff\xff", 4),
          std::string("\0\0\0\1", 4),
          std::string("\5\0\0\0", 4),
          "\"path\":\"../../x\"",
          "\"path\":\"/etc/passwd\"",
          "\"path\":\"a/../../b\"",
          "\"path\":\"a\\u0000b\"",
          "\"directory\":\"x/..\"",
          "\"step\":1e300",
          "\"epoch\":-1",
          "\"expires\":9e18",
          "null",
          "[]",
          "{}",
          "\xff",
          "\"kind\":\"nothing\"",
          "rille.metric ",
          "step=",
          "=nan",
          "\r"};
}
