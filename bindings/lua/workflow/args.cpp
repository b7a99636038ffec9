// rille.args { data = "x", steps = 300 }: merges the run's input into the defaults. The type of each default decides
// which values are accepted.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "bindings/host/check_arguments.hpp"
#include "bindings/lua/workflow/verb.hpp"
#include "runtime/core/base/did_you_mean.hpp"

namespace rille::lua {

namespace {

Error unknown_argument(const std::string& name, const Value::Object& defaults) {
  std::vector<std::string> names;
  std::string list;
  for (const auto& [key, value] : defaults) {
    names.push_back(key);
    list += fmt::format("{}--{}", list.empty() ? "" : ", ", key);
  }
  std::string near = did_you_mean(name, names);
  std::string hint = names.empty()  ? "this script takes no arguments"
                     : near.empty() ? "it takes " + list
                                    : fmt::format("did you mean --{}? It takes {}", near, list);
  return make_error(ErrorKind::invalid, fmt::format("this script takes no argument --{}", name), hint);
}

// Marks an error about arguments. `rille run` deletes the run after this code if nothing else was recorded.
Error refused(Error e) {
  e.code = "script_arguments";
  return e;
}

// Notes that the script reads its arguments; otherwise `rille run` warns that they are ignored.
void mark_read(lua_State* L) {
  push_rille_core(L);
  lua_pushboolean(L, 1);
  lua_setfield(L, -2, "arguments_read");
  lua_pop(L, 1);
}

// Answers `rille FILE --help`: the error carries the script's options and ends the rehearsal that `--help` started.
Error options_asked_for(const Value::Object& defaults) {
  Error e = unknown_argument("help", defaults);
  e.code = "script_options";
  e.resource = Value(defaults).to_json();
  return e;
}

Error wrong_type(const std::string& name, const Value& given, const char* wanted) {
  if (given.as_bool() && *given.as_bool())
    return make_error(ErrorKind::invalid, fmt::format("--{} has no value: expected {}", name, wanted));
  return make_error(ErrorKind::invalid, fmt::format("--{} {}: expected {}", name,
                                                    given.as_string() ? *given.as_string() : given.to_json(), wanted));
}

Result<Value> to_number(const std::string& name, const Value& given) {
  if (given.as_number()) return given;
  if (const std::string* s = given.as_string()) {
    double n = 0;
    auto [end, rc] = std::from_chars(s->data(), s->data() + s->size(), n);
    if (rc == std::errc() && end == s->data() + s->size() && std::isfinite(n)) return Value(n);
  }
  return wrong_type(name, given, "a number");
}

Result<Value> to_boolean(const std::string& name, const Value& given) {
  if (given.as_bool()) return given;
  if (const std::string* s = given.as_string()) {
    for (const char* yes : {"true", "yes", "on", "1", ""})
      if (*s == yes) return Value(true);
    for (const char* no : {"false", "no", "off", "0"})
      if (*s == no) return Value(false);
  }
  return wrong_type(name, given, "true or false");
}

// Turns "a,b,c" into a list; if the default `model` is a list of numbers, the items become numbers.
Result<Value> to_list(const std::string& name, const Value& given, const Value& model) {
  if (given.as_array() || given.as_object()) return given;
  const std::string* s = given.as_string();
  if (!s) return wrong_type(name, given, "a list: a,b,c");
  bool numbers = model.as_array() && !model.as_array()->empty() && model.as_array()->front().as_number();
  Value::Array out;
  for (std::size_t at = 0; at <= s->size() && !s->empty();) {
    std::size_t end = std::min(s->find(',', at), s->size());
    Value item(s->substr(at, end - at));
    if (numbers) { RILLE_TRY(item, to_number(name, item)); }
    out.push_back(std::move(item));
    at = end + 1;
  }
  return Value(std::move(out));
}

Result<Value> convert(const std::string& name, const Value& given, const Value& model) {
  if (model.as_number()) return to_number(name, given);
  if (model.as_bool()) return to_boolean(name, given);
  if (model.as_array() || model.as_object()) return to_list(name, given, model);
  if (const double* n = given.as_number()) return Value(fmt::format("{}", *n));
  // the user gave `--name` without a value
  if (given.as_bool() && *given.as_bool()) return wrong_type(name, given, "a text");
  if (const bool* b = given.as_bool()) return Value(*b ? "true" : "false");
  return given;
}

Result<int> args(lua_State* L) {
  Verb v = begin_verb(L, "args", Verbs::anywhere);
  Value given = v.run.args();
  mark_read(L);
  if (lua_isnoneornil(L, 1)) {
    push_value(L, given.as_object() ? given : Value(Value::Object{}));
    return 1;
  }
  check_table(L, 1, "rille.args");
  RILLE_TRY(Value model, to_value(L, 1, "rille.args"));
  Value::Object out = model.as_object() ? *model.as_object() : Value::Object{};
  if (const Value::Array* positional = model.as_array(); positional && !positional->empty())
    return make_error(ErrorKind::invalid, "rille.args: expected a table of names with default values",
                      "rille.args { data = \"x\", steps = 300 }");
  if (const Value::Object* input = given.as_object()) {
    const bool checks = v.host.options().rehearsal != Rehearsal::no && input->contains(check_arguments);
    if (input->contains("help") && !out.contains("help") && !checks) return options_asked_for(out);
    for (const auto& [key, value] : *input) {
      if (checks && key == check_arguments) continue;
      auto it = out.find(key);
      if (it == out.end()) return refused(unknown_argument(key, out));
      Result<Value> converted = convert(key, value, it->second);
      if (!converted) return refused(std::move(converted).error());
      it->second = std::move(*converted);
    }
    if (checks) return options_asked_for(out);
  }
  push_value(L, Value(std::move(out)));
  return 1;
}

}  // namespace

int open_args(lua_State* L) {
  lua_settop(L, 1);
  lua_newtable(L);
  set_functions(L, {{"args", bind<args>}});
  add_words(L, 1);
  return 0;
}

}  // namespace rille::lua
