#include "runtime/core/net/credentials/key_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "runtime/core/base/text.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/loop/command.hpp"

namespace rille::net {

namespace {
constexpr std::size_t output_bytes_max = 1 << 20, shown_bytes_max = 400;
constexpr const char* by_hand =
    "run it by hand: it must print JSON and nothing else. Its standard error is not shown "
    "here, because it may contain keys";
}  // namespace

std::string telling_line(const std::string& said) {
  std::string last, error;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    last = line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
    if (lower_case(last).starts_with("error")) error = last;
  }
  const std::string& out = error.empty() ? last : error;
  if (out.size() <= shown_bytes_max) return out;
  std::size_t cut = shown_bytes_max;
  // do not cut within a UTF-8 character
  while (cut > 0 && (static_cast<unsigned char>(out[cut]) & 0xc0) == 0x80) --cut;
  return out.substr(0, cut) + "..";
}

Async<Value> ask_program(Loop& loop, KeyProgram program, CancelToken token) {
  CommandOptions options;
  options.argv = program.argv;
  options.env = program.env;
  options.timeout_ms = program.timeout_ms;
  options.output_bytes_max = output_bytes_max;
  Result<CommandResult> done = co_await run_command(loop, std::move(options), token);
  if (!done && done.error().kind == ErrorKind::timeout && !token.cancelled())
    co_return make_error(ErrorKind::timeout,
                         fmt::format("{} took longer than {}", program.what, format_duration_ms(program.timeout_ms)),
                         "the program has no terminal here: check that it needs no input");
  if (!done) {
    Error e = std::move(done).error();
    e.message = program.what + ": " + e.message;
    co_return e;
  }
  const std::string said = program.known ? telling_line(done->err) : "";
  if (!done->ok())
    co_return make_error(
        ErrorKind::auth,
        fmt::format("{} ended with {}{}{}", program.what, done->status.text(), said.empty() ? "" : ": ", said),
        by_hand);
  if (done->out.find_first_not_of(" \t\r\n") == std::string::npos) co_return Value();
  Result<Value> printed = Value::from_json(done->out);
  if (!printed)  // drop the parser's message, because it may quote a secret
    co_return make_error(ErrorKind::auth, fmt::format("{} printed something other than JSON", program.what),
                         said.empty() ? by_hand : "its standard error: " + said);
  co_return std::move(*printed);
}

}  // namespace rille::net
