#include "runtime/core/loop/command.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/core/base/error.hpp"

namespace rille {

namespace {

struct RunningCommand {
  RunningCommand(Loop& loop) : done(loop) {}
  CommandOptions options;
  std::unique_ptr<Subprocess> process;
  std::string out, err;
  int open = 0;  // how many of the three streams are still open
  Future<bool> done;
};

void closed(RunningCommand& s) {
  if (--s.open == 0) s.done.set(true);
}

Task<void> listen(std::shared_ptr<RunningCommand> s, Stream* from, std::string& into, CancelToken token) {
  std::string block(64 << 10, '\0');
  while (true) {
    const auto n = co_await from->read(block.data(), block.size(), token);
    if (!n || *n == 0) break;
    into.append(block, 0,
                std::min(*n, s->options.output_bytes_max - std::min(into.size(), s->options.output_bytes_max)));
  }
  closed(*s);
}

// A write error is not reported, since a program may stop reading early: its exit status tells whether that matters.
Task<void> feed(std::shared_ptr<RunningCommand> s, int file, CancelToken token) {
  std::string block(256 << 10, '\0');
  std::int64_t sent = 0;
  bool alive = s->options.input.empty() || co_await s->process->in()->write(s->options.input, token);
  while (alive && file >= 0) {
    const ssize_t n = read(file, block.data(), block.size());
    if (n <= 0) break;
    alive = bool(co_await s->process->in()->write(std::string_view(block.data(), static_cast<std::size_t>(n)), token));
    sent += n;
    if (s->options.progress) s->options.progress(sent);
  }
  if (file >= 0) close(file);
  s->process->close_in();
  closed(*s);
}

Async<CommandResult> run(Loop& loop, std::shared_ptr<RunningCommand> s, CancelToken token) {
  int file = -1;
  if (!s->options.input_file.empty()) {
    file = open(s->options.input_file.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) co_return errno_error("read", s->options.input_file, errno);
  }
  SubprocessOptions start;
  start.argv = s->options.argv;
  start.env = s->options.env;
  start.in = start.out = start.err = SubprocessOptions::Output::stream;
  start.kill_on_drop = true;
  start.detached = true;  // in a session of its own, so that Ctrl-C at the runner's terminal does not reach the program
  auto process = Subprocess::start(loop, start);
  if (!process && file >= 0) close(file);
  if (!process) co_return std::move(process).error();
  s->process = std::move(*process);
  s->open = 3;
  // The output streams end when the program ends, unless background processes that it started hold them open.
  CancelSource ended(token);
  loop.spawn(listen(s, s->process->out(), s->out, ended.token()));
  loop.spawn(listen(s, s->process->err(), s->err, ended.token()));
  loop.spawn(feed(s, file, ended.token()));
  CommandResult result;
  auto status = co_await s->process->wait(token);
  if (status) {
    Timer grace(loop, 1'000, [&ended] {
      ended.cancel(make_error(ErrorKind::cancelled, "the program has ended",
                              "no action is needed: the output that was read is kept"));
    });
    if (s->open > 0) co_await s->done;
    result.status = *status;
  } else {
    s->process->signal(SIGKILL).ok();
    ended.cancel(status.error());
    if (s->open > 0) co_await s->done;
    co_return std::move(status).error();
  }
  result.out = std::move(s->out);
  result.err = std::move(s->err);
  co_return result;
}

}  // namespace

std::string CommandResult::last_words() const {
  std::string text = err.find_first_not_of(" \r\n\t") == std::string::npos ? out : err;
  while (!text.empty() && std::strchr(" \r\n\t", text.back())) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

Async<CommandResult> run_command(Loop& loop, CommandOptions options, CancelToken token) {
  if (token.cancelled()) co_return token.reason();
  const auto state = std::make_shared<RunningCommand>(loop);
  state->options = std::move(options);
  const std::string name = state->options.argv.empty() ? "a command" : "'" + state->options.argv[0] + "'";
  if (state->options.timeout_ms <= 0) co_return co_await run(loop, state, token);
  const std::function<Async<CommandResult>(CancelToken)> timed = [&loop, state](CancelToken t) {
    return run(loop, state, t);
  };
  co_return co_await with_deadline(loop, state->options.timeout_ms, token, name, timed);
}

}  // namespace rille
