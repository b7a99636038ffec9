// JSON and whole files for stdlib/json.lua, stdlib/read.lua and stdlib/write.lua.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "bindings/lua/workflow/verb.hpp"
#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/use.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::lua {

namespace {

constexpr std::int64_t file_bytes_max = std::int64_t{1} << 30;
constexpr std::size_t names_shown = 8;  // of a folder, in the hint of a missing file

// What JSON lacks, in a value. `path` is its place: ".loss[3]".
struct NotJson {
  std::string path, what, hint;
};

std::optional<NotJson> not_json(const Value& v) {
  if (const double* n = v.as_number(); n && !std::isfinite(*n))
    return NotJson{"",
                   fmt::format("is {}", std::isnan(*n) ? "nan"
                                        : *n > 0       ? "inf"
                                                       : "-inf"),
                   "leave it out, or use a text or rille.null"};
  if (const std::string* s = v.as_string(); s && !is_utf8(*s))
    return NotJson{"", "holds bytes that are no UTF-8 text", "write such data to a file of its own"};
  if (v.as_map())
    return NotJson{"", "has keys that are neither all texts nor 1 to n", "use texts: [tostring(key)] = value"};
  const auto within = [](std::optional<NotJson> found, const std::string& place) {
    found->path = place + found->path;
    return found;
  };
  if (const Value::Array* a = v.as_array())
    for (std::size_t i = 0; i < a->size(); ++i)
      if (auto found = not_json((*a)[i])) return within(std::move(found), fmt::format("[{}]", i + 1));
  if (const Value::Object* o = v.as_object())
    for (const auto& [key, item] : *o) {
      if (!is_utf8(key)) return NotJson{"", "has a key that is no UTF-8 text", "use texts as keys"};
      if (auto found = not_json(item)) return within(std::move(found), "." + key);
    }
  return {};
}

// json_encode(value) -> text
Result<int> json_encode(lua_State* L) {
  RILLE_TRY(const Value value, to_value(L, 1, "value"));
  if (const auto found = not_json(value))
    return make_error(ErrorKind::invalid,
                      fmt::format("rille.json.encode: value{} {}, which JSON does not have", found->path, found->what),
                      found->hint);
  const std::string text = to_plain_json(value);
  const auto& memory = LuaHost::of(L).options().memory;
  RILLE_TRY(const MemoryHeld held,
            MemoryHeld::take(memory, MemoryUse::Part::results, static_cast<std::int64_t>(text.size())));
  push(L, text);
  return 1;
}

// json_decode(text) -> value. Parsed, a text takes at most `growth` times its size: "0," becomes a Value.
Result<int> json_decode(lua_State* L) {
  constexpr std::int64_t growth = sizeof(Value);
  const std::string_view text = check_text(L, 1, "rille.json.decode: the text");
  const auto& memory = LuaHost::of(L).options().memory;
  RILLE_TRY(const MemoryHeld held,
            MemoryHeld::take(memory, MemoryUse::Part::results, growth * static_cast<std::int64_t>(text.size())));
  Result<Value> value = plain_json(text);
  if (!value) {
    Error e = std::move(value).error();
    e.message = "rille.json.decode: " + e.message;
    return e;
  }
  if (value->is_null()) push_null(L);
  else push_value(L, *value);
  return 1;
}

Result<> check_effects(lua_State* L, const char* what, const char* again) {
  if (LuaHost::of(L).effects_allowed()) return {};
  return make_error(ErrorKind::state,
                    fmt::format("{} works only inside rille.step and on agents: in workflow code a resume would {} "
                                "the file again",
                                what, again),
                    "put it into rille.step(name, function() ... end)");
}

// What is where a file is missing: a similar name, or the first names of the folder.
std::string names_beside(const Grants& grants, const std::string& path) {
  const std::filesystem::path file(path);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  if (!grants.read(folder, Grants::Names::tree)) return {};
  std::vector<std::string> names;
  std::error_code ec;
  for (std::filesystem::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    names.push_back(it->path().filename().string());
  if (ec) return fmt::format("there is no folder '{}'", folder);
  if (const std::string near = did_you_mean(file.filename().string(), names); !near.empty())
    return fmt::format("did you mean '{}'?", (file.parent_path() / near).string());
  if (names.empty()) return fmt::format("the folder '{}' is empty", folder);
  std::sort(names.begin(), names.end());
  const std::size_t all = names.size();
  names.resize(std::min(all, names_shown));
  return fmt::format("the folder '{}' has {}{}", folder, fmt::join(names, ", "),
                     all > names_shown ? fmt::format(" and {} more", all - names_shown) : "");
}

// read_file(path) -> text
Result<int> read_file(lua_State* L) {
  const std::string path(check_text(L, 1, "rille.read: the path"));
  RILLE_CHECK(check_effects(L, "rille.read", "read"));
  const Grants& grants = LuaHost::of(L).grants();
  RILLE_TRY(const std::string real, grants.read(path));
  Result<std::string> text = store::read_file(real, file_bytes_max);
  if (!text) {
    Error e = std::move(text).error();
    const std::string beside = e.code == "errno 2" ? names_beside(grants, path) : "";
    if (!beside.empty()) e.hint = beside;
    return e;
  }
  push(L, *text);
  return 1;
}

// write_file(path, text)
Result<int> write_file(lua_State* L) {
  const std::string path(check_text(L, 1, "rille.write: the path"));
  const std::string_view text = check_text(L, 2, "rille.write: the text");
  RILLE_CHECK(check_effects(L, "rille.write", "write"));
  LuaHost& host = LuaHost::of(L);
  RILLE_TRY(std::string real, host.grants().write(path));
  if (host.options().disk) RILLE_CHECK(host.options().disk->take(static_cast<std::int64_t>(text.size())));
  std::error_code none;  // a link stays, and the file that it names is replaced
  if (const auto target = std::filesystem::canonical(real, none); !none) real = target.string();
  RILLE_CHECK(store::write_file_atomic(real, text));
  return 0;
}

}  // namespace

int open_texts(lua_State* L) {
  push_rille_core(L);
  lua_getfield(L, -1, "loaded");
  lua_getfield(L, -1, "rille.native");
  set_functions(L, {{"json_encode", bind<json_encode>},
                    {"json_decode", bind<json_decode>},
                    {"read_file", bind<read_file>},
                    {"write_file", bind<write_file>}});
  lua_settop(L, 1);
  return 0;
}

}  // namespace rille::lua
