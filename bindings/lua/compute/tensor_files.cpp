// Reads safetensors files tensor by tensor, from one file or from the shards of an index.
#include "bindings/lua/compute/tensor_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "bindings/lua/compute/snapshot.hpp"
#include "runtime/core/store/pages.hpp"

namespace rille::lua {

namespace {

// After reading this many bytes, wait for the graph and release cached memory. Otherwise pending operations would
// keep the tensors alive, and the cache would keep freed memory for a tensor of equal size.
constexpr std::size_t settle_after_bytes = 64u << 20;

Result<> settle(lua_State* L, Graph& g) {
  if (g.tracing()) return success();
  lua_gc(L, LUA_GCCOLLECT, 0);  // frees tensors that the script can no longer reach
  RILLE_CHECK(synchronize_here(L, g));
  g.device()->release_cache();
  return success();
}

const char metatable_key = 0, files_key = 0;

// __index(table, name) -> the tensor, or nil. The upvalue maps each table to its TensorFiles.
Result<int> take(lua_State* L) {
  lua_pushvalue(L, 1);
  lua_rawget(L, lua_upvalueindex(1));
  auto& files = check_object<TensorFiles>(L, -1, "the files");
  const char* name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  if (!files.places.contains(name)) return 0;
  RILLE_TRY(Tensor t, read_tensor(L, files, name, graph(L)));
  return push_tensor(L, std::move(t));
}

// Reads an index file: { tensor name = shard file }. The shards lie in the index's folder.
Result<std::map<std::string, std::string>> shards_of(lua_State* L, const std::string& path) {
  // parsed JSON takes many times the bytes of its text
  constexpr std::int64_t bytes_max = 64 << 20, bytes_of_byte = 24;
  RILLE_TRY(const std::string text, store::read_file(path, bytes_max));
  RILLE_TRY(const auto held, MemoryHeld::take(LuaHost::of(L).options().memory, MemoryUse::Part::tensors,
                                              static_cast<std::int64_t>(text.size()) * bytes_of_byte));
  Result<Value> index = Value::from_json(text);
  const Value::Object* map = index ? (*index)["weight_map"].as_object() : nullptr;
  if (!map || map->empty())
    return make_error(ErrorKind::integrity, fmt::format("{} is not an index of safetensors files", path),
                      "it is JSON with the files by the names of their tensors: {\"weight_map\": {..}}");
  std::map<std::string, std::string> out;
  std::error_code ec;
  for (const auto& [tensor, file] : *map) {
    const std::string* name = file.as_string();
    if (!name || name->empty() || name->find('/') != std::string::npos)
      return make_error(ErrorKind::integrity, fmt::format("{}: '{}' should be in {}, which is not a file name", path,
                                                          tensor, file.to_json()));
    std::string shard = store::parent_path(path) + "/" + *name;
    if (!std::filesystem::exists(shard, ec))
      return make_error(ErrorKind::io,
                        fmt::format("{}: its shard '{}' is missing ('{}' is in it)", path, *name, tensor),
                        "put all files that the index names into the folder of the index");
    out[tensor] = std::move(shard);
  }
  return out;
}

// If `path` is a folder, returns the index or the model.safetensors in it; else `path`.
Result<std::string> file_of(std::string path) {
  std::error_code ec;
  if (!std::filesystem::is_directory(path, ec)) return path;
  for (const char* name : {"/model.safetensors.index.json", "/model.safetensors"})
    if (std::filesystem::exists(path + name, ec)) return path + name;
  return make_error(ErrorKind::io, fmt::format("{} has neither model.safetensors nor its index", path),
                    "name the file itself, if it is called otherwise");
}

struct Opened {
  TensorFiles files;
  store::StringMap metadata;
};

Result<TensorFiles::File> open_one(lua_State* L, const std::string& path, Opened& out) {
  RILLE_TRY(auto opened, open_counted(L, path));
  for (const auto& [key, text] : opened->metadata()) out.metadata[key] = text;
  return opened;
}

Result<Opened> open_path(lua_State* L, const std::string& path) {
  Opened out;
  if (!path.ends_with(".index.json")) {
    RILLE_TRY(auto file, open_one(L, path, out));
    out.files.places = data::part_of(file);
    return out;
  }
  RILLE_TRY(const auto shards, shards_of(L, path));
  std::map<std::string, TensorFiles::File> open;
  for (const auto& [name, shard] : shards) {
    auto& file = open[shard];
    if (!file) {
      RILLE_TRY(const std::string granted, may_read(L, shard));
      RILLE_TRY(file, open_one(L, granted, out));
    }
    const auto* entry = file->find(name);
    if (!entry)
      return make_error(ErrorKind::integrity, fmt::format("{}: '{}' is not in {}", path, name, shard),
                        "the index and the files belong to different models or versions: download both again");
    out.files.places[name] = {entry->dtype, entry->shape, {{file, entry}}};
  }
  return out;
}

// tensors_open(path) -> table, names, metadata. path: a file, an index of shards, or a folder that contains either.
Result<int> open_tensors(lua_State* L) {
  RILLE_TRY(std::string path, may_read(L, check_text(L, 1, "the file"), Grants::Names::tree));
  RILLE_TRY(path, file_of(std::move(path)));
  RILLE_TRY(path, may_read(L, path));
  RILLE_TRY(auto opened, open_path(L, path));
  lua_newtable(L);
  int n = 0;
  for (const auto& [name, place] : opened.files.places) {
    push(L, name);
    lua_rawseti(L, -2, ++n);
  }
  lua_newtable(L);
  for (const auto& [name, text] : opened.metadata) set_field(L, name.c_str(), text);
  push_tensor_files(L, std::move(opened.files));
  lua_insert(L, -3);
  return 3;
}

}  // namespace

Result<TensorFiles::File> open_counted(lua_State* L, const std::string& path) {
  struct Counted {
    MemoryHeld held;
    store::SafetensorsFile file;
  };
  const auto counted = std::make_shared<Counted>();
  const auto room = [&](std::int64_t bytes) -> Result<> {
    RILLE_TRY(counted->held, MemoryHeld::take(LuaHost::of(L).options().memory, MemoryUse::Part::tensors, bytes));
    return success();
  };
  RILLE_TRY(counted->file, store::SafetensorsFile::open(path, room));
  return TensorFiles::File(counted, &counted->file);
}

Result<Tensor> read_tensor(lua_State* L, TensorFiles& files, const std::string& name, Graph& g) {
  const data::StateTensor& place = files.places.at(name);
  RILLE_TRY(const DType dtype, type_of_format(place.dtype, name));
  RILLE_TRY(const Dims dims, tensor::make_dims(place.shape));
  std::size_t size_bytes = 0;
  for (const auto& piece : place.pieces) size_bytes += piece.bytes().size();
  if (files.unsettled_bytes += size_bytes; files.unsettled_bytes > settle_after_bytes) {
    files.unsettled_bytes = size_bytes;
    RILLE_CHECK(settle(L, g));
  }
  // after settle, in which finalizers of the script may run
  for (const auto& piece : place.pieces) RILLE_CHECK(store::check_pages(piece.bytes(), name));
  std::string joined;
  MemoryHeld held;
  if (place.pieces.size() > 1) {
    RILLE_TRY(held, MemoryHeld::take(LuaHost::of(L).options().memory, MemoryUse::Part::tensors,
                                     static_cast<std::int64_t>(size_bytes)));
    joined.reserve(size_bytes);
    for (const auto& piece : place.pieces) joined += piece.bytes();
  }
  const std::string_view bytes = joined.empty() ? place.pieces.front().bytes() : std::string_view(joined);
  RILLE_TRY(Tensor t, tensor::from_bytes(g, dims, dtype, bytes.data(), bytes.size()));
  for (const auto& piece : place.pieces) store::forget_pages(piece.bytes());
  return t;
}

TensorFiles* tensor_files(lua_State* L, int index) {
  lua_pushvalue(L, index);
  get_registry(L, &files_key);
  lua_insert(L, -2);
  lua_rawget(L, -2);
  auto* const found = test_object<TensorFiles>(L, -1);
  lua_pop(L, 2);
  return found;
}

// All tables share one metatable. A LuaJIT trace keeps its metatable alive, so metatables that held the files would
// keep the files of the last hundred tables open.
void push_tensor_files(lua_State* L, TensorFiles files) {
  lua_newtable(L);
  get_registry(L, &files_key);
  lua_pushvalue(L, -2);
  push_object(L, std::move(files));
  lua_rawset(L, -3);
  lua_pop(L, 1);
  get_registry(L, &metatable_key);
  lua_setmetatable(L, -2);
}

void add_tensor_file_natives(lua_State* L) {
  define_class<TensorFiles>(L, {.name = "TensorFiles"});
  lua_newtable(L);  // maps a table to its TensorFiles; weak keys
  lua_newtable(L);
  set_field(L, "__mode", "k");
  lua_setmetatable(L, -2);
  lua_pushvalue(L, -1);
  set_registry(L, &files_key);
  lua_newtable(L);
  lua_insert(L, -2);
  lua_pushcclosure(L, bind<take>, 1);
  lua_setfield(L, -2, "__index");
  set_registry(L, &metatable_key);
  set_functions(L, {{"tensors_open", bind<open_tensors>}});
}

}  // namespace rille::lua
