// The byte data set behind rille.data: glue on runtime/data/bytes_dataset.hpp.
#include "bindings/lua/tensor.hpp"
#include "runtime/data/bytes_dataset.hpp"

namespace rille::lua {

namespace {

using data::BytesDataset;

struct BytesHandle { BytesDataset set; };

// bytes(path, {context, seed, split, shuffle})
Result<int> bytes(lua_State* L) {
  std::string path(check_text(L, 1, "rille.data.bytes"));
  data::BytesOptions options;
  if (auto n = option_number(L, 2, "context")) options.context = static_cast<std::int64_t>(*n);
  if (auto n = option_number(L, 2, "seed")) options.seed = static_cast<std::uint64_t>(*n);
  if (auto n = option_number(L, 2, "split")) options.validation = *n;
  if (lua_istable(L, 2)) options.shuffle = option_bool(L, 2, "shuffle", true);
  auto set = BytesDataset::open(path, options);
  if (!set) return at_line(L, std::move(set).error());
  push_object(L, BytesHandle{std::move(*set)});
  return 1;
}

BytesDataset& self(lua_State* L) { return check_object<BytesHandle>(L, 1, "data").set; }

Result<int> push_batch(lua_State* L, const std::vector<std::uint8_t>& x, const std::vector<std::uint8_t>& y,
                       std::int64_t batch, std::int64_t context) {
  Dims shape;
  shape.push(batch);
  shape.push(context);
  Graph& g = graph(L);
  RILLE_TRY(Tensor tx, tensor::from_bytes(g, shape, DType::u8, x.data(), x.size()));
  RILLE_TRY(Tensor ty, tensor::from_bytes(g, shape, DType::u8, y.data(), y.size()));
  push_tensor(L, std::move(tx));
  push_tensor(L, std::move(ty));
  return 2;
}

// next(batch) -> x, y
Result<int> next(lua_State* L) {
  BytesDataset& set = self(L);
  std::int64_t batch = check_integer(L, 2, "batch"), n = batch * set.options().context;
  std::vector<std::uint8_t> x(static_cast<std::size_t>(n)), y(x.size());
  set.next_batch(batch, x.data(), y.data());
  return push_batch(L, x, y, batch, set.options().context);
}

// validation(first, batch): samples from `first` on, counting from 0
Result<int> validation(lua_State* L) {
  BytesDataset& set = self(L);
  std::int64_t first = check_integer(L, 2, "first"), batch = check_integer(L, 3, "batch"),
               n = batch * set.options().context;
  if (set.windows(data::Split::validation) == 0)
    return make_error(ErrorKind::state, "the data set has no validation part, or it is too short for one window",
                      "give more text, a smaller context, or a larger split");
  std::vector<std::uint8_t> x(static_cast<std::size_t>(n)), y(x.size());
  set.validation_batch(static_cast<std::uint64_t>(first), batch, x.data(), y.data());
  return push_batch(L, x, y, batch, set.options().context);
}

Result<int> bigram(lua_State* L) {
  BytesDataset& set = self(L);
  RILLE_TRY(double nats, data::bigram_nats_per_byte(set.bytes(data::Split::train), set.bytes(data::Split::validation)));
  push(L, nats);
  return 1;
}

int info(lua_State* L) {
  BytesDataset& set = self(L);
  lua_newtable(L);
  set_field(L, "context", set.options().context);
  set_field(L, "training_bytes", static_cast<double>(set.bytes(data::Split::train).size()));
  set_field(L, "validation_bytes", static_cast<double>(set.bytes(data::Split::validation).size()));
  set_field(L, "training_windows", static_cast<double>(set.windows(data::Split::train)));
  set_field(L, "validation_windows", static_cast<double>(set.windows(data::Split::validation)));
  set_field(L, "epoch", static_cast<double>(set.epoch()));
  set_field(L, "cursor", static_cast<double>(set.cursor()));
  set_field(L, "digest", set.digest());
  return 1;
}

int state(lua_State* L) {
  push_value(L, self(L).state());
  return 1;
}

Result<int> restore(lua_State* L) {
  RILLE_TRY(Value state, to_value(L, 2, "the data's state"));
  if (auto done = self(L).restore(state); !done) return std::move(done).error();
  return 0;
}

// Text as a [1, n] tensor of u8; for prompts.
Result<int> encode(lua_State* L) {
  std::string_view text = check_text(L, 1, "text");
  Dims shape;
  shape.push(1);
  shape.push(static_cast<std::int64_t>(text.size()));
  return give(L, tensor::from_bytes(graph(L), shape, DType::u8, text.data(), text.size()));
}

}  // namespace

void add_data_natives(lua_State* L) {
  define_class<BytesHandle>(L, {.name = "BytesDataset"});
  set_functions(L, {{"bytes", bind<bytes>},
                    {"bytes_next", bind<next>},
                    {"bytes_validation", bind<validation>},
                    {"bytes_bigram", bind<bigram>},
                    {"bytes_info", bind<info>},
                    {"bytes_state", bind<state>},
                    {"bytes_restore", bind<restore>},
                    {"encode", bind<encode>}});
}

}  // namespace rille::lua
