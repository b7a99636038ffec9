// Data sets of arrays for rille.data; runtime/compute/data/arrays_dataset.hpp does the work.
#include <filesystem>

#include "bindings/lua/compute/batch.hpp"
#include "bindings/lua/compute/snapshot.hpp"
#include "bindings/lua/compute/tensor_files.hpp"
#include "runtime/compute/data/arrays_dataset.hpp"
#include "runtime/compute/data/dataset.hpp"
#include "runtime/core/store/pages.hpp"
#include "runtime/core/store/safetensors.hpp"

namespace rille::lua {

namespace {

using data::Array;
using data::ArraysDataset;

struct ArraysHandle {
  ArraysDataset set;
};

ArraysDataset& arrays_self(lua_State* L) { return check_object<ArraysHandle>(L, 1, "data").set; }

// Reads the list of names at `index`; nil: returns all of `known`, in their order.
std::vector<std::string> names_of(lua_State* L, int index, std::vector<std::string> known) {
  if (!lua_istable(L, index)) return known;
  std::vector<std::string> out;
  for (std::size_t i = 1, n = lua_objlen(L, index); i <= n; ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    out.emplace_back(check_text(L, -1, "rille.data.arrays: a name"));
    lua_pop(L, 1);
  }
  return out;
}

// The path to open: of a folder that `rille data build` made, the file in it.
Result<std::string> granted_file(lua_State* L, const std::string& path) {
  RILLE_TRY(std::string folder, may_read(L, path, Grants::Names::tree));
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed)) return folder;
  std::vector<MemoryHeld> held;
  RILLE_TRY(const auto built, data::open_dataset(folder, "csv", keep_room(L, held)));
  if (!built || built->shards.size() != 1)
    return make_error(ErrorKind::invalid, fmt::format("the folder '{}' has no {} of a table", path, data::dataset_name),
                      "name a safetensors file, or a folder that `rille data build` made of a CSV file");
  return folder + "/" + built->shards.front().path;
}

Result<std::vector<Array>> mapped(lua_State* L, const std::string& path) {
  RILLE_TRY(const std::string granted, granted_file(L, path));
  RILLE_TRY(const auto file, open_counted(L, granted));
  std::vector<std::string> known;
  for (const auto& t : file->tensors()) known.push_back(t.name);
  std::vector<Array> out;
  for (const std::string& name : names_of(L, 3, std::move(known))) {
    const auto* entry = file->find(name);
    if (!entry)
      return make_error(ErrorKind::state, fmt::format("'{}' has no tensor '{}'", path, name),
                        "name only tensors that this file has, or leave the names out to take all");
    RILLE_TRY(const DType dtype, type_of_format(entry->dtype, name));
    out.push_back({name, dtype, entry->shape, file->bytes(*entry), file});
  }
  return out;
}

std::vector<Array> taken(const Snapshot& snapshot) {
  std::vector<Array> out;
  for (const auto& e : *snapshot.entries) {
    const auto* bytes = reinterpret_cast<const char*>(e.data.bytes.data());
    const auto& shape = e.data.shape;
    out.push_back({e.name, e.data.dtype, {shape.d, shape.d + shape.n}, {bytes, e.data.bytes.size()}, snapshot.entries});
  }
  return out;
}

// arrays(path or snapshot, {seed, split, shuffle, flip, crop_height, crop_width, padding}, names of the arrays to
// use; nil: all)
Result<int> arrays(lua_State* L) {
  tensor_state(L);
  const auto number = [&](const char* key) { return option_number(L, 2, key).value_or(0); };
  data::ArraysOptions o;
  o.seed = static_cast<std::uint64_t>(number("seed"));
  o.validation = number("split");
  o.shuffle = option_bool(L, 2, "shuffle", true);
  o.flip = option_bool(L, 2, "flip", false);
  o.crop_height = static_cast<std::int64_t>(number("crop_height"));
  o.crop_width = static_cast<std::int64_t>(number("crop_width"));
  o.padding = static_cast<std::int64_t>(number("padding"));
  Result<std::vector<Array>> list = std::vector<Array>{};
  if (lua_type(L, 1) == LUA_TSTRING) list = mapped(L, lua_tostring(L, 1));
  else list = taken(check_object<Snapshot>(L, 1, "arrays"));
  if (!list) return at_line(L, std::move(list).error());
  auto set = ArraysDataset::create(std::move(*list), o, look_at_limits(L));
  if (!set) return at_line(L, std::move(set).error());
  push_object(L, ArraysHandle{std::move(*set)});
  return 1;
}

