// Checkpoints in an object store, for rille.train in a process that has the store's keys. C functions for
// stdlib/train.lua.
#include "runtime/workflow/transfer/stored_checkpoints.hpp"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "bindings/lua/workflow/verb.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::lua {

namespace fs = std::filesystem;

namespace {

constexpr const char* store_option = "rille.train's checkpoint.store";

using StoredPtr = std::shared_ptr<transfer::StoredCheckpoints>;

struct Stored {
  StoredPtr stored;
};

struct SendState {
  std::optional<Result<Value>> outcome;
  std::optional<Completion> waiter;
};
// An upload. It ends with the scope that began it, and with the script.
struct Upload {
  explicit Upload(const CancelToken& scope) : stop(scope) {}
  ~Upload() { stop.cancel(make_error(ErrorKind::cancelled, "the training has ended")); }
  Upload(const Upload&) = delete;
  std::shared_ptr<SendState> state = std::make_shared<SendState>();
  CancelSource stop;
};
struct Sending {
  std::unique_ptr<Upload> upload;
};

// Cancelled with the scope of the calling fiber.
CancelToken token_here(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  const Fiber* fiber = host.current();
  return fiber && host.has_run() ? host.run().cancel_token(fiber->id) : CancelToken();
}

// stored_open(address, name) -> Stored; nil in a rehearsal, which asks no store
Result<int> stored_open(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  const std::string address(check_text(L, 1, store_option));
  std::string name(check_text(L, 2, "the training's name"));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  RILLE_TRY(const objects::ObjectUrl url, objects::parse_object_url(address));
  if (host.options().rehearsal != Rehearsal::no) return 0;
  RILLE_CHECK(host.grants().keys(store_option, objects::provider_of(url)));
  RILLE_TRY(StoredPtr stored, transfer::open_stored_checkpoints(
                                  address, name, host.loop(),
                                  [grants = host.grants()](const std::string& to, const std::string& port) {
                                    return grants.connect(store_option, to, port);
                                  },
                                  random_hex(8), 0));
  RILLE_CHECK(host.grants().connect_to_url(store_option, stored->store().server()));
  push_object(L, Stored{std::move(stored)});
  return 1;
}

struct SendOrder {
  std::string directory;
  std::int64_t step = 0, wait_ms = 0;
  transfer::StoreRetention rule;
};

Async<Value> send_checkpoint(StoredPtr stored, SendOrder order, CancelToken token) {
  if (order.wait_ms > 0) RILLE_CO_CHECK(co_await sleep_for(stored->loop(), order.wait_ms, token));
  transfer::StoredCheckpoint made;
  made.step = order.step;
  made.generation = 1;
  made.directory = fmt::format("checkpoints/step-{:08}", order.step);
  const std::string directory = order.directory;
  const std::function<Result<std::vector<transfer::StoredFile>>()> look = [directory] {
    return transfer::files_here(directory);
  };
  RILLE_CO_TRY(made.files, co_await thread_job(stored->loop(), look));
  const transfer::StoredCheckpoints::Send send = [stored, directory](transfer::StoredFile file, std::string key,
                                                                     CancelToken t) {
    return transfer::send_here(*stored, directory + "/" + file.name, std::move(key), std::move(t));
  };
  RILLE_CO_TRY(const transfer::StoredCheckpoint done, co_await stored->add(made, order.rule, send, token));
  co_return Value().set("step", order.step).set("directory", stored->address(done.folder));
}

void settle(const std::shared_ptr<SendState>& state) {
  if (!state->waiter) return;
  const Completion waiter = *state->waiter;
  state->waiter.reset();
  if (*state->outcome)
    waiter.finish([state](lua_State* l) {
      push_value(l, **state->outcome);
      return 1;
    });
  else waiter.fail(state->outcome->error());
}

Task<void> drive_send(StoredPtr stored, SendOrder order, std::shared_ptr<SendState> state, CancelToken token) {
  Result<Value> sent = co_await send_checkpoint(std::move(stored), std::move(order), std::move(token));
  state->outcome.emplace(std::move(sent));
  settle(state);
}

// stored_send(stored, directory, step, keep, keep_every, wait_ms) -> Sending; returns before anything is sent
Result<int> stored_send(lua_State* L) {
  const StoredPtr stored = check_object<Stored>(L, 1, store_option).stored;
  LuaHost& host = LuaHost::of(L);
  SendOrder order;
  RILLE_TRY(order.directory, host.grants().read(std::string(check_text(L, 2, "the directory")), Grants::Names::tree));
  order.step = check_integer(L, 3, "step");
  order.rule.newest = static_cast<int>(check_integer(L, 4, "keep"));
  order.rule.every = check_integer(L, 5, "keep_every");
  order.wait_ms = check_integer(L, 6, "wait_ms");
  auto upload = std::make_unique<Upload>(token_here(L));
  host.loop().spawn(drive_send(stored, std::move(order), upload->state, upload->stop.token()));
  push_object(L, Sending{std::move(upload)});
  return 1;
}

// stored_poll(sending) -> { step, directory }; nil while it runs; raises if it failed
Result<int> stored_poll(lua_State* L) {
  const SendState& state = *check_object<Sending>(L, 1, "sending").upload->state;
  if (!state.outcome) return 0;
  if (!*state.outcome) return Error(state.outcome->error());
  push_value(L, **state.outcome);
  return 1;
}

int stored_wait(lua_State* L) {
  const auto state = check_object<Sending>(L, 1, "sending").upload->state;
  state->waiter = begin_await(L);
  if (state->outcome) settle(state);
  return end_await(L);
}

// Renames a checkpoint that was fetched into its place among those of `root`.
Result<> move_in(const std::string& from, const std::string& root, std::int64_t step) {
  const std::string to = fmt::format("{}/step-{:08}", root, step);
  RILLE_CHECK(store::remove_tree(to));  // it is damaged: the newest complete one there is older
  std::error_code failed;
  fs::rename(from, to, failed);
  if (failed) return errno_error("cannot rename into place", to, failed.value());
  return store::sync_directory(root);
}

Async<Value> fetch_newest(StoredPtr stored, std::string root, std::int64_t above, Room room, CancelToken token) {
  RILLE_CO_TRY(transfer::Latest latest, co_await stored->read(token));
  if (latest.checkpoints.empty() || latest.checkpoints.front().step <= above) co_return Value();
  RILLE_CO_CHECK(store::make_directories(root));
  // A leftover of a process that was killed here is removed by the next checkpoint's writer, as its own are.
  const std::string temporary = fmt::format("{}/.tmp-fetch-{}", root, random_hex(6));
  const transfer::StoredCheckpoints::Take take = [stored, temporary, room](transfer::StoredCheckpoint from,
                                                                           transfer::StoredFile file, std::string,
                                                                           CancelToken t) {
    const std::string folder = temporary + "/" + from.folder;
    return transfer::take_file(*stored, from, std::move(file), folder, room, std::move(t));
  };
  Result<std::optional<transfer::StoredCheckpoints::Found>> found =
      co_await stored->newest(std::move(latest), take, token);
  Result<> moved = success();
  if (found && *found && (*found)->checkpoint.step > above)
    moved = move_in(temporary + "/" + (*found)->checkpoint.folder, root, (*found)->checkpoint.step);
  RILLE_CO_CHECK(store::remove_tree(temporary));
  if (!found) co_return std::move(found).error();
  RILLE_CO_CHECK(std::move(moved));
  Value::Array skipped;
  for (const Error& fault : (*found)->skipped) skipped.push_back(fault.message + "; " + fault.hint);
  co_return Value().set("step", (*found)->checkpoint.step).set("skipped", std::move(skipped));
}

// stored_fetch(stored, directory, above) -> { step, skipped }: the store's newest checkpoint is now in the directory;
// nil if it is not newer than the step `above`
Result<int> stored_fetch(lua_State* L) {
  const StoredPtr stored = check_object<Stored>(L, 1, store_option).stored;
  LuaHost& host = LuaHost::of(L);
  RILLE_TRY(std::string root, host.grants().write(std::string(check_text(L, 2, "the directory")), Grants::Names::tree));
  Room room;
  if (const auto& disk = host.options().disk) room = [disk](std::int64_t bytes) { return disk->take(bytes); };
  return await(L, fetch_newest(stored, std::move(root), check_integer(L, 3, "step"), std::move(room), token_here(L)),
               push_decoded);
}

}  // namespace

int open_stored_checkpoints(lua_State* L) {
  push_rille_core(L);
  lua_getfield(L, -1, "loaded");
  lua_getfield(L, -1, "rille.native");
  define_class<Stored>(L, {.name = "StoredCheckpoints"});
  define_class<Sending>(L, {.name = "CheckpointSending"});
  set_functions(
      L, {{"stored_open", bind<stored_open>}, {"stored_send", bind<stored_send>}, {"stored_poll", bind<stored_poll>}});
  set_async(L, "stored_wait", bind<stored_wait>);
  set_async(L, "stored_fetch", bind<stored_fetch>);
  lua_settop(L, 1);
  return 0;
}

}  // namespace rille::lua
