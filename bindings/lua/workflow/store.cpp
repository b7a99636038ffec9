// rille.store(address): an object store. Its methods are durable: what they returned is journaled. In a step's body
// they are a part of the step, which is recorded as a whole.
#include <fmt/format.h>

#include <cmath>

#include "bindings/lua/workflow/verb.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/store/objects/url.hpp"
#include "runtime/workflow/transfer/store_files.hpp"

namespace rille::lua {

namespace {

constexpr std::int64_t got_text_bytes_max = 16 << 20;  // of a get that returns a text, which the journal keeps
constexpr double rows_usual = 10'000, rows_max = 1'000'000;

// What the calls of one store share. A call that runs keeps it.
struct Bucket {
  objects::ObjectUrl url;
  std::string prefix;                           // of all keys; ends in "/" or is empty
  Grants grants;                                // as of the last call
  std::unique_ptr<objects::ObjectStore> store;  // once a call has opened it
};
using BucketPtr = std::shared_ptr<Bucket>;

struct StoreObject {
  BucketPtr bucket;
};

// One call: where it stands in the script, its key, and what it does unless the journal knows.
struct StoreCall {
  Verb verb;
  std::string what;  // "store:get"
  BucketPtr bucket;
  std::string key;  // with the prefix
  Value sim;
  Value identity{Value::Object{}};
};

Result<> open_bucket(Bucket& bucket, Loop& loop) {
  if (bucket.store) return success();
  RILLE_TRY(bucket.store,
            transfer::open_users_store(bucket.url, loop, [&bucket](const std::string& host, const std::string& port) {
              return bucket.grants.connect("rille.store", host, port);
            }));
  return success();
}

Result<StoreCall> begin_call(lua_State* L, const char* name, int key_index, int options_index) {
  const std::string what = std::string("store:") + name;
  StoreObject& object = check_object<StoreObject>(L, 1, what.c_str());
  const Fiber* fiber = LuaHost::of(L).current();
  const Verbs kind = fiber && !fiber->step.empty() ? Verbs::anywhere : Verbs::durable;
  StoreCall call{begin_verb(L, what.c_str(), kind), what, object.bucket, "", {}};
  const bool lists = lua_isnoneornil(L, key_index) && std::string_view(name) == "list";
  call.key = call.bucket->prefix;
  if (!lists) call.key += check_text(L, key_index, (what + ": the key").c_str());
  if (std::string_view(name) != "list") RILLE_CHECK(objects::check_key(call.key));
  RILLE_TRY(call.sim, read_sim(L, options_index, what, false));
  call.bucket->grants = call.verb.host.grants();
  // An address that cannot be opened fails below, unless the journal knows what was.
  (void)open_bucket(*call.bucket, call.verb.run.loop());
  RILLE_CHECK(may_ask_store(call.bucket->grants, what, call.bucket->url, call.bucket->store.get()));
  call.identity.set("call", name).set("url", call.bucket->url.root()).set("key", call.key);
  return call;
}

// In a rehearsal, the declared result takes the place of the call's. nullopt: the call has to run.
Result<std::optional<Value>> rehearsed_result(const StoreCall& call, Value usual) {
  const Rehearsal kind = call.verb.host.options().rehearsal;
  if (kind == Rehearsal::no) return std::optional<Value>();
  if (!call.sim.is_null()) return std::optional<Value>(call.sim["result"]);
  if (kind == Rehearsal::plan || !usual.is_null()) return std::optional<Value>(std::move(usual));
  return make_error(ErrorKind::state, fmt::format("{} '{}': a simulation does not ask stores", call.what, call.key),
                    "give the simulation a result: sim = { duration = \"1m\", result = .. }");
}

using AskStore = std::function<Async<Value>(objects::ObjectStore&, CancelToken)>;

// Holds what `live` refers to until it is done.
Async<Value> ask_in_step(std::function<Async<Value>(CancelToken)> live, CancelToken token) {
  co_return co_await live(std::move(token));
}

// Journals the call, unless it is in a step's body, and pushes its result. `usual`: its result in a rehearsal that
// declares none; null: none is usual.
Result<int> run_call(lua_State* L, StoreCall call, Value usual, AskStore ask,
                     int (*push)(lua_State*, Value) = push_decoded) {
  RILLE_TRY(const std::optional<Value> rehearsed, rehearsed_result(call, std::move(usual)));
  Loop& loop = call.verb.run.loop();
  std::function<Async<Value>(CancelToken)> live = [&loop, rehearsed, ask = std::move(ask), bucket = call.bucket,
                                                   lasts_s =
                                                       call.sim.number("duration")](CancelToken token) -> Async<Value> {
    if (rehearsed) {
      RILLE_CO_CHECK(co_await sleep_for(loop, static_cast<std::int64_t>(lasts_s * 1000), token));
      co_return *rehearsed;
    }
    const BucketPtr held = bucket;
    RILLE_CO_CHECK(open_bucket(*held, loop));
    co_return co_await ask(*held->store, std::move(token));
  };
  if (!call.verb.fiber.step.empty())
    return await(L, ask_in_step(std::move(live), call.verb.run.cancel_token(call.verb.id)), push);
  engine::Operation op("store", call.what.substr(6) + " " + call.bucket->url.root() + call.key,
                       std::move(call.identity), call.verb.source);
  return await(L, call.verb.run.recorded(call.verb.id, std::move(op), std::move(live)), push, Waits::engine);
}

Value object_value(const objects::ObjectInfo& info, std::size_t prefix_bytes) {
  Value out;
  out.set("key", info.key.substr(std::min(prefix_bytes, info.key.size()))).set("size", info.size_bytes);
  out.set("version", info.version).set("modified", static_cast<double>(info.modified_wall_us) / 1e6);
  return out;
}

// store:put(key, text or { file = path }, options) -> { bytes, version }
Result<int> store_put(lua_State* L) {
  constexpr const char* verb = "store:put";
  RILLE_TRY(StoreCall call, begin_call(L, "put", 2, 4));
  check_options(L, 4, verb, {"if_absent", "if_match", "content_type", "sim"});
  objects::PutRequest request;
  if (lua_istable(L, 4)) {
    request.if_absent = option_bool(L, 4, "if_absent", false);
    request.if_match = option_text(L, 4, "if_match").value_or("");
    request.content_type = option_text(L, 4, "content_type").value_or("");
  }
  std::string file, text;
  if (lua_istable(L, 3)) {
    check_options(L, 3, verb, {"file"});
    file = option_text(L, 3, "file").value_or("");
    if (file.empty()) raise_invalid(L, "store:put: the table names no file", "{ file = \"model.bin\" }");
  } else {
    text = check_text(L, 3, "store:put: what to put, a text or { file = path }");
  }
  call.identity.set("if_absent", request.if_absent).set("if_match", request.if_match);
  call.identity.set("type", request.content_type);
  Value usual;
  usual.set("version", "").set("bytes", static_cast<double>(text.size()));
  if (file.empty()) {
    call.identity.set("text", sha256_hex(text));
    const std::string key = call.key;
    return run_call(L, std::move(call), std::move(usual),
                    [key, text, request](objects::ObjectStore& store, CancelToken token) -> Async<Value> {
                      objects::Body body;
                      body.text = text;
                      RILLE_CO_TRY(const std::string version,
                                   co_await store.put(key, std::move(body), request, std::move(token)));
                      co_return Value().set("version", version).set("bytes", static_cast<double>(text.size()));
                    });
  }
  call.identity.set("file", file);
  RILLE_TRY(const std::string path, call.verb.host.grants().read(file));
  Loop& loop = call.verb.run.loop();
  const std::string key = call.key;
  return run_call(L, std::move(call), std::move(usual),
                  [&loop, key, path, request](objects::ObjectStore& store, CancelToken token) -> Async<Value> {
                    RILLE_CO_TRY(
                        const transfer::StoreFile sent,
                        co_await transfer::send_file(store, loop, path, key, request, nullptr, std::move(token)));
                    co_return Value().set("version", sent.version).set("bytes", sent.size_bytes);
                  });
}

using Memory = std::shared_ptr<MemoryUse>;

// Holds memory for what a store sends until the run has it.
class Received {
 public:
  explicit Received(Memory memory) : memory_(std::move(memory)) {}
  Result<> add(std::size_t bytes) {
    RILLE_TRY(MemoryHeld one, MemoryHeld::take(memory_, MemoryUse::Part::results, static_cast<std::int64_t>(bytes)));
    held_.push_back(std::move(one));
    return success();
  }

