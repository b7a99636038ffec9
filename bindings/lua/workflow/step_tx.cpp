// Steps whose effect is a transaction in one of the user's databases (store/transaction.hpp): ctx.db, and the code
// before and after the body. The transaction writes a row with the step's token into that database. After a crash
// between the commit and the journal's row, the next process takes the result from the token's row and does not run
// the body again.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bindings/lua/workflow/step.hpp"
#include "runtime/core/store/blobs.hpp"

namespace rille::lua {

namespace {

struct Database {
  std::shared_ptr<store::Transaction> transaction;
};

// Longest text or blob under limits: a statement can hold some hundred of them before it asks for memory.
int text_bytes_max(const HostOptions& options) {
  constexpr std::int64_t least = 128 << 10, most = 1 << 20, share = 256;
  if (!options.under_limits) return 0;
  const std::int64_t memory = options.memory ? options.memory->limit_bytes() : 0;
  return static_cast<int>(memory > 0 ? std::clamp(memory / share, least, most) : most);
}

store::Transaction::Bounds bounds_of(const LuaHost& host) {
  store::Transaction::Bounds bounds;
  bounds.text_bytes_max = text_bytes_max(host.options());
  bounds.maps_nothing = host.options().under_limits || !host.grants().is_everything();
  if (const auto& disk = host.options().disk) bounds.disk = [disk](std::int64_t bytes) { return disk->written(bytes); };
  return bounds;
}

// tx_begin(ticket) -> whether an earlier process already committed this step, and the result of that commit
Result<int> tx_begin(lua_State* L) {
  Verb v = begin_verb(L, "step", Verbs::anywhere);
  StepObject& t = check_object<StepObject>(L, 1, "step");
  // The REPL records no steps, and each rehearsal has the same ids, so neither may reuse the result of an earlier
  // run.
  bool recorded = v.run.mode() == engine::Mode::durable && !v.run.loop().virtual_time();
  store::Transaction::Record record(recorded ? engine::step_token(t.run, t.ticket.key) : "", t.run, t.ticket.key);
  Async<std::shared_ptr<store::Transaction>> begun =
      store::Transaction::wait_and_begin(v.run.loop(), t.database, std::move(record), bounds_of(LuaHost::of(L)));
  auto keep = [&t](lua_State* l, std::shared_ptr<store::Transaction> transaction) {
    lua_pushboolean(l, transaction->found().has_value());
    if (transaction->found()) push_value(l, *transaction->found());
    else lua_pushnil(l);
    t.transaction = std::move(transaction);
    return 2;
  };
  return await(L, std::move(begun), std::move(keep));
}

// Reads the arguments after the SQL statement: none, one value per ?, or a table with a value per :name.
Result<Value> read_values(lua_State* L) {
  int top = lua_gettop(L);
  if (top < 3) return Value();
  if (top == 3 && lua_istable(L, 3) && !is_null(L, 3)) return to_value(L, 3, "the values");
  Value::Array list;
  for (int i = 3; i <= top; ++i) {
    RILLE_TRY(Value one, to_value(L, i, fmt::format("value {}", i - 2)));
    list.push_back(std::move(one));
  }
  return Value(std::move(list));
}

// Returns a check that ends a statement when the script must end or the statement's memory exceeds the limit; `held`
// counts that memory.
store::Transaction::Ask ask_limits(lua_State* L, MemoryHeld& held) {
  return [L, &held](std::int64_t bytes) -> Result<> {
    // An error of Lua must not pass through SQLite's functions.
    if (lua_gethook(L)) RILLE_CHECK(protect(L, [](lua_State* l) { LuaHost::of(l).check(l); }));
    held = MemoryHeld();
    RILLE_TRY(held, MemoryHeld::take(LuaHost::of(L).options().memory, MemoryUse::Part::results, bytes));
    return {};
  };
}

// db:exec(sql, ...) -> number of rows changed
Result<int> tx_exec(lua_State* L) {
  Database& db = check_object<Database>(L, 1, "database");
  std::string sql(check_text(L, 2, "statement"));
  RILLE_TRY(Value values, read_values(L));
  MemoryHeld held;
  RILLE_TRY(std::int64_t changed, db.transaction->exec(sql, values, ask_limits(L, held)));
  push(L, changed);
  return 1;
}

// db:query(sql, ...) -> list of rows, each a table from column name to value
Result<int> query(lua_State* L) {
  Database& db = check_object<Database>(L, 1, "database");
  std::string sql(check_text(L, 2, "statement"));
  RILLE_TRY(Value values, read_values(L));
  MemoryHeld held;
  RILLE_TRY(Value rows, db.transaction->query(sql, values, ask_limits(L, held)));
  push_value(L, rows);
  return 1;
}

}  // namespace

std::string read_database(lua_State* L, int options, const std::string& step) {
  if (!lua_istable(L, options)) return {};
  bool tx = option_text(L, options, "effect").value_or("") == "tx";
  std::string file = option_text(L, options, "db").value_or("");
  if (tx && file.empty())
    raise_invalid(L, fmt::format("step '{}' has effect = 'tx', but no database", step),
                  "name its file: db = \"my.db\"");
  if (!tx && !file.empty())
    raise_invalid(L, fmt::format("step '{}' has db = '{}', which can be used only with effect = 'tx'", step, file));
  if (!tx) return {};
  LuaHost& host = LuaHost::of(L);
  if (host.has_run() && host.run().mode() == engine::Mode::ephemeral)
    raise(L, make_error(ErrorKind::state,
                        fmt::format("step '{}' has effect = 'tx', which cannot be used inside box:call", step),
                        "run the step in the workflow, with the result of the call"));
  std::error_code ec;
  std::filesystem::path full = file;
  if (full.is_relative() && !host.options().script_directory.empty())
    full = std::filesystem::path(host.options().script_directory) / full;
  const std::string path = std::filesystem::absolute(full, ec).lexically_normal().string();
  value_or_raise(L, host.grants().read(path));
  value_or_raise(L, host.grants().write(path));
  return path;
}

void push_database(lua_State* L, const StepObject& step) {
  if (!step.transaction)
    raise(L, step.database.empty()
                 ? make_error(ErrorKind::invalid, "this step has no database",
                              "give it one: { effect = \"tx\", db = \"my.db\" }")
                 : make_error(ErrorKind::state, fmt::format("the transaction of step '{}' is over", step.name),
                              "use `ctx.db` only inside the body of its step"));
  push_object(L, Database{step.transaction});
}

Result<Value> end_transaction(StepObject& step, Result<Value> body, std::int64_t at_us) {
  std::shared_ptr<store::Transaction> transaction = std::exchange(step.transaction, nullptr);
  if (!body || transaction->found() || step.rehearsed) {
    transaction->roll_back();
    return body;
  }
  if (std::size_t size = body->to_json().size(); size > store::inline_bytes_max) {
    transaction->roll_back();
    return make_error(ErrorKind::invalid,
                      fmt::format("the result of step '{}' has {} bytes; with effect = 'tx' at most {} are kept",
                                  step.name, size, store::inline_bytes_max),
                      "store the large result in the database itself");
  }
  RILLE_CHECK(transaction->commit(*body, at_us));
  return body;
}

void add_tx_functions(lua_State* L) {
  define_class<Database>(L, {.name = "Database", .methods = {{"exec", bind<tx_exec>}, {"query", bind<query>}}});
  set_async(L, "tx_begin", bind<tx_begin>);
}

}  // namespace rille::lua
