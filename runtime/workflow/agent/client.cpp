#include "runtime/workflow/agent/client.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>

#include "runtime/workflow/agent/client_state.hpp"
#include "runtime/workflow/agent/heard.hpp"

namespace rille::agent {

namespace {
Frame hello_frame(const ClientOptions& options) {
  Frame hello;
  hello.type = FrameType::hello;
  hello.header.set("protocol", protocol_version).set("build", options.build).set("token", options.token);
  hello.header.set("generation", options.generation).set("epoch", options.epoch);
  return hello;
}

Value call_header(const std::string& key) {
  Value header;
  header.set("call", key);
  return header;
}
}  // namespace

Result<AgentClient::State::Ticket> AgentClient::State::ask(const char* op, Value header, std::string body,
                                                           const AttachHandlers* handlers) {
  if (broken) return *broken;
  Ticket ticket{next_id++, Future<Result<Reply>>(loop)};
  Frame frame;
  frame.type = FrameType::request;
  frame.header = std::move(header);
  frame.header.set("id", ticket.id).set("op", op);
  frame.body = std::move(body);
  RILLE_CHECK(connection->post(std::move(frame)));
  pending.emplace(ticket.id, Pending{ticket.answer, handlers});
  return ticket;
}

Async<Reply> AgentClient::State::request(Self self, const char* op, Value header, std::string body, CancelToken token) {
  if (token.cancelled()) co_return token.reason();
  RILLE_CO_TRY(Ticket ticket, self->ask(op, std::move(header), std::move(body)));
  auto registration = token.on_cancel([answer = ticket.answer](const Error& why) { answer.set(why); });
  auto reply = co_await ticket.answer;
  self->forget(ticket.id);
  co_return reply;
}

Result<> AgentClient::State::hear(Frame frame) {
  auto it = pending.find(frame.header.integer("id"));
  if (it == pending.end()) return {};  // no operation waits for this response
  if (frame.type == FrameType::response) {
    if (frame.header["error"].as_object()) {
      it->second.answer.set(error_from_value(frame.header["error"]));
    } else {
      Reply reply;
      reply.value = frame.header["value"];
      reply.body = std::move(frame.body);
      it->second.answer.set(std::move(reply));
    }
    return {};
  }
  const AttachHandlers* handlers = it->second.handlers;
  if (!handlers || it->second.answer.is_set()) return {};
  RILLE_TRY(const HeardEvent event, event_from(frame.header, frame.body));
  using Kind = HeardEvent::Kind;
  if (event.kind == Kind::log && handlers->log) handlers->log(frame.body, event.offset);
  if (event.kind == Kind::metrics && handlers->metrics) handlers->metrics(frame.body, event.offset);
  if (event.kind == Kind::progress && handlers->progress) handlers->progress(event.value);
  if (event.kind == Kind::notice && handlers->notice) handlers->notice(event.deadline_wall_us);
  if (event.kind == Kind::checkpoint && handlers->checkpoint) handlers->checkpoint(event.value);
  return {};
}

Result<CallStatus> AgentClient::State::status_of(const Reply& reply) {
  Result<CallStatus> status = call_status_from(reply.value);
  if (!status) connection->refuse(status.error());
  return status;
}

AgentClient::State::Leave::~Leave() {
  state->forget(id);
  if (answered || state->broken) return;
  Frame frame;
  frame.type = FrameType::request;
  frame.header.set("id", state->next_id++).set("op", op).set(field, id);
  state->connection->post(std::move(frame)).ok();
}

void AgentClient::State::fail(Error error) {
  if (broken) return;
  broken = error;
  greeted.set(Result<>(error));
  for (auto& [id, waiting] : std::exchange(pending, {})) waiting.answer.set(error);
  for (auto& waiter : std::exchange(broken_waiters, {})) waiter.set(Result<>(error));
}

Result<> AgentClient::State::take(Frame frame) {
  if (frame.type == FrameType::hello && !greeted.is_set()) {
    RILLE_TRY(info, agent_info_from(frame.header));
    greeted.set(success());
    return {};
  }
  if (greeted.is_set() && (frame.type == FrameType::response || frame.type == FrameType::event))
    return hear(std::move(frame));
  return lie(
      fmt::format("a message of type {} where the agent protocol does not allow it", static_cast<int>(frame.type)));
}

Task<void> AgentClient::State::read(Self self) {
  Error why;
  while (true) {
    auto frame = co_await self->connection->receive();
    Result<> taken = frame ? self->take(std::move(*frame)) : Result<>(frame.error());
    if (taken) continue;
    why = std::move(taken).error();
    self->connection->refuse(why);  // no effect if receive() has closed the connection
    break;
  }
  if (why.kind == ErrorKind::integrity) {
    // The peer speaks, but not as an agent does: another connection would end the same.
    if (why.code.empty()) why.code = broken_protocol;
    why.retryable = false;
    why.resource = self->channel.directory;
    if (const std::string said = self->said(); !said.empty()) why.hint += "; its standard error: " + said;
  } else if (why.kind == ErrorKind::network) {
    // The command's exit status and standard error say more than the stream's error.
    auto wait = [command = self->command](CancelToken t) { return command->wait(t); };
    auto status = co_await with_deadline(self->loop, 500, {}, "the channel's command", wait);
    const std::string said = self->said();
    Error shown = make_error(ErrorKind::network, why.message + (status ? " (its command: " + status->text() + ")" : ""),
                             said.empty() ? why.hint : "its standard error: " + said);
    shown.resource = self->channel.directory;
    why = std::move(shown).with_cause(std::move(why)).with_retry();
  }
  self->fail(std::move(why));
}

std::string AgentClient::State::said() const { return last_words.substr(0, last_words.find_last_not_of('\n') + 1); }

Task<void> AgentClient::State::read_last_words(Self self, std::shared_ptr<Subprocess> command) {
  char block[2048];
  while (true) {
    auto n = co_await command->err()->read(block, sizeof block, self->connection->token());
    if (!n || *n == 0) break;
    self->last_words.append(block, *n);
    if (self->last_words.size() > sizeof block) self->last_words.erase(0, self->last_words.size() - sizeof block);
  }
}

Async<std::unique_ptr<AgentClient>> AgentClient::connect(Loop& loop, ChannelSpec channel, ClientOptions options,
                                                         CancelToken token) {
  if (token.cancelled()) co_return token.reason();
  SubprocessOptions start;
  std::vector<std::string> words = options.agent_argv;
  words.insert(words.end(), {"connect", "--dir", channel.directory});
  start.argv = channel.command(words);
  if (channel.argv_prefix.empty()) start.without = options.withheld;
  start.in = start.out = start.err = SubprocessOptions::Output::stream;
  start.kill_on_drop = true;
  start.detached = true;  // Ctrl-C at the terminal must reach the runner, not the channel's command
  RILLE_CO_TRY(auto command, Subprocess::start(loop, start));
  auto state = std::make_shared<State>(loop);
  state->channel = std::move(channel);
  state->command = std::move(command);
  state->connection = Connection::over(loop, *state->command->out(), *state->command->in(), state->command);
  std::unique_ptr<AgentClient> client(new AgentClient(state));
  loop.spawn(State::read(state));
  loop.spawn(State::read_last_words(state, state->command));
  state->connection->start_heartbeat(options.heartbeat);
  auto registration = token.on_cancel([state](const Error& why) { state->fail(why); });
  state->connection->post(hello_frame(options)).ok();  // if the channel is broken, the wait for the response fails
  RILLE_CO_CHECK(co_await state->greeted);
  co_return std::move(client);
}

AgentClient::~AgentClient() {
  if (!state_) return;
  Error gone = make_error(ErrorKind::cancelled, "the agent's client was closed");
  state_->fail(gone);
  state_->connection->close(std::move(gone));
  state_->command->signal(SIGKILL).ok();
}

const AgentInfo& AgentClient::info() const { return state_->info; }
bool AgentClient::broken() const { return state_->broken.has_value(); }

Async<> AgentClient::wait_broken(CancelToken token) {
  auto wait = [](State::Self self, CancelToken cancel) -> Async<> {
    if (self->broken) co_return *self->broken;
    Future<Result<>> done(self->loop);
    self->broken_waiters.push_back(done);
    auto registration = cancel.on_cancel([done](const Error& why) { done.set(why); });
    co_return co_await done;
  };
  return wait(state_, std::move(token));
}

namespace {
// Sends a request and reads the status of a call from the response.
template <class State>
Async<CallStatus> ask_status(std::shared_ptr<State> state, const char* op, Value header, CancelToken token) {
  RILLE_CO_TRY(Reply reply, co_await State::request(state, op, std::move(header), std::string(), std::move(token)));
  co_return state->status_of(reply);
}

// Sends a request and waits for its response, whose content does not matter.
template <class State>
Async<> ask_done(std::shared_ptr<State> state, const char* op, Value header, CancelToken token) {
  auto reply = co_await State::request(state, op, std::move(header), std::string(), std::move(token));
  if (!reply) co_return std::move(reply).error();
  co_return success();
}

// The secrets' values, read from the environment at each send, so that a changed value takes effect.
Result<Value> values_of_secrets(const Value& spec) {
  Value out{Value::Object{}};
  const Value& names = spec["secrets"].is_null() ? spec["payload"]["secrets"] : spec["secrets"];
  if (!names.as_array()) return out;
  for (const Value& name : *names.as_array()) {
    const std::string* text = name.as_string();
    const char* value = text ? std::getenv(text->c_str()) : nullptr;
    if (!value)
      return make_error(
          ErrorKind::config,
          fmt::format("secrets: the environment variable {} is not set on this machine", text ? *text : name.to_json()),
          fmt::format("export {}=..., and `rille resume`", text ? *text : "NAME"));
    out.set(*text, std::string(value));
  }
  return out;
}

}  // namespace

Async<CallStatus> AgentClient::start(StartRequest request, CancelToken token) {
  RILLE_CO_TRY(Value secrets, values_of_secrets(request.spec));
  Value header = call_header(request.call_key);
  header.set("generation", request.generation).set("epoch", request.epoch).set("spec", std::move(request.spec));
  if (request.after_attempt) header.set("after_attempt", request.after_attempt);
  if (!secrets.as_object()->empty()) header.set("secrets", std::move(secrets));
  co_return co_await ask_status(state_, "start", std::move(header), std::move(token));
}

Async<CallStatus> AgentClient::attach(std::string call_key, std::int64_t log_offset, AttachHandlers handlers,
                                      CancelToken token) {
  auto run = [](State::Self self, Value header, AttachHandlers told, CancelToken cancel) -> Async<CallStatus> {
    if (cancel.cancelled()) co_return cancel.reason();
    RILLE_CO_TRY(State::Ticket ticket, self->ask("attach", std::move(header), std::string(), &told));
    auto registration = cancel.on_cancel([answer = ticket.answer](const Error& why) { answer.set(why); });
    State::Leave leave{self, ticket.id, "detach", "attach"};
    auto reply = co_await ticket.answer;
    leave.answered = !cancel.cancelled();
    if (!reply) co_return std::move(reply).error();
    co_return self->status_of(*reply);
  };
  Value header = call_header(call_key);
  header.set("offset", log_offset);
  if (handlers.metrics) header.set("metrics_offset", handlers.metrics_offset);
  return run(state_, std::move(header), std::move(handlers), std::move(token));
}

Async<CallStatus> AgentClient::status(std::string call_key, CancelToken token) {
  return ask_status(state_, "status", call_header(call_key), std::move(token));
}

Async<> AgentClient::acknowledge(std::string call_key, CancelToken token) {
  return ask_done(state_, "ack", call_header(call_key), std::move(token));
}

Async<> AgentClient::forget(std::vector<std::string> call_keys, std::string reason, CancelToken token) {
  Value::Array keys(call_keys.begin(), call_keys.end());
  Value header;
  header.set("calls", std::move(keys)).set("reason", reason);
  return ask_done(state_, "forget", std::move(header), std::move(token));
}

Async<> AgentClient::preempt(std::string call_key, std::int64_t deadline_wall_us, bool leave, CancelToken token) {
  Value header = call_header(call_key);
  header.set("deadline_wall_us", deadline_wall_us).set("leave", leave);
  return ask_done(state_, "preempt", std::move(header), std::move(token));
}

Async<> AgentClient::cancel(std::string call_key, std::string reason, std::int64_t grace_ms, CancelToken token) {
  Value header = call_header(call_key);
  header.set("reason", reason).set("grace_ms", grace_ms);
  return ask_done(state_, "cancel", std::move(header), std::move(token));
}

Async<Pushed> AgentClient::push(PushRequest request, CancelToken token) {
  auto run = [](State::Self self, Value header, CancelToken cancel) -> Async<Pushed> {
    RILLE_CO_TRY(Reply reply,
                 co_await State::request(self, "push", std::move(header), std::string(), std::move(cancel)));
    co_return pushed_from(reply.value);
  };
  Value::Array headers;
  for (auto& [name, value] : request.to.headers) headers.push_back(Value::Array{name, value});
  Value header;
  header.set("path", request.path).set("offset", request.offset).set("length", request.size_bytes);
  header.set("url", request.to.url).set("headers", std::move(headers));
  return run(state_, std::move(header), std::move(token));
}

Async<Value> AgentClient::describe(CancelToken token) {
  auto run = [](State::Self self, CancelToken cancel) -> Async<Value> {
    RILLE_CO_TRY(Reply reply,
                 co_await State::request(self, "describe", Value::Object{}, std::string(), std::move(cancel)));
    co_return std::move(reply.value);
  };
  return run(state_, std::move(token));
}

Async<> AgentClient::shutdown(CancelToken token) {
  return ask_done(state_, "shutdown", Value::Object{}, std::move(token));
}

}  // namespace rille::agent