 private:
  Memory memory_;
  std::vector<MemoryHeld> held_;
};

Async<Value> get_text(objects::ObjectStore& store, std::string key, Memory memory, CancelToken token) {
  std::string text;
  Received received(std::move(memory));
  const objects::Sink sink = [&](std::string_view piece) -> Result<> {
    if (static_cast<std::int64_t>(text.size() + piece.size()) > got_text_bytes_max)
      return make_error(ErrorKind::quota,
                        fmt::format("store:get: {} is larger than {}, the limit of a text", store.address(key),
                                    format_size_bytes(got_text_bytes_max)),
                        "get it into a file: store:get(key, { file = \"model.bin\" })");
    RILLE_CHECK(received.add(2 * piece.size()));  // the text grows by copies
    text += piece;
    return success();
  };
  RILLE_CO_CHECK(co_await store.get(key, objects::GetRequest(), sink, std::move(token)));
  co_return Value(std::move(text));
}

// store:get(key) -> text; store:get(key, { file = path }) -> { bytes, version }
Result<int> store_get(lua_State* L) {
  RILLE_TRY(StoreCall call, begin_call(L, "get", 2, 3));
  check_options(L, 3, "store:get", {"file", "sim"});
  std::string file;
  if (lua_istable(L, 3)) file = option_text(L, 3, "file").value_or("");
  call.identity.set("file", file);
  const std::string key = call.key;
  const HostOptions& options = call.verb.host.options();
  if (file.empty())
    return run_call(L, std::move(call), Value(),
                    [key, memory = options.memory](objects::ObjectStore& store, CancelToken token) {
                      return get_text(store, key, memory, std::move(token));
                    });
  RILLE_TRY(const std::string path, call.verb.host.grants().write(file));
  Loop& loop = call.verb.run.loop();
  Room room;
  if (options.disk) room = [disk = options.disk](std::int64_t bytes) { return disk->take(bytes); };
  return run_call(L, std::move(call), Value(),
                  [&loop, key, path, room](objects::ObjectStore& store, CancelToken token) -> Async<Value> {
                    RILLE_CO_TRY(
                        const transfer::StoreFile made,
                        co_await transfer::fetch_file(store, loop, key, path, room, nullptr, std::move(token)));
                    co_return Value().set("version", made.version).set("bytes", made.size_bytes);
                  });
}

Error too_many_keys(std::string what, std::string hint) {
  Error e = make_error(ErrorKind::quota, std::move(what), std::move(hint));
  e.code = "limit";
  return e;
}

Async<Value> list_rows(objects::ObjectStore& store, objects::ListRequest request, std::size_t prefix_bytes, double most,
                       Memory memory, CancelToken token) {
  constexpr std::size_t row_bytes = 500;                                  // of a row without its key
  constexpr std::size_t kept_row_bytes = 100, kept_bytes_max = 64 << 20;  // in the journal
  std::size_t kept_bytes = 0;
  Value::Array rows;
  Received received(std::move(memory));
  const std::function<Result<>(const objects::ListPage&)> each = [&](const objects::ListPage& page) -> Result<> {
    std::size_t bytes = 0;
    for (const objects::ObjectInfo& info : page.objects) bytes += row_bytes + info.key.size();
    for (const std::string& name : page.prefixes) bytes += row_bytes + name.size();
    RILLE_CHECK(received.add(bytes));
    kept_bytes += bytes - (row_bytes - kept_row_bytes) * (page.objects.size() + page.prefixes.size());
    if (kept_bytes > kept_bytes_max)
      return too_many_keys(
          fmt::format("store:list: the keys of {} take more than 64 MB", store.address(request.prefix)),
          "list a longer prefix, or use folders = true");
    for (const objects::ObjectInfo& info : page.objects) rows.push_back(object_value(info, prefix_bytes));
    for (const std::string& name : page.prefixes)
      rows.push_back(Value().set("key", name.substr(std::min(prefix_bytes, name.size()))).set("folder", true));
    if (static_cast<double>(rows.size()) <= most) return success();
    return too_many_keys(
        fmt::format("store:list: {} has more than {} keys: the option limit", store.address(request.prefix), most),
        "list a longer prefix, use folders = true, or raise limit");
  };
  RILLE_CO_CHECK(co_await objects::list_all(store, request, each, std::move(token)));
  std::sort(rows.begin(), rows.end(), [](const Value& a, const Value& b) { return a.text("key") < b.text("key"); });
  co_return Value(std::move(rows));
}

// store:list(prefix, options) -> rows { key, size, version, modified }, or { key, folder = true }
Result<int> store_list(lua_State* L) {
  RILLE_TRY(StoreCall call, begin_call(L, "list", 2, 3));
  check_options(L, 3, "store:list", {"folders", "limit", "sim"});
  objects::ListRequest request;
  double most = rows_usual;
  if (lua_istable(L, 3)) {
    if (option_bool(L, 3, "folders", false)) request.delimiter = "/";
    most = option_number(L, 3, "limit").value_or(most);
  }
  if (!(most >= 1 && most <= rows_max) || most != std::floor(most))
    raise_invalid(L, fmt::format("store:list: limit = {}: expected a whole number from 1 to {}", most, rows_max));
  request.prefix = call.key;
  call.identity.set("folders", !request.delimiter.empty()).set("limit", most);
  const std::size_t prefix_bytes = call.bucket->prefix.size();
  const Memory memory = call.verb.host.options().memory;
  return run_call(
      L, std::move(call), Value(),
      [request, prefix_bytes, most, memory](objects::ObjectStore& store, CancelToken token) {
        return list_rows(store, request, prefix_bytes, most, memory, std::move(token));
      },
      push_list);
}

// store:exists(key) -> boolean
Result<int> store_exists(lua_State* L) {
  RILLE_TRY(StoreCall call, begin_call(L, "exists", 2, 3));
  check_options(L, 3, "store:exists", {"sim"});
  const std::string key = call.key;
  return run_call(L, std::move(call), Value(), [key](objects::ObjectStore& store, CancelToken token) -> Async<Value> {
    const Result<objects::ObjectInfo> info = co_await store.head(key, std::move(token));
    if (info) co_return Value(true);
    const Error& e = info.error();
    if (objects::is_missing(e) && e.code != "NoSuchBucket" && e.code != "ContainerNotFound") co_return Value(false);
    co_return e;
  });
}

// store:delete(key): also succeeds if there is no such object
Result<int> store_delete(lua_State* L) {
  RILLE_TRY(StoreCall call, begin_call(L, "delete", 2, 3));
  check_options(L, 3, "store:delete", {"sim"});
  const std::string key = call.key;
  return run_call(
      L, std::move(call), Value(true),
      [key](objects::ObjectStore& store, CancelToken token) -> Async<Value> {
        RILLE_CO_CHECK(co_await store.remove(key, std::move(token)));
        co_return Value(true);
      },
      [](lua_State*, Value) { return 0; });
}

// rille.store(address) -> Store
Result<int> store_at(lua_State* L) {
  const std::string address(check_text(L, 1, "rille.store: the address"));
  auto bucket = std::make_shared<Bucket>();
  RILLE_TRY(bucket->url, objects::parse_object_url(address));
  bucket->prefix = bucket->url.key;
  if (!bucket->prefix.empty() && !bucket->prefix.ends_with('/')) bucket->prefix += '/';
  push_object(L, StoreObject{std::move(bucket)});
  return 1;
}

int store_to_string(lua_State* L) {
  const Bucket& bucket = *check_object<StoreObject>(L, 1, "store").bucket;
  push(L, "Store '" + bucket.url.root() + bucket.prefix + "'");
  return 1;
}

bool store_field(lua_State* L, std::string_view key) {
  if (key != "address") return false;
  const Bucket& bucket = *check_object<StoreObject>(L, 1, "store").bucket;
  push(L, bucket.url.root() + bucket.prefix);
  return true;
}

}  // namespace

Result<> may_ask_store(const Grants& grants, const std::string& what, const objects::ObjectUrl& url,
                       const objects::ObjectStore* store) {
  if (store) RILLE_CHECK(grants.connect_to_url(what, store->server()));
  return grants.keys(what, objects::provider_of(url));
}

int open_store(lua_State* L) {
  lua_settop(L, 1);
  define_class<StoreObject>(L, {.name = "Store",
                                .methods = {},
                                .async_methods = {{"put", bind<store_put>},
                                                  {"get", bind<store_get>},
                                                  {"list", bind<store_list>},
                                                  {"exists", bind<store_exists>},
                                                  {"delete", bind<store_delete>}},
                                .metamethods = {{"__tostring", bind<store_to_string>}},
                                .field = store_field,
                                .fields = {"address"}});
  lua_newtable(L);
  set_functions(L, {{"store", bind<store_at>}});
  add_words(L, 1);
  return 0;
}

}  // namespace rille::lua
