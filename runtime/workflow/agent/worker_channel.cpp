#include "runtime/workflow/agent/worker_channel.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/core/base/units.hpp"
#include "runtime/workflow/agent/call.hpp"

namespace rille::agent {

namespace {
constexpr std::size_t waiting_metrics_bytes_max = 8 << 20;
}  // namespace

struct WorkerChannel::State : std::enable_shared_from_this<WorkerChannel::State> {
  explicit State(Loop& l) : loop(l), stored(l) {}
  Loop& loop;
  std::string directory;
  CallRecord record;
  Value last_checkpoint;
  std::shared_ptr<Connection> line;
  CancelSource cancelled;
  Preempting preempting;
  Future<Result<>> stored;
  std::optional<Value> waiting_progress;
  bool sending_progress = false, sending_metrics = false;
  std::string waiting_metrics;

  static Task<void> read(std::shared_ptr<State> self) {
    while (true) {
      auto frame = co_await self->line->receive();
      if (!frame) break;
      std::string event = frame->header.text("event");
      if (event == "stored") self->stored.set(success());
      if (event == "preempting")
        self->preempting = {frame->header.integer("deadline_wall_us"), frame->header.boolean("leave")};
      if (event == "cancel") self->cancelled.cancel(error_from_value(frame->header["reason"]));
    }
    Error gone =
        make_error(ErrorKind::state, "the agent that started this worker process has ended",
                   "the run starts the call again by itself, unless the instance was released or its ttl has passed");
    self->cancelled.cancel(gone);
    self->stored.set(Result<>(std::move(gone)));
  }

  static Task<void> send_progress(std::shared_ptr<State> self) {
    self->sending_progress = true;
    while (self->waiting_progress) {
      Value value = std::move(*self->waiting_progress);
      self->waiting_progress.reset();
      Frame frame = event("progress", std::move(value));
      if (!(co_await self->line->send(std::move(frame)))) break;
    }
    self->sending_progress = false;
  }

  static Task<void> send_metrics(std::shared_ptr<State> self) {
    self->sending_metrics = true;
    while (!self->waiting_metrics.empty()) {
      Frame frame = self->take_metrics();
      if (!(co_await self->line->send(std::move(frame)))) break;
    }
    self->sending_metrics = false;
  }

  // The oldest queued lines, as many as fit a frame.
  Frame take_metrics() {
    Frame frame;
    frame.type = FrameType::event;
    frame.header.set("event", "metrics");
    const std::size_t end = waiting_metrics.size() <= event_bytes_max
                                ? waiting_metrics.size()
                                : waiting_metrics.rfind('\n', event_bytes_max) + 1;
    frame.body = waiting_metrics.substr(0, end);
    waiting_metrics.erase(0, end);
    return frame;
  }

  static Frame event(const char* name, Value value) {
    Frame frame;
    frame.type = FrameType::event;
    frame.header.set("event", name).set("value", limited(name, std::move(value)));
    return frame;
  }