// Pushes one tensor per array, on the device at stack index `device`; nil: the default device.
Result<int> push_rows(lua_State* L, const ArraysDataset& set, std::int64_t batch, int device,
                      const std::vector<std::vector<std::byte>>& rows) {
  Graph& g = lua_isnoneornil(L, device) ? graph(L) : device_graph(L, device, "the device");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::int64_t> sizes = set.row_shape(i);
    sizes.insert(sizes.begin(), batch);
    RILLE_TRY(const Dims shape, tensor::make_dims(sizes));
    RILLE_TRY(Tensor t, tensor::from_bytes(g, shape, set.arrays()[i].dtype, rows[i].data(), rows[i].size()));
    push_tensor(L, std::move(t));
  }
  return static_cast<int>(rows.size());
}

// Counts the rows of a batch before they are gathered, and checks that the files still exist.
Result<std::vector<MemoryHeld>> room_for(lua_State* L, const ArraysDataset& set, std::int64_t batch) {
  std::vector<MemoryHeld> held;
  for (std::size_t i = 0; i < set.arrays().size(); ++i) {
    RILLE_TRY(MemoryHeld one, memory_for(L, batch, set.row_shape(i), set.arrays()[i].dtype));
    held.push_back(std::move(one));
    RILLE_CHECK(store::check_pages(set.arrays()[i].bytes, set.arrays()[i].name));
  }
  return held;
}

Result<int> arrays_next(lua_State* L) {
  ArraysDataset& set = arrays_self(L);
  RILLE_TRY(const Batch b, next_wanted(L));
  RILLE_TRY(const auto held, room_for(L, set, b.rows));
  return push_rows(L, set, b.rows, 5, set.next(b.rows, b.rank, b.world, look_at_limits(L)));
}

// validation(first, batch size, device | nil): returns `batch` rows from number `first` (from 0) on
Result<int> arrays_validation(lua_State* L) {
  ArraysDataset& set = arrays_self(L);
  RILLE_TRY(const Batch b, validation_wanted(L));
  if (set.validation_rows() == 0)
    return make_error(ErrorKind::state, "the data set has no validation part",
                      "set aside a part of the rows: split = 0.1");
  RILLE_TRY(const auto held, room_for(L, set, b.rows));
  return push_rows(L, set, b.rows, 4, set.validation(b.first, b.rows, look_at_limits(L)));
}

int arrays_info(lua_State* L) {
  ArraysDataset& set = arrays_self(L);
  lua_newtable(L);
  set_field(L, "training_rows", static_cast<double>(set.rows()));
  set_field(L, "validation_rows", static_cast<double>(set.validation_rows()));
  set_field(L, "epoch", static_cast<double>(set.epoch()));
  set_field(L, "cursor", static_cast<double>(set.cursor()));
  set_field(L, "digest", set.digest());
  return 1;
}

int arrays_state(lua_State* L) {
  push_value(L, arrays_self(L).state());
  return 1;
}

Result<int> arrays_restore(lua_State* L) {
  RILLE_TRY(Value state, to_value(L, 2, "the data's state"));
  if (auto done = arrays_self(L).restore(state); !done) return std::move(done).error();
  return 0;
}

}  // namespace

void add_array_natives(lua_State* L) {
  define_class<ArraysHandle>(L, {.name = "ArraysDataset"});
  set_functions(L, {{"arrays", bind<arrays>},
                    {"arrays_next", bind<arrays_next>},
                    {"arrays_validation", bind<arrays_validation>},
                    {"arrays_info", bind<arrays_info>},
                    {"arrays_state", bind<arrays_state>},
                    {"arrays_restore", bind<arrays_restore>}});
}

}  // namespace rille::lua
