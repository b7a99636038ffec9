// What stdlib/repl/keep.lua needs to write variables into the run's folder, and to read them again.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bindings/cli/prompt/primitives.hpp"
#include "bindings/host/bind.hpp"
#include "bindings/host/codec.hpp"
#include "bindings/host/ship.hpp"
#include "runtime/compute/tensor/record.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::cli {

namespace {

using namespace rille::host;

// encode(value) -> its text; nil and why it has none.
int prompt_encode(lua_State* L) {
  Result<Value> value = to_value(L, 1, "it");
  if (value) {
    push(L, value->to_json());
    return 1;
  }
  lua_pushnil(L);
  push(L, value.error().message);
  return 2;
}

Result<int> prompt_decode(lua_State* L) {
  RILLE_TRY(const Value value, Value::from_json(check_text(L, 1, "text")));
  push_value(L, value);
  return 1;
}

// ship(f) -> the text of a function with what it captures; nil and why it has none.
int prompt_ship(lua_State* L) {
  Result<Shipped> shipped = ship(L, 1, "it");
  if (shipped) {
    push(L, shipped->payload.to_json());
    return 1;
  }
  lua_pushnil(L);
  push(L, shipped.error().message);
  return 2;
}

int prompt_unship(lua_State* L) {
  Result<Value> payload = Value::from_json(check_text(L, 1, "text"));
  const Result<> made = payload ? unship(L, *payload) : payload.error();
  if (made) return 1;
  lua_pushnil(L);
  push(L, made.error().message);
  return 2;
}

std::string kept_path(lua_State* L, std::string_view name) { return repl_of(L).run->home() + "/" + std::string(name); }

Result<int> prompt_write_kept(lua_State* L) {
  RILLE_CHECK(store::write_file_atomic(kept_path(L, check_text(L, 1, "name")), check_text(L, 2, "text"), 0600));
  return 0;
}

// A name from an altered file must not lead out of the folder.
Result<std::string> tensors_path(lua_State* L) {
  const std::string name(check_text(L, 1, "variable"));
  const auto in_names = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (name.empty() || !std::all_of(name.begin(), name.end(), in_names))
    return make_error(ErrorKind::invalid, fmt::format("variable = '{}': its name is no name of Lua's", name));
  return kept_path(L, "kept/" + name + ".safetensors");
}

// keep_tensors(variable, { { name =, tensor = }, .. }, metadata): starts to write them, and does not wait.
Result<int> prompt_keep_tensors(lua_State* L) {
  RILLE_TRY(std::string path, tensors_path(L));
  TensorKeeper::Request request;
  for (std::size_t i = 1, n = lua_objlen(L, 2); i <= n; ++i) {
    lua_rawgeti(L, 2, static_cast<int>(i));
    request.names.push_back(option_text(L, -1, "name").value_or(""));
    lua_getfield(L, -1, "tensor");
    request.tensors.push_back(lua::check_tensor(L, -1, "tensor"));
    lua_pop(L, 2);
  }
  for (const char* key : {"device", "recipe", "requires_grad"})
    if (auto text = option_text(L, 3, key)) request.metadata[key] = *text;
  repl_of(L).tensors->keep(std::move(path), std::move(request));
  return 0;
}

Result<int> prompt_tensors_path(lua_State* L) {
  RILLE_TRY(const std::string path, tensors_path(L));
  push(L, path);
  return 1;
}

Result<int> prompt_has_tensors(lua_State* L) {
  RILLE_TRY(const std::string path, tensors_path(L));
  std::error_code none;
  push(L, std::filesystem::exists(path, none));
  return 1;
}

Result<int> prompt_drop_tensors(lua_State* L) {
  RILLE_TRY(const std::string path, tensors_path(L));
  repl_of(L).tensors->drop(path);
  return 0;
}

// keep_failure(variable) -> why its tensors could not be written; nil: they could.
Result<int> prompt_keep_failure(lua_State* L) {
  RILLE_TRY(const std::string path, tensors_path(L));
  const std::string why = repl_of(L).tensors->failure(path);
  if (why.empty()) return 0;
  push(L, why);
  return 1;
}

int prompt_tensors_under_way(lua_State* L) {
  push(L, static_cast<std::int64_t>(repl_of(L).tensors->under_way()));
  return 1;
}

// tensor_change(tensor) -> its size in bytes, and a text that is another one after each write to it.
int prompt_tensor_change(lua_State* L) {
  const tensor::Tensor& t = lua::check_tensor(L, 1, "tensor");
  push(L, static_cast<double>(t.size_bytes()));
  push(L, fmt::format("{}:{}:{}", t.impl()->storage->id, t.version(), t.requires_grad()));
  return 2;
}

int prompt_read_kept(lua_State* L) {
  std::ifstream in(kept_path(L, check_text(L, 1, "name")), std::ios::binary);
  if (!in) return 0;
  push(L, std::string(std::istreambuf_iterator<char>(in), {}));
  return 1;
}

}  // namespace

void add_keeping(lua_State* L) {
  set_functions(L, {{"encode", bind<prompt_encode>},
                    {"decode", bind<prompt_decode>},
                    {"ship", bind<prompt_ship>},
                    {"unship", bind<prompt_unship>},
                    {"write_kept", bind<prompt_write_kept>},
                    {"read_kept", bind<prompt_read_kept>},
                    {"keep_tensors", bind<prompt_keep_tensors>},
                    {"tensors_path", bind<prompt_tensors_path>},
                    {"has_tensors", bind<prompt_has_tensors>},
                    {"drop_tensors", bind<prompt_drop_tensors>},
                    {"keep_failure", bind<prompt_keep_failure>},
                    {"tensors_under_way", bind<prompt_tensors_under_way>},
                    {"tensor_change", bind<prompt_tensor_change>}});
}

}  // namespace rille::cli
