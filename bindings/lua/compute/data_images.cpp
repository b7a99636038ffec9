// Data sets of images for rille.data; runtime/compute/data/images_dataset.hpp does the work.
#include "bindings/lua/compute/batch.hpp"
#include "runtime/compute/data/images_dataset.hpp"

namespace rille::lua {

namespace {

using data::ImageBatch;
using data::ImagesDataset;

struct ImagesHandle {
  std::vector<MemoryHeld> held;  // counts the index
  ImagesDataset set;
};

ImagesDataset& images_self(lua_State* L) { return check_object<ImagesHandle>(L, 1, "data").set; }

// images(path, {size, resize, train, seed, split, skip_damaged, labels, scale_least, scale_most}, mean, deviation:
// lists of three numbers) -> data set
Result<int> images(lua_State* L) {
  RILLE_TRY(const std::string path, may_read(L, check_text(L, 1, "rille.data.images"), Grants::Names::tree));
  const auto number = [&](const char* key, double otherwise) { return option_number(L, 2, key).value_or(otherwise); };
  data::ImagesOptions o;
  o.size = static_cast<std::int64_t>(number("size", 224));
  o.resize = static_cast<std::int64_t>(number("resize", 0));
  o.seed = static_cast<std::uint64_t>(number("seed", 0));
  o.validation = number("split", 0);
  o.scale_least = number("scale_least", o.scale_least), o.scale_most = number("scale_most", o.scale_most);
  o.train = option_bool(L, 2, "train", true);
  o.skip_damaged = option_bool(L, 2, "skip_damaged", false);
  o.labels = option_text(L, 2, "labels").value_or("");
  for (int c = 0; c < 3; ++c) {
    for (const int list : {3, 4}) {
      if (!lua_istable(L, list)) continue;
      lua_rawgeti(L, list, c + 1);
      auto& values = list == 3 ? o.mean : o.deviation;
      values[static_cast<std::size_t>(c)] = check_number(L, -1, list == 3 ? "mean" : "deviation");
      lua_pop(L, 1);
    }
  }
  std::vector<MemoryHeld> held;
  auto set = ImagesDataset::open(path, o, {look_at_limits(L), keep_room(L, held), {}}, LuaHost::of(L).options().memory);
  if (!set) return at_line(L, std::move(set).error());
  push_object(L, ImagesHandle{std::move(held), std::move(*set)});
  return 1;
}

// Pushes x and y on the device at stack index `device`; nil: the default device.
Result<int> push_images(lua_State* L, const ImagesDataset& set, int device, const ImageBatch& batch) {
  Graph& g = lua_isnoneornil(L, device) ? graph(L) : device_graph(L, device, "the device");
  const std::int64_t rows = static_cast<std::int64_t>(batch.y.size()), size = set.options().size;
  RILLE_TRY(const Dims images, tensor::make_dims({rows, 3, size, size}));
  RILLE_TRY(const Dims labels, tensor::make_dims({rows}));
  const std::size_t bytes = static_cast<std::size_t>(images.count()) * sizeof(float);
  RILLE_TRY(Tensor x, tensor::from_bytes(g, images, DType::f32, batch.x.get(), bytes));
  RILLE_TRY(Tensor y, tensor::from_bytes(g, labels, DType::i32, batch.y.data(), batch.y.size() * sizeof(batch.y[0])));
  push_tensor(L, std::move(x));
  push_tensor(L, std::move(y));
  return 2;
}

// next(batch size, rank, world, device | nil) -> x, y
Result<int> images_next(lua_State* L) {
  ImagesDataset& set = images_self(L);
  RILLE_TRY(const Batch b, next_wanted(L));
  RILLE_TRY(const ImageBatch batch, set.next(b.rows, b.rank, b.world, look_at_limits(L)));
  return push_images(L, set, 5, batch);
}

// validation(first, batch size, device | nil) -> x, y of `batch` images from number `first` (from 0) on
Result<int> images_validation(lua_State* L) {
  ImagesDataset& set = images_self(L);
  RILLE_TRY(const Batch b, validation_wanted(L));
  if (set.validation_rows() == 0)
    return make_error(ErrorKind::state, "the data set has no validation part",
                      "set aside a part of the images: split = 0.1");
  RILLE_TRY(const ImageBatch batch, set.validation(b.first, b.rows, look_at_limits(L)));
  return push_images(L, set, 4, batch);
}

int images_info(lua_State* L) {
  ImagesDataset& set = images_self(L);
  lua_newtable(L);
  set_field(L, "training_rows", static_cast<double>(set.rows()));
  set_field(L, "validation_rows", static_cast<double>(set.validation_rows()));
  set_field(L, "classes", static_cast<double>(set.index().class_count()));
  set_field(L, "epoch", static_cast<double>(set.epoch()));
  set_field(L, "cursor", static_cast<double>(set.cursor()));
  set_field(L, "damaged", static_cast<double>(set.damaged()));
  set_field(L, "digest", set.index().digest());
  lua_newtable(L);
  int i = 0;
  for (const std::string& name : set.index().class_names()) {
    push(L, name);
    lua_rawseti(L, -2, ++i);
  }
  lua_setfield(L, -2, "class_names");
  return 1;
}

int images_state(lua_State* L) {
  push_value(L, images_self(L).state());
  return 1;
}

Result<int> images_restore(lua_State* L) {
  RILLE_TRY(Value state, to_value(L, 2, "the data's state"));
  if (auto done = images_self(L).restore(state); !done) return std::move(done).error();
  return 0;
}

}  // namespace

void add_image_set_natives(lua_State* L) {
  define_class<ImagesHandle>(L, {.name = "ImagesDataset"});
  set_functions(L, {{"images", bind<images>},
                    {"images_next", bind<images_next>},
                    {"images_validation", bind<images_validation>},
                    {"images_info", bind<images_info>},
                    {"images_state", bind<images_state>},
                    {"images_restore", bind<images_restore>}});
}

}  // namespace rille::lua