  static Value limited(const char* name, Value value) {
    std::size_t size = value.to_json().size();
    if (size <= event_bytes_max) return value;
    Value out;
    out.set("error",
            fmt::format("a {} of {} is over the limit of {} (event_bytes_max)", name,
                        format_size_bytes(static_cast<std::int64_t>(size)), format_size_bytes(event_bytes_max)));
    return out;
  }
};

Result<std::unique_ptr<WorkerChannel>> WorkerChannel::open(Loop& loop, std::string directory, std::string call_key,
                                                           int fd) {
  struct stat st {};
  if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
    return make_error(ErrorKind::state, fmt::format("no agent is connected to file descriptor {}", fd),
                      "do not start a worker by hand: `rille agent` starts workers");
  fcntl(fd, F_SETFD, FD_CLOEXEC);  // programs that the call starts must not inherit the line
  RILLE_TRY(auto state, load(loop, std::move(directory), std::move(call_key)));
  RILLE_TRY(auto stream, Stream::adopt(loop, fd));
  state->line = Connection::over(loop, std::move(stream));
  loop.spawn(State::read(state));
  return std::unique_ptr<WorkerChannel>(new WorkerChannel(std::move(state)));
}

Result<std::unique_ptr<WorkerChannel>> WorkerChannel::open_standard(Loop& loop, std::string directory,
                                                                    std::string call_key) {
  RILLE_TRY(auto state, load(loop, std::move(directory), std::move(call_key)));
  const int in = fcntl(0, F_DUPFD_CLOEXEC, 3), out = fcntl(1, F_DUPFD_CLOEXEC, 3);
  store::Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (in < 0 || out < 0 || dup2(2, 1) < 0 || dup2(null.get(), 0) < 0)
    return errno_error("open", "standard input and output", errno);
  struct Streams {
    std::unique_ptr<Stream> in, out;
  };
  auto both = std::make_shared<Streams>();
  RILLE_TRY(both->in, Stream::adopt(loop, in));
  RILLE_TRY(both->out, Stream::adopt(loop, out));
  state->line = Connection::over(loop, *both->in, *both->out, both);
  loop.spawn(State::read(state));
  return std::unique_ptr<WorkerChannel>(new WorkerChannel(std::move(state)));
}

Result<std::shared_ptr<WorkerChannel::State>> WorkerChannel::load(Loop& loop, std::string directory,
                                                                  std::string call_key) {
  auto state = std::make_shared<State>(loop);
  CallFiles files(directory + "/calls/" + call_id(call_key));
  RILLE_TRY(state->record, files.load());
  state->last_checkpoint = files.events()["checkpoint"];
  state->directory = std::move(directory);
  return state;
}

WorkerChannel::~WorkerChannel() {
  state_->line->close(make_error(ErrorKind::state, "the worker process has closed its connection"));
}

const Value& WorkerChannel::spec() const { return state_->record.spec; }
const std::string& WorkerChannel::call_key() const { return state_->record.key; }
const std::string& WorkerChannel::directory() const { return state_->directory; }
int WorkerChannel::attempt() const { return state_->record.attempt; }
Value WorkerChannel::last_checkpoint() const { return state_->last_checkpoint; }
WorkerChannel::Preempting WorkerChannel::preempting() const { return state_->preempting; }
CancelToken WorkerChannel::cancelled() const { return state_->cancelled.token(); }

void WorkerChannel::progress(Value value) {
  state_->waiting_progress = std::move(value);
  if (!state_->sending_progress) state_->loop.spawn(State::send_progress(state_));
}

void WorkerChannel::metric(std::string_view line) {
  if (state_->waiting_metrics.size() + line.size() > waiting_metrics_bytes_max) return;
  state_->waiting_metrics += line;
  if (!state_->sending_metrics) state_->loop.spawn(State::send_metrics(state_));
}

void WorkerChannel::checkpoint(Value value) {
  state_->line->post(State::event("checkpoint", std::move(value))).ok();  // finish reports a broken line
}

Async<> WorkerChannel::finish(Result<Value> result) {
  auto run = [](std::shared_ptr<State> self, Result<Value> outcome) -> Async<> {
    Value value = outcome_to_value(outcome);
    std::size_t size = value.to_json().size();
    if (size > result_bytes_max)
      value = outcome_to_value(make_error(
          ErrorKind::invalid,
          fmt::format("the result is {}, over the limit of {} (result_bytes_max)",
                      format_size_bytes(static_cast<std::int64_t>(size)), format_size_bytes(result_bytes_max)),
          "write the result to a file and fetch the file with box:get"));
    while (!self->waiting_metrics.empty()) {
      Frame metrics = self->take_metrics();
      RILLE_CO_CHECK(co_await self->line->send(std::move(metrics)));
    }
    Frame frame;
    frame.type = FrameType::event;
    frame.header.set("event", "result").set("outcome", std::move(value));
    RILLE_CO_CHECK(co_await self->line->send(std::move(frame)));
    co_return co_await self->stored;
  };
  return run(state_, std::move(result));
}

}  // namespace rille::agent
