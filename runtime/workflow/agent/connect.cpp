// `rille agent connect`: see daemon.hpp.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "runtime/core/loop/subprocess.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/workflow/agent/daemon.hpp"
#include "runtime/workflow/agent/frame.hpp"

namespace rille::agent {

namespace {

constexpr std::int64_t start_ms_max = 30'000;
constexpr std::int64_t retry_ms = 20, ask_ms = 200;

struct Bridge {
  Loop& loop;
  std::unique_ptr<Stream> in, out, socket;
  CancelSource ended;
  int running = 2;
  Future<Result<>> done{loop};
};

// Copies bytes from one stream to the other. When either side ends, both directions end.
Task<void> pump(Bridge& bridge, Stream& from, Stream& to) {
  std::string block(256 << 10, '\0');
  while (true) {
    auto n = co_await from.read(block.data(), block.size(), bridge.ended.token());
    if (!n || *n == 0) break;
    if (!(co_await to.write(std::string_view(block.data(), *n), bridge.ended.token()))) break;
  }
  bridge.ended.cancel(make_error(ErrorKind::network,
                                 "the channel between this computer and the agent on the instance has ended",
                                 "the runner connects again by itself"));
  if (--bridge.running == 0) bridge.done.set(success());
}

Async<std::string> first_line(Stream& stream) {
  std::string line;
  char block[4096];
  while (line.find('\n') == std::string::npos && line.size() < (64 << 10)) {
    RILLE_CO_TRY(std::size_t n, co_await stream.read(block, sizeof block));
    if (n == 0) break;
    line.append(block, n);
  }
  co_return line.substr(0, line.find('\n'));
}

// Called if D/agent.host exists: then another process starts the agents, because children of this process would end
// with it (as in a Slurm job step). Writes a request file, which the other process removes once it has started an
// agent.
Async<> ask_for_agent(Loop& loop, const ConnectOptions& options) {
  const std::string request = options.directory + "/agent.request";
  if (access(request.c_str(), F_OK) != 0)
    RILLE_CO_CHECK(store::write_file_atomic(request, options.keeper_argv.front() + "\n", 0600));
  co_return co_await sleep_for(loop, ask_ms);
}

// Waits for the keeper process that this process started, so that it leaves no zombie.
Task<void> await_end(std::unique_ptr<Subprocess> agent) { (void)co_await agent->wait(); }

Async<> start_agent(Loop& loop, const ConnectOptions& options) {
  if (access((options.directory + "/agent.host").c_str(), F_OK) == 0) co_return co_await ask_for_agent(loop, options);
  SubprocessOptions start;
  start.argv = options.keeper_argv;
  start.argv.insert(start.argv.end(), {"--dir", options.directory});
  start.env = {{instance_environment, options.directory}};
  start.directory = "/";
  start.detached = true;
  start.out = SubprocessOptions::Output::stream;
  start.err = SubprocessOptions::Output::file;
  start.err_path = options.directory + "/agent.log";
  RILLE_CO_TRY(auto agent, Subprocess::start(loop, start));
  RILLE_CO_TRY(std::string line, co_await first_line(*agent->out()));
  if (line == "ready") {
    loop.spawn(await_end(std::move(agent)));
    co_return success();
  }
  if (line == "taken") co_return co_await sleep_for(loop, retry_ms);  // another agent is starting or ending
  if (auto told = Value::from_json(line); told && (*told)["error"].as_object())
    co_return error_from_value((*told)["error"]);
  RILLE_CO_TRY(ExitStatus status, co_await agent->wait());
  auto log = store::read_file(start.err_path, 1 << 20);
  std::string last = log && log->size() > 1000 ? log->substr(log->size() - 1000) : log ? *log : "";
  co_return make_error(
      ErrorKind::internal, "the agent ended with " + status.text() + " before it was ready",
      last.empty() ? "it printed nothing: release the instance, and rent again" : "its output: " + last);
}

struct Reached {
  std::unique_ptr<Stream> socket;
  std::string first;  // the bytes that were already read from the agent
};

// Connects to the agent's socket and waits for the agent's first bytes. A connected socket does not prove a live agent,
// because the agent may be ending or stopped; a live agent sends a frame at once.
Async<Reached> greeted_by_agent(Loop& loop, std::string socket, std::int64_t patience_ms) {
  Reached out;
  RILLE_CO_TRY(out.socket, co_await Stream::connect_unix(loop, socket));
  out.first.resize(4096);
  auto listen = [&out](CancelToken token) { return out.socket->read(out.first.data(), out.first.size(), token); };
  RILLE_CO_TRY(std::size_t n, co_await with_deadline(loop, patience_ms, {}, "the agent's first word", listen));
  if (n == 0)
    co_return make_error(ErrorKind::network, "the agent on the instance ended while this program connected",
                         "tried again by itself")
        .with_retry();
  out.first.resize(n);
  co_return std::move(out);
}

// Connects to the instance's agent, or starts one. A lock makes sure that two `connect` processes start only one.
Async<Reached> reach_agent(Loop& loop, const ConnectOptions& options) {
  store::Fd directory(open(options.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) {
    Error missing = errno_error("open instance directory", options.directory, errno);
    if (errno == ENOENT)
      missing.kind = ErrorKind::state,
      missing.hint = "the instance has been released, or its ttl has passed: rent another one";
    co_return missing;
  }
  std::string socket = "/proc/self/fd/" + std::to_string(directory.get()) + "/agent.sock";
  std::string lock_path = options.directory + "/agent.start";
  store::Fd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) co_return errno_error("open", lock_path, errno);
  std::int64_t until_ns = loop.clock().monotonic_ns() + start_ms_max * 1'000'000;
  while (true) {
    auto reached = co_await greeted_by_agent(loop, socket, start_ms_max);
    if (reached) co_return std::move(*reached);
    if (loop.clock().monotonic_ns() > until_ns) {
      Error late = make_error(
          ErrorKind::timeout,
          "no agent answers in '" + options.directory + "' after " + format_duration_ms(start_ms_max),
          "agent.log in that folder of the instance says why; if it stays, release the instance, and rent again");
      co_return std::move(late).with_cause(std::move(reached).error()).with_retry();
    }
    if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      // Another `connect` process may have started the agent meanwhile.
      auto again = co_await greeted_by_agent(loop, socket, start_ms_max);
      if (again) co_return std::move(*again);
      RILLE_CO_CHECK(co_await start_agent(loop, options));
      flock(lock.get(), LOCK_UN);
      continue;
    }
    // Another `connect` process is starting the agent, or an ending agent still holds the lock.
    RILLE_CO_CHECK(co_await sleep_for(loop, retry_ms));
  }
}

}  // namespace

