#include "bindings/host/host.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "bindings/host/keys.hpp"
#include "bindings/host/real_path.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/engine/run.hpp"

namespace rille::host {

namespace {

constexpr std::size_t source_bytes_max = 16 << 20;

// Whether one of the first lines is the comment `-- rille: jit`.
bool asks_for_jit(std::string_view source) {
  for (int line = 0; line < 5 && !source.empty(); ++line) {
    std::size_t end = source.find('\n');
    std::string_view text = source.substr(0, end);
    if (text.starts_with("--") && text.find("rille: jit") != std::string_view::npos) return true;
    if (end == std::string_view::npos) break;
    source.remove_prefix(end + 1);
  }
  return false;
}

Error quota_error(const char* limit, std::string message, const char* hint) {
  Error e = make_error(ErrorKind::quota, std::move(message), hint);
  e.code = limit;
  return e;
}

}  // namespace

Result<std::string> read_source(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return errno_error("open", path, errno);
  std::string text;
  constexpr std::size_t piece_bytes = 64 << 10;
  while (in && text.size() <= source_bytes_max) {
    const std::size_t size = text.size();
    text.resize(size + piece_bytes);
    errno = 0;
    in.read(text.data() + size, piece_bytes);
    text.resize(size + static_cast<std::size_t>(in.gcount()));
    if (in.bad()) return errno_error("read", path, errno ? errno : EIO);
  }
  if (text.size() > source_bytes_max)
    return make_error(ErrorKind::invalid, fmt::format("'{}' is larger than 16 MB, the limit for a script", path));
  return text;
}

LuaHost::LuaHost(Loop& loop, HostOptions options) : loop_(loop), options_(std::move(options)) {
  if (!options_.spent) options_.spent = std::make_shared<Spending>();
  work_ = make_work();
}

Result<std::unique_ptr<LuaHost>> LuaHost::create(Loop& loop, HostOptions options) {
  std::unique_ptr<LuaHost> host(new LuaHost(loop, std::move(options)));
  RILLE_TRY(host->state_,
            LuaState::create(host->options_.memory_limit_bytes, host->options_.allocator, host->options_.memory));
  host->state_->owner = host.get();
  host->bell_ = std::make_unique<Bell>(host->lua(), &LuaHost::hook);
  host->self_ = std::make_shared<LuaHost*>(host.get());
  const HostOptions& o = host->options_;
  if (o.limits.timed()) luaJIT_setmode(host->lua(), 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  RILLE_CHECK(host->open_libraries());
  if (o.limits.timed())
    host->clock_ = std::make_unique<LimitClock>(o.limits, o.spent, [h = host.get()] { h->bell_->ring(); });
  return host;
}

LuaHost::~LuaHost() { end_work(); }

bool LuaHost::close_some() {
  end_work();
  return state_->free_some();
}

void LuaHost::end_work() {
  if (std::exchange(ended_, true)) return;
  // Closing the Lua state waits for the devices. A run that ended well may have left work with effects (a kernel that
  // prints), which is then completed; under a time limit that work is dropped.
  if (dropped_ || !fibers_.empty() || options_.limits.timed())
    drop_work(make_error(ErrorKind::cancelled, "the run has ended"));
  clock_.reset();
  alarm_.reset();
  turn_watch_.reset();
  paused_.reset();
  options_.spent->fibers -= spawned_;
  if (self_) *self_ = nullptr;  // so that later completions have no effect
  while (drivers_.after != &drivers_) {
    detail::Driver::Node* n = drivers_.after;
    n->unlink();
    n->handle.destroy();
  }
  fibers_.clear();
}

void LuaHost::bind_run(engine::Run& run) {
  run_ = &run;
  bind(run, run);
}

void LuaHost::grant(Grants grants) {
  options_.grants = std::move(grants);
  if (control_ && options_.grants.names_home()) options_.grants.set_home(control_->home());
}

std::function<Result<>(const std::string&, const std::string&)> LuaHost::may_connect() const {
  if (options_.grants.is_everything()) return nullptr;
  return [grants = options_.grants](const std::string& host, const std::string& port) {
    return grants.connect("staging from a server", host, port);
  };
}

Result<std::string> LuaHost::code_path(const std::string& path) const {
  RILLE_CHECK(check_path(path));
  std::filesystem::path full = path;
  if (full.is_relative() && !options_.script_directory.empty())
    full = std::filesystem::path(options_.script_directory) / path;
  return options_.grants.read_code(full.string(), options_.script_directory);
}

Fiber* LuaHost::find(FiberId id) {
  auto it = fibers_.find(id);
  return it == fibers_.end() ? nullptr : it->second.get();
}

Result<> LuaHost::print(std::string_view text) {
  if (!control_ || control_->replaying()) return {};  // a resumed script prints only what is new
  const std::int64_t most = options_.limits.output_bytes;
  std::int64_t& printed = options_.spent->output_bytes;
  if (most > 0 && printed + static_cast<std::int64_t>(text.size()) > most)
    return quota_error("output_bytes", fmt::format("the run printed more than {}", format_size_bytes(most)),
                       "print less, or raise the limit output_bytes");
  printed += static_cast<std::int64_t>(text.size());
  if (control_->hooks().print) control_->hooks().print(text);
  return {};
}

// --- loading code

Result<> LuaHost::compile(lua_State* L, std::string_view source, const std::string& chunk_name, bool ours) {
  std::string text(source);
  if (text.starts_with("#")) text.insert(0, "--");  // turn a first line with #! into a comment
  if (luaL_loadbufferx(L, text.data(), text.size(), chunk_name.c_str(), "t") != 0) {
    Error e = to_error(L, -1);
    lua_pop(L, 1);
    e.code = "syntax";
    if (e.kind == ErrorKind::invalid && e.message.find("attempt to load") != std::string::npos)
      e.hint = "only source text can be loaded, not bytecode";
    return e;
  }
  get_registry(L, &key_env);
  lua_setfenv(L, -2);
  const bool on_request = options_.jit == Jit::on_request && (ours || asks_for_jit(source));
  const bool jit = !options_.limits.timed() && (options_.jit == Jit::always || on_request);
  luaJIT_setmode(L, -1, LUAJIT_MODE_ALLFUNC | (jit ? LUAJIT_MODE_ON : LUAJIT_MODE_OFF));
  if (!ours && chunks_.size() < 10'000) {
    Chunk chunk;
    lua_pushvalue(L, -1);
    chunk.function = luaL_ref(L, LUA_REGISTRYINDEX);
    push(L, text);  // where the memory limit counts it
    chunk.source = luaL_ref(L, LUA_REGISTRYINDEX);
    if (auto old = chunks_.find(chunk_name); old != chunks_.end())
      for (const int ref : {old->second.function, old->second.source}) luaL_unref(L, LUA_REGISTRYINDEX, ref);
    chunks_.insert_or_assign(chunk_name, chunk);
  }
  return {};
}

std::string_view LuaHost::source_of(const Chunk& chunk) const {
  lua_rawgeti(lua(), LUA_REGISTRYINDEX, chunk.source);
  std::size_t size = 0;
  const char* text = lua_tolstring(lua(), -1, &size);
  lua_pop(lua(), 1);
  return {text, size};
}

Result<FunctionRef> LuaHost::load(const std::string& name, const std::string& source) {
  Result<> compiled;
  FunctionRef ref = 0;
  RILLE_CHECK(protect(lua(), [&](lua_State* L) {
    compiled = compile(L, source, name.starts_with("=") ? name : "@" + name, false);
    if (compiled) ref = keep_function(L, -1);
    lua_settop(L, 0);
  }));
  if (!compiled) return std::move(compiled).error();
  return ref;
}

Result<FunctionRef> LuaHost::load_file(const std::string& path) {
  std::filesystem::path p(path);
  if (options_.script_directory.empty())
    options_.script_directory = p.parent_path().empty() ? "." : p.parent_path().string();
  auto load_it = [&path] { return read_source(path); };
  std::string name = p.filename().string();
  Result<std::string> source = control_ ? control_->pinned(name, load_it) : load_it();
  if (!source) {
    Error e = std::move(source).error();
    if (e.hint.empty()) e.hint = "check the path of the script";
    return e;
  }
  return load(name, *source);
}

FunctionRef LuaHost::keep_function(lua_State* L, int index) {
  index = absolute(L, index);
  get_registry(L, &key_functions);
  lua_pushvalue(L, index);
  int ref = luaL_ref(L, -2);
  lua_pop(L, 1);
  return static_cast<FunctionRef>(ref);
}

// --- fibers

void LuaHost::start(FiberId id, FunctionRef function, const Value& argument) {
  if (gave_way_) return after_way_.push_back([this, id, function, argument] { start(id, function, argument); });
  if (over_) return refuse_start(id, function);
  auto owned = std::make_unique<Fiber>();
  Fiber& f = *owned;
  f.id = id;
  f.function = function;
  f.random.reseed(run_fibers_->seed(id));
  if (auto node = unborn_.extract(id)) f.budget = std::move(node.mapped());
  fibers_.insert_or_assign(id, std::move(owned));
  int values = 0;
  Result<> ready = protect(lua(), [&](lua_State* L) {
    f.L = lua_newthread(L);
    get_registry(L, &key_parents);
    lua_pushvalue(L, -2);
    lua_pushboolean(L, 0);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    f.anchor = luaL_ref(L, LUA_REGISTRYINDEX);
    get_registry(L, &key_run_fiber);
    get_registry(L, &key_functions);
    lua_rawgeti(L, -1, static_cast<int>(function));
    luaL_unref(L, -2, static_cast<int>(function));
    lua_remove(L, -2);
    values = 1;
    if (!argument.is_null()) {
      push_value(L, argument);
      values = 2;
    }
    lua_xmove(L, f.L, values + 1);
  });
  if (!ready) {
    fibers_.erase(id);
    run_fibers_->fiber_done(id, std::move(ready).error());
    return;
  }
  if (id == 1) {
    std::int64_t& wall = options_.spent->wall_due_ns;
    if (options_.limits.wall_ms > 0 && wall == Watchdog::never)
      wall = system_clock().monotonic_ns() + options_.limits.wall_ms * 1'000'000;
    look_later(control_->look_at_clock());
  }
  resume(f, values);
}

// A limit of time is exceeded: fibers that have not begun never do, for there may be many.
void LuaHost::refuse_start(FiberId id, FunctionRef function) {
  get_registry(lua(), &key_functions);
  luaL_unref(lua(), -1, static_cast<int>(function));
  lua_pop(lua(), 1);
  if (id != 1 && spawned_ > 0) --spawned_, --options_.spent->fibers;
  run_fibers_->fiber_done(id, *over_);
}

// Whether code of the script is to run when the waiting fiber is unwound: its defers, or the end of a step.
bool LuaHost::has_cleanup(const Fiber& f) const {
  if (!f.step.empty() || f.plain.runs) return true;
  lua_State* L = lua();
  const int top = lua_gettop(L);
  get_registry(L, &key_data);
  lua_rawgeti(L, -1, static_cast<int>(f.id));
  auto enter = [&](const char* field) {  // replaces the table at the top by its field
    if (!lua_istable(L, -1)) return false;
    lua_pushstring(L, field);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    return lua_istable(L, -1);
  };
  bool found = false;
  for (bool scope = enter("scope"); scope && !found; scope = enter("parent")) {
    lua_pushvalue(L, -1);
    found = enter("defers") && lua_objlen(L, -1) > 0;
    lua_pop(L, 1);
  }
  lua_settop(L, top);
  return found;
}

// After a limit of time, a spawned fiber that waits ends without being resumed if no code of the script could run
// anyway: the grace is spent, or there is no cleanup. Unwinding thousands of fibers takes longer than the grace.
bool LuaHost::give_up(Fiber& f) {
  const std::shared_ptr<Budget> of = f.budget;
  if (budget_ && budget_ != of.get()) return false;  // another call's code runs
  const WithBudget limits(*this, budget_ ? nullptr : of.get());
  if (!over_ || f.id == 1 || (of && of->root == f.id)) return false;
  if (!(clock_ && clock_->grace_spent()) && has_cleanup(f)) return false;
  const FiberId id = f.id;
  lua_State* L = lua();
  luaL_unref(L, LUA_REGISTRYINDEX, f.anchor);
  get_registry(L, &key_data);
  lua_pushnil(L);
  lua_rawseti(L, -2, static_cast<int>(id));
  lua_pop(L, 1);
  dismissed_.erase(id);
  if (spawned_ > 0) --spawned_, --options_.spent->fibers;
  const Error why = *over_;
  fibers_.erase(id);
  run_fibers_->fiber_done(id, why);
  return true;
}

void LuaHost::resume(Fiber& f, int values) {
  const std::shared_ptr<Budget> of = f.budget;  // the fiber may end
  const WithBudget limits(*this, of.get());
  Fiber* outer = std::exchange(current_, &f);
  raised_.message.clear();  // the next error has its own traceback
  arm_resumed(f, clock_ && clock_->begin());
  f.plain.waits = false;
  run_lua(f, values, outer);
}

void LuaHost::resume_later(FiberId id, int values) {
  auto wake = [weak = std::weak_ptr(self_), id, values] {
    auto pointer = weak.lock();
    if (!pointer || !*pointer) return;
    LuaHost& host = **pointer;
    auto go_on = [&host, id, values] {
      Fiber* f = host.find(id);
      if (f && !host.give_up(*f)) host.resume(*f, values);
    };
    if (host.gave_way_ || !host.after_way_.empty()) return host.after_way_.push_back(go_on);
    go_on();
  };
  loop_.post(std::move(wake));
}

void LuaHost::run_lua(Fiber& f, int values, Fiber* outer) {
  if (options_.turn && !outer) watch_turn();
  std::optional<Bell::Here> here(*bell_);
  int status = lua_resume(f.L, values);
  here.reset();
  if (!outer) turn_ends();
  if (clock_ && status == LUA_YIELD) clock_->end(gives_way_);
  if (gives_way_ && status == LUA_YIELD) {
    gave_way_ = true;
    run_fibers_->hold_fibers();
    return options_.turn->later(self_);
  }
  if (gives_way_) set_gives_way(false);
  if (status == LUA_YIELD) lua_settop(f.L, 0);
  else end_fiber(f, status);
  current_ = outer;
}

// Passes on the fiber's result: the main fiber's result becomes data for the journal; a child fiber's result stays in
// Lua, in the fiber's handle.
void LuaHost::end_fiber(Fiber& f, int status) {
  FiberId id = f.id;
  lua_State* co = f.L;
  Result<Value> result = Value();
  std::optional<Bell::Here> here(*bell_);  // a large result takes long to encode
  Result<> read = protect(lua(), [&](lua_State* L) {
    lua_checkstack(co, 2);
    if (status != 0) {
      lua_xmove(co, L, 1);
      Error e = caught_error(L, 1);
      if (e.traceback.empty()) e.traceback = traceback(co, 0, false);
      result = std::move(e);
    } else if (id == 1 && lua_gettop(co) > 0) {
      int values = lua_gettop(co);
      lua_settop(co, 1);
      lua_xmove(co, L, 1);
      result = to_value(L, 1, "the result");
      if (values > 1)
        result = make_error(ErrorKind::invalid,
                            fmt::format("the script returns {} values, but the result of a run is one value", values),
                            "return one table: return { a, b }; or raise an error: rille.error { .. }");
    }
    lua_settop(L, 0);
    luaL_unref(L, LUA_REGISTRYINDEX, f.anchor);
    get_registry(L, &key_data);
    lua_pushnil(L);
    lua_rawseti(L, -2, static_cast<int>(id));
  });
  here.reset();
  if (clock_) clock_->end(false);
  if (!read) result = std::move(read).error();
  if (dismissed_.erase(id) && !result && result.error().kind == ErrorKind::cancelled) result = Value();
  current_ = nullptr;
  if (!result) arm(0);
  const bool of_host = id == 1 || (f.budget && f.budget->root == id);  // not spawned by the script
  if (!of_host && spawned_ > 0) --spawned_, --options_.spent->fibers;
  fibers_.erase(id);
  run_fibers_->fiber_done(id, std::move(result));
}

void LuaHost::cancel(FiberId id, const Error& reason) {
  Fiber* f = find(id);
  if (!f || !f->waiting || f->engine_wait) return;
  completion(*f).fail(reason);
}

Completion LuaHost::completion(Fiber& fiber) {
  Completion c;
  c.host_ = self_;
  c.loop_ = &loop_;
  c.fiber_ = fiber.id;
  c.suspension_ = fiber.suspension;
  return c;
}

void LuaHost::dismiss(FiberId child) { dismissed_.insert(child); }

Result<> LuaHost::may_spawn() const {
  if (current_ && current_->cannot_wait)
    return make_error(ErrorKind::state,
                      "a function that the host program calls with rille_script_call starts no fibers",
                      "call it with rille_script_begin");
  const std::int64_t most = options_.limits.fibers_max;
  if (most > 0 && options_.spent->fibers >= most)
    return quota_error("fibers_max", fmt::format("{} fibers are running, the limit fibers_max", most),
                       "use rille.map with a limit, or raise fibers_max");
  return {};
}

// Does the work of Completion::finish without a protected call, because pushing a boolean needs no memory.
void LuaHost::plain_done(FiberId id, const Error* failure) {
  Fiber* f = find(id);
  if (!f || !f->waiting || !f->plain.waits) return;
  if (failure || current_ || !lua_checkstack(f->L, 1)) {
    Completion done = completion(*f);
    return failure ? done.fail(*failure) : done.finish([](lua_State*) { return 0; });
  }
  f->waiting = false;
  lua_pushboolean(f->L, 1);
  resume(*f, 1);
}

std::string LuaHost::where(FiberId id) const {
  auto it = fibers_.find(id);
  if (it == fibers_.end()) return "?";
  const Fiber& f = *it->second;
  return script_position(current_ != &f && f.awaiting ? f.awaiting : f.L);
}

// --- work of devices

std::shared_ptr<Work> LuaHost::make_work() {
  std::erase_if(works_, [](const auto& weak) { return weak.expired(); });
  auto work = std::make_shared<Work>();
  work->set_promptly(options_.limits.timed());
  works_.push_back(work);
  return work;
}

void LuaHost::drop_work(const Error& reason) {
  dropped_ = true;
  for (const auto& weak : works_)
    if (const auto work = weak.lock()) work->end(reason);
}

void LuaHost::work_is_over(const Work* work, const Error& why) {
  if (work == work_.get()) return time_is_over(why);
  for (const auto& [id, f] : fibers_)
    if (f->budget && f->budget->work.get() == work && f->budget->root) return call_is_over(*f->budget, why);
}

}  // namespace rille::host
