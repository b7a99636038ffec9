// Instance: the result of rille.rent. Each access to a field reads the run's lease, so fields are never stale.
#include <fmt/format.h>

#include "bindings/host/ship.hpp"
#include "bindings/lua/workflow/volume.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/store/objects/object_store.hpp"
#include "runtime/core/store/objects/url.hpp"
#include "runtime/workflow/engine/stage_choices.hpp"
#include "runtime/workflow/transfer/stage.hpp"
#include "runtime/workflow/transfer/store_files.hpp"

namespace rille::lua {

namespace {

struct Instance {
  std::string id, name;
};

Instance& instance_of(lua_State* L, const char* method) { return check_object<Instance>(L, 1, method); }

int push_instance(lua_State* L, engine::LeaseView lease) {
  push_object(L, Instance{lease.id, lease.name});
  return 1;
}

bool instance_field(lua_State* L, std::string_view key) {
  Instance& box = instance_of(L, "instance");
  if (key == "name") {
    push(L, box.name);
    return true;
  }
  if (key == "id") {
    push(L, box.id);
    return true;
  }
  LuaHost& host = LuaHost::of(L);
  auto lease = value_or_raise(L, host.run().lease(box.id));
  auto text = [&](const std::string& s) {
    push(L, s);
    return true;
  };
  auto number = [&](double n) {
    push(L, n);
    return true;
  };
  if (key == "provider") return text(lease.provider);
  if (key == "state") return text(lease.state);
  if (key == "machine") return text(lease.machine_id);
  if (key == "region") return text(lease.region);
  if (key == "gpu") return text(lease.gpu);
  if (key == "gpu_count") return number(lease.gpu_count);
  if (key == "generation") return number(lease.generation);
  if (key == "vcpus") return number(lease.vcpus);
  if (key == "memory") return number(static_cast<double>(lease.memory_bytes));
  if (key == "price") {
    if (lease.price_micros_per_hour >= 0) return number(static_cast<double>(lease.price_micros_per_hour) / 1e6);
    lua_pushnil(L);  // nil: the price in dollars is unknown
    return true;
  }
  if (key == "spent") return number(static_cast<double>(lease.spent_micros) / 1e6);
  if (key == "costs") {
    Value costs{Value::Object{}};
    for (const auto& [currency, amount] : lease.costs) costs.set(currency, static_cast<double>(amount) / 1e6);
    push_value(L, costs);
    return true;
  }
  if (key == "expires") return number(static_cast<double>(lease.expires_wall_us) / 1e6);
  if (key == "spot") {
    push(L, lease.spot);
    return true;
  }
  return false;
}

int instance_to_string(lua_State* L) {
  Instance& box = instance_of(L, "instance");
  LuaHost& host = LuaHost::of(L);
  auto lease = host.has_run() ? host.run().lease(box.id) : Result<engine::LeaseView>(make_error(ErrorKind::state, ""));
  if (!lease) push(L, fmt::format("Instance '{}'", box.name));
  else
    push(L, fmt::format("Instance '{}' ({}, {}{}, {}, {})", box.name, lease->provider,
                        lease->gpu.empty() ? "cpu" : lease->gpu,
                        lease->gpu_count > 1 ? fmt::format(":{}", lease->gpu_count) : "",
                        lease->shown_price == "?" ? "price unknown" : lease->shown_price + "/h", lease->state));
  return 1;
}

// The machine of the provider `local` is this machine: programs on it have the rights of this process.
Result<> may_use(Verb& v, const Instance& box, const char* what) {
  if (v.host.grants().process(what)) return {};
  RILLE_TRY(const engine::LeaseView lease, v.run.lease(box.id));
  return lease.provider == "local" ? v.host.grants().process(fmt::format("{} on this machine", what)) : Result<>();
}

// rille.rent(name, options) -> Instance
Result<int> rent(lua_State* L) {
  Verb v = begin_verb(L, "rent");
  std::string name = check_name(L, 1, "rent");
  Value options{Value::Object{}};
  if (!lua_isnoneornil(L, 2)) {
    if (!lua_istable(L, 2))
      raise_invalid(L, fmt::format("rille.rent's options: expected a table, got {}", describe(L, 2)),
                    fmt::format("rille.rent(\"{}\", {{ gpu = \"any\" }})", name));
    RILLE_TRY(options, read_rent_options(L, 2, "rille.rent"));
  }
  RILLE_CHECK(v.host.grants().choose_providers("rille.rent", options, true));
  // Machines of other runs are no part of what a run with fewer grants may reach.
  if (const bool* adopt = options["adopt"].as_bool(); !options["adopt"].is_null() && (!adopt || *adopt))
    if (!v.host.grants().is_everything()) return denied("rille.rent with the option adopt", "all");
  return await(L, v.run.rent(v.id, std::move(name), std::move(options), v.source), push_instance, Waits::engine);
}

// Refuses options whose names are reserved but not implemented; the error tells what to use instead.
void refuse_options(lua_State* L, int index, const char* verb,
                    std::initializer_list<std::pair<const char*, const char*>> ahead) {
  if (!lua_istable(L, index)) return;
  for (const auto& [key, instead] : ahead) {
    lua_getfield(L, index, key);
    bool given = !lua_isnil(L, -1);
    lua_pop(L, 1);
    if (given) raise_invalid(L, fmt::format("{}: there is no option '{}' yet", verb, key), instead);
  }
}

constexpr std::pair<const char*, const char*> no_force = {
    "force", "a file that is already there is not sent again; to force that, remove it with box:exec first"};

// The options of box:stage or box:get as one value.
Result<Value> options_value(lua_State* L, int index, const char* verb) {
  if (!lua_istable(L, index)) return Value(Value::Object{});
  RILLE_TRY(Value v, to_value(L, index, verb));
  return v.as_object() ? std::move(v) : Value(Value::Object{});
}

Result<Value> stage_options(lua_State* L, int index) {
  refuse_options(L, index, "box:stage", {no_force});
  check_options(L, index, "box:stage", {"sha256", "mirror", "unpack", "bandwidth", "sim"});
  RILLE_TRY(Value options, options_value(L, index, "box:stage"));
  RILLE_CHECK(engine::read_stage_choices(options));
  return options;
}

Result<> may_stage(Verb& v, const std::string& from) {
  const Grants& grants = v.host.grants();
  if (from.starts_with("http://") || from.starts_with("https://")) return grants.connect_to_url("box:stage", from);
  if (objects::is_object_url(from)) {
    RILLE_TRY(const objects::ObjectUrl url, objects::parse_object_url(from));
    const Result<std::unique_ptr<objects::ObjectStore>> store = transfer::open_users_store(url, v.run.loop(), nullptr);
    return may_ask_store(grants, "box:stage", url, store ? store->get() : nullptr);
  }
  const bool file = from.starts_with("file://");
  if (!file && from.find("://") < 8) return {};  // refused later: it is not a path
  RILLE_CHECK(grants.read(file ? transfer::path_of_file_url(from) : from, Grants::Names::tree));
  return {};
}

// The place on the other side. If the script gives none: the last part of `from`, in the working folder there.
std::string place_or_name(lua_State* L, int index, const std::string& from, const char* what, const char* hint) {
  if (!lua_isnoneornil(L, index)) return std::string(check_text(L, index, what));
  std::string_view path = from;
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto name = path.substr(path.rfind('/') + 1);
  const bool whole_store = path.size() > name.size() + 2 && path.substr(0, path.size() - name.size()).ends_with("://");
  if (name.empty() || name == "." || name == ".." || whole_store || name.find_first_of("?#") != name.npos)
    raise_invalid(L, fmt::format("{}: '{}' has no name to give it there", what, from), hint);
  return std::string(name);
}

// box:stage(from, to, options): brings a file or folder to the machine
Result<int> stage(lua_State* L) {
  Verb v = begin_verb(L, "stage");
  Instance& box = instance_of(L, "box:stage");
  std::string from(check_text(L, 2, "box:stage: what to stage"));
  std::string to = place_or_name(L, 3, from, "box:stage: its name on the instance", "box:stage(\"data\", \"data\")");
  RILLE_TRY(Value options, stage_options(L, 4));
  RILLE_CHECK(may_use(v, box, "box:stage"));
  RILLE_CHECK(may_stage(v, from));
  return await(L, v.run.stage(v.id, box.id, std::move(from), std::move(to), std::move(options), v.source), push_decoded,
               Waits::engine);
}

// box:get(from, to, options): copies a file or folder from the machine
Result<int> get(lua_State* L) {
  Verb v = begin_verb(L, "get");
  Instance& box = instance_of(L, "box:get");
  std::string from(check_text(L, 2, "box:get: what to get"));
  std::string to = place_or_name(L, 3, from, "box:get: where to put it", "box:get(\"out\", \"out\")");
  refuse_options(L, 4, "box:get", {no_force});
  check_options(L, 4, "box:get", {"sha256", "sim"});
  RILLE_TRY(Value options, options_value(L, 4, "box:get"));
  RILLE_CHECK(may_use(v, box, "box:get"));
  RILLE_CHECK(v.host.grants().write(to, Grants::Names::tree));
  return await(L, v.run.get(v.id, box.id, std::move(from), std::move(to), std::move(options), v.source), push_decoded,
               Waits::engine);
}

// Reads the option `container`, an image name; refuses one that a container engine would parse as an option.
std::string check_image(lua_State* L, int index, const std::string& what) {
  std::string image = option_text(L, index, "container").value_or("");
  if (!image.empty() && (image[0] == '-' || image.find_first_of(" \t\n") != std::string::npos))
    raise_invalid(L, fmt::format("{}: container = '{}' is not the name of an image", what, image),
                  "container = \"docker.io/pytorch/pytorch:latest\"");
  return image;
}

// Reads secrets = { "HF_TOKEN" }: names of granted environment variables; null if the script did not give it.
Result<Value> check_secrets(lua_State* L, int index, const std::string& what) {
  lua_getfield(L, index, "secrets");
  RILLE_TRY(Value names, to_value(L, -1, "secrets"));
  lua_pop(L, 1);
  if (names.is_null()) return names;
  const Value::Array* list = names.as_array();
  bool good = list && !list->empty();
  for (std::size_t i = 0; good && i < list->size(); ++i) {
    const std::string* name = (*list)[i].as_string();
    good = name && !name->empty() &&
           name->find_first_not_of(
               "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
               "0123456789_") == std::string::npos;
  }
  for (std::size_t i = 0; good && i < list->size(); ++i)
    RILLE_CHECK(LuaHost::of(L).grants().env(*(*list)[i].as_string()));
  if (good) return names;
  return make_error(ErrorKind::invalid, what + ": secrets must be a list of names of environment variables",
                    "secrets = { \"HF_TOKEN\" }: its value is taken from this process's environment");
}

// Reads the option `checkpoint`: rille.home, or an address in a store, where the run's keys are used.
Result<> read_checkpoint(lua_State* L, int options, const Verb& v, engine::CallSpec& spec, const std::string& what) {
  const std::string place = option_text(L, options, "checkpoint").value_or("");
  if (place.empty()) return success();
  spec.payload.set("checkpoint", place);
  spec.keep_checkpoints = true;
  if (place == v.run.home()) return success();
  if (!objects::is_object_url(place))
    return make_error(ErrorKind::invalid, fmt::format("{}: checkpoint = '{}' is no place for checkpoints", what, place),
                      "checkpoint = rille.home, or an address in a store: \"s3://bucket/run/\"");
  RILLE_TRY(const objects::ObjectUrl url, objects::parse_object_url(place));
  const Grants& grants = v.host.grants();
  // An address that cannot be opened fails later, unless the journal knows the call's result.
  if (const auto store = transfer::open_users_store(url, v.run.loop(), nullptr))
    RILLE_CHECK(grants.connect_to_url(what, (*store)->server()));
  RILLE_CHECK(grants.keys(what, objects::provider_of(url)));
  spec.checkpoint_store = place;
  return success();
}

// box:call(name, [options,] function or module name) -> the function's results, computed on the machine
Result<int> call(lua_State* L) {
  Verb v = begin_verb(L, "call");
  Instance& box = instance_of(L, "box:call");
  engine::CallSpec spec;
  spec.name = check_name(L, 2, "call");
  RILLE_CHECK(may_use(v, box, "box:call"));
  std::string what = fmt::format("box:call '{}'", spec.name);
  int function = lua_gettop(L) >= 4 && !lua_isnil(L, 4) ? 4 : 3;
  Value args;
  Value secrets;
  std::string image;
  if (function == 4) {
    check_options(L, 3, "box:call", {"args", "checkpoint", "container", "secrets", "timeout", "setup", "sim"});
    if (lua_istable(L, 3)) {
      RILLE_TRY(spec.sim, read_sim(L, 3, what));
      lua_getfield(L, 3, "args");
      RILLE_TRY(args, to_value(L, -1, "args"));
      lua_pop(L, 1);
      spec.timeout_ms = option_duration_ms(L, 3, "timeout").value_or(0);
      spec.setup = option_bool(L, 3, "setup", false);
      image = check_image(L, 3, what);
      RILLE_TRY(secrets, check_secrets(L, 3, what));
    }
  } else if (lua_istable(L, 3)) {
    return make_error(ErrorKind::invalid, what + ": the function is missing",
                      "box:call(name, options, function(args) ... end)");
  }
  RILLE_TRY(Shipped shipped, ship(L, function, what));
  spec.payload = std::move(shipped.payload);
  spec.payload.set("args", args).set("name", spec.name);
  if (!secrets.is_null()) spec.payload.set("secrets", secrets);
  if (function == 4 && lua_istable(L, 3)) RILLE_CHECK(read_checkpoint(L, 3, v, spec, what));
  spec.identity = shipped.identity + "\n" + args.to_json();
  if (!image.empty()) {
    spec.payload.set("container", image);
    spec.identity += "\n" + image;
  }
  return await(L, v.run.call(v.id, box.id, std::move(spec), v.source), push_decoded, Waits::engine);
}

constexpr std::size_t stdin_bytes_max = 1 << 20;

// Reads cwd and stdin of box:exec into the payload.
Result<> read_exec_ends(lua_State* L, int options, const std::string& what, Value& payload) {
  if (const std::string folder = option_text(L, options, "cwd").value_or(""); !folder.empty())
    payload.set("directory", folder);
  const std::optional<std::string> input = option_text(L, options, "stdin");
  if (!input) return {};
  if (input->size() > stdin_bytes_max)
    return make_error(
        ErrorKind::invalid,
        fmt::format("{}: stdin has {}, over the limit of {} (stdin_bytes_max)", what,
                    format_size_bytes(static_cast<std::int64_t>(input->size())),
                    format_size_bytes(static_cast<std::int64_t>(stdin_bytes_max))),
        "bring it as a file with box:stage, and read it there: argv = { \"sh\", \"-c\", \"prog < file\" }");
  payload.set("stdin", *input);
  return {};
}

// The error of a program that ended with a code or by a signal.
Error program_failed(const std::string& name, const Value& result) {
  const std::int64_t code = result.integer("code"), signal = result.integer("signal");
  Error e = make_error(ErrorKind::state,
                       signal ? fmt::format("'{}' was ended by signal {}", name, signal)
                              : fmt::format("'{}' failed with exit code {}", name, code),
                       "see its output with `rille logs`; check = false returns the code instead");
  e.code = fmt::format("exit {}", signal ? 128 + signal : code);
  e.operation = name;
  return e;
}

// box:exec(name, {argv=, env=, cwd=, stdin=, container=, timeout=, check=}): runs a program on the machine
Result<int> exec(lua_State* L) {
  Verb v = begin_verb(L, "exec");
  Instance& box = instance_of(L, "box:exec");
  engine::CallSpec spec;
  spec.kind = "exec";
  spec.name = check_name(L, 2, "exec");
  RILLE_CHECK(may_use(v, box, "box:exec"));
  if (!lua_istable(L, 3))
    raise_invalid(L, fmt::format("box:exec: expected a table with argv, got {}", describe(L, 3)),
                  "box:exec(\"list\", { argv = { \"ls\", \"-l\" } })");
  refuse_options(L, 3, "box:exec", {{"ports", "no provider here opens ports"}});
  check_options(L, 3, "box:exec",
                {"argv", "env", "cwd", "stdin", "container", "secrets", "timeout", "check", "setup", "sim"});
  const std::string what = fmt::format("box:exec '{}'", spec.name);
  RILLE_TRY(spec.sim, read_sim(L, 3, what));
  spec.timeout_ms = option_duration_ms(L, 3, "timeout").value_or(0);
  bool check = option_bool(L, 3, "check", true);
  spec.setup = option_bool(L, 3, "setup", false);
  RILLE_TRY(Value options, to_value(L, 3, "box:exec"));
  const Value::Array* argv = options["argv"].as_array();
  bool words = argv && !argv->empty();
  for (std::size_t i = 0; words && i < argv->size(); ++i) words = (*argv)[i].as_string() || (*argv)[i].as_number();
  if (!words)
    return make_error(ErrorKind::invalid, what + ": argv must be a list of words",
                      "argv = { \"python3\", \"train.py\" }");
  Value::Array text;
  for (const Value& word : *argv) text.push_back(word.as_string() ? word : Value(fmt::format("{}", *word.as_number())));
  spec.payload.set("argv", Value(std::move(text)));
  if (!options["env"].is_null()) spec.payload.set("env", options["env"]);
  RILLE_CHECK(read_exec_ends(L, 3, what, spec.payload));
  RILLE_TRY(Value secrets, check_secrets(L, 3, what));
  if (!secrets.is_null()) spec.payload.set("secrets", std::move(secrets));
  const std::string image = check_image(L, 3, what);
  if (!image.empty()) spec.payload.set("container", image);
  spec.identity = spec.payload.to_json();
  std::string name = spec.name;
  return await(
      L, v.run.call(v.id, box.id, std::move(spec), v.source),
      [name, check](lua_State* l, Value result) {
        if (check && (result.integer("code") || result.integer("signal"))) raise(l, program_failed(name, result));
        return push_decoded(l, std::move(result));
      },
      Waits::engine);
}

int instance_release(lua_State* L) {
  Verb v = begin_verb(L, "release");
  return await(L, v.run.release(v.id, instance_of(L, "box:release").id, v.source), push_nothing, Waits::engine);
}

// box:replace([options]): rents another machine for the lease
Result<int> replace(lua_State* L) {
  Verb v = begin_verb(L, "replace");
  Instance& box = instance_of(L, "box:replace");
  Value options{Value::Object{}};
  if (!lua_isnoneornil(L, 2)) {
    check_table(L, 2, "box:replace's options");
    RILLE_TRY(options, to_value(L, 2, "box:replace"));
    if (options.as_array() && options.as_array()->empty()) options = Value(Value::Object{});
    if (!options.as_object()) return make_error(ErrorKind::invalid, "box:replace: expected a table of named options");
    for (const char* fixed : {"ttl", "hold_ttl"})
      if (options.as_object()->contains(fixed))
        return make_error(ErrorKind::invalid, fmt::format("box:replace has no option '{}'", fixed),
                          "a replacement does not change when the lease ends: rent with a longer ttl");
    if (!options["provider"].is_null() || !options["providers"].is_null())
      RILLE_CHECK(v.host.grants().choose_providers("box:replace", options, true));
  }
  return await(
      L, v.run.replace(v.id, box.id, std::move(options), v.source), [](lua_State*, Value) { return 0; }, Waits::engine);
}

// box:resize(options): changes the machine's type
Result<int> resize(lua_State* L) {
  Verb v = begin_verb(L, "resize");
  Instance& box = instance_of(L, "box:resize");
  check_table(L, 2, "box:resize's options");
  RILLE_TRY(Value options, to_value(L, 2, "box:resize"));
  if (options.as_array() && options.as_array()->empty()) options = Value(Value::Object{});
  if (!options.as_object()) return make_error(ErrorKind::invalid, "box:resize: expected a table of named options");
  return await(
      L, v.run.resize(v.id, box.id, std::move(options), v.source), [](lua_State*, Value) { return 0; }, Waits::engine);
}

// box:preempting() -> when the provider will reclaim the machine, or nil
int preempting(lua_State* L) {
  Verb v = begin_verb(L, "preempting");
  return await(L, v.run.preempting(v.id, instance_of(L, "box:preempting").id, v.source), push_decoded, Waits::engine);
}

// box:telemetry() -> CPU and GPU utilization of the machine; raises if the machine cannot be read
int instance_telemetry(lua_State* L) {
  Verb v = begin_verb(L, "telemetry");
  std::vector<std::string> one(1, instance_of(L, "box:telemetry").id);
  return await(
      L, v.run.telemetry(v.id, std::move(one), v.source),
      [](lua_State* l, Value readings) {
        const Value::Array* all = readings.as_array();
        Value reading = all && !all->empty() ? all->front() : Value();
        if (!reading["error"].is_null()) raise(l, error_from_value(reading["error"]));
        return push_decoded(l, std::move(reading));
      },
      Waits::engine);
}

// box:detach(ttl): the machine stays rented after the run, until `ttl` has passed
int instance_detach(lua_State* L) {
  Verb v = begin_verb(L, "detach");
  Instance& box = instance_of(L, "box:detach");
  std::int64_t ttl_ms = check_duration_ms(L, 2, "box:detach: for how long it shall live on");
  if (ttl_ms <= 0) raise_invalid(L, "box:detach: a duration must be positive", "box:detach(\"24h\")");
  return await(L, v.run.detach(v.id, box.id, ttl_ms, v.source), push_nothing, Waits::engine);
}

Result<int> describe_lease(lua_State* L) {
  Verb v = begin_verb(L, "describe", Verbs::anywhere);
  RILLE_TRY(engine::LeaseView lease, v.run.lease(instance_of(L, "box:describe").id));
  push_value(L, lease.to_value());
  return 1;
}

void gather_leases(lua_State* L, int index, int depth, std::vector<std::string>& out) {
  if (Instance* box = test_object<Instance>(L, index)) {
    out.push_back(box->id);
  } else if (const Volume* volume = test_object<Volume>(L, index)) {
    out.push_back(volume->id);
  } else if (lua_istable(L, index) && depth < 4) {
    luaL_checkstack(L, 4, "scope");
    LuaHost::of(L).check(L);  // nested lists can stand for very many values
    index = absolute(L, index);
    lua_pushnil(L);
    while (lua_next(L, index)) {
      gather_leases(L, lua_gettop(L), depth + 1, out);
      lua_pop(L, 1);
    }
  }
}

// leases_in(results of a scope) -> ids of the instances and volumes among the results; their leases move to the parent
// scope.
int leases_in(lua_State* L) {
  std::vector<std::string> ids;
  for (int i = 1, n = lua_gettop(L); i <= n; ++i) gather_leases(L, i, 0, ids);
  lua_createtable(L, static_cast<int>(ids.size()), 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    push(L, ids[i]);
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
  return 1;
}

}  // namespace

int open_instance(lua_State* L) {
  lua_settop(L, 1);
  define_class<Instance>(
      L, {.name = "Instance",
          .methods = {{"describe", bind<describe_lease>}},
          .async_methods = {{"stage", bind<stage>},
                            {"get", bind<get>},
                            {"call", bind<call>},
                            {"exec", bind<exec>},
                            {"release", bind<instance_release>},
                            {"replace", bind<replace>},
                            {"resize", bind<resize>},
                            {"preempting", bind<preempting>},
                            {"telemetry", bind<instance_telemetry>},
                            {"detach", bind<instance_detach>}},
          .metamethods = {{"__tostring", bind<instance_to_string>}},
          .field = instance_field,
          .fields = {"name", "id", "provider", "state", "machine", "region", "gpu", "gpu_count", "generation", "vcpus",
                     "memory", "price", "spent", "costs", "expires", "spot"}});
  lua_newtable(L);
  set_async(L, "rent", bind<rent>);
  add_words(L, 1);
  push_rille_core(L);
  set_functions(L, {{"leases_in", bind<leases_in>}});
  return 0;
}

}  // namespace rille::lua