Async<int> run_connect(Loop& loop, ConnectOptions options) {
  if (char* real = realpath(options.directory.c_str(), nullptr)) {
    options.directory = real;
    free(real);
  }
  auto reached = co_await reach_agent(loop, options);
  int in = dup(0), out = dup(1);  // copies, so that closing them leaves descriptors 0 and 1 open
  if (in < 0 || out < 0) co_return errno_error("open", "standard input and output", errno);
  Bridge bridge{loop, nullptr, nullptr, nullptr, {}};
  RILLE_CO_TRY(bridge.in, Stream::adopt(loop, in));
  RILLE_CO_TRY(bridge.out, Stream::adopt(loop, out));
  if (!reached) {
    Frame told;
    told.type = FrameType::error;
    told.header.set("error", error_to_value(reached.error()));
    RILLE_CO_TRY(std::string bytes, encode_frame(told));
    RILLE_CO_CHECK(co_await bridge.out->write(bytes));
    co_return 1;
  }
  bridge.socket = std::move(reached->socket);
  RILLE_CO_CHECK(co_await bridge.out->write(reached->first));
  loop.spawn(pump(bridge, *bridge.in, *bridge.socket));
  loop.spawn(pump(bridge, *bridge.socket, *bridge.out));
  RILLE_CO_CHECK(co_await bridge.done);
  co_return 0;
}

}  // namespace rille::agent
