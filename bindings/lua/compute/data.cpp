// Data sets of bytes and tokens for rille.data; runtime/compute/data/bytes_dataset.hpp does the work.
#include "bindings/lua/compute/batch.hpp"
#include "bindings/lua/compute/job_limits.hpp"
#include "runtime/compute/data/bytes_dataset.hpp"
#include "runtime/compute/data/dataset.hpp"
#include "runtime/compute/data/token_files.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/loop/thread_job.hpp"

namespace rille::lua {

namespace {

using data::BytesDataset;

struct BytesHandle {
  BytesDataset set;
  MemoryHeld held;  // counts the text of a folder
};

data::BytesOptions bytes_options(lua_State* L, int index) {
  data::BytesOptions options;
  if (auto n = option_number(L, index, "context")) options.context = static_cast<std::int64_t>(*n);
  if (auto n = option_number(L, index, "seed")) options.seed = static_cast<std::uint64_t>(*n);
  if (auto n = option_number(L, index, "split")) options.validation = *n;
  if (lua_istable(L, index)) options.shuffle = option_bool(L, index, "shuffle", true);
  return options;
}

Result<int> push_set(lua_State* L, Result<BytesDataset> set, MemoryHeld held = {}) {
  if (!set) return at_line(L, std::move(set).error());
  push_object(L, BytesHandle{std::move(*set), std::move(held)});
  return 1;
}

// bytes(path, {context, seed, split, shuffle}) -> data set
Result<int> bytes(lua_State* L) {
  RILLE_TRY(const std::string path, may_read(L, check_text(L, 1, "rille.data.bytes"), Grants::Names::tree));
  MemoryHeld held;
  const auto room = [&](std::int64_t bytes) -> Result<> {
    RILLE_TRY(held, MemoryHeld::take(LuaHost::of(L).options().memory, MemoryUse::Part::tensors, bytes));
    return success();
  };
  Result<BytesDataset> set = BytesDataset::open(path, bytes_options(L, 2), look_at_limits(L), room);
  return push_set(L, std::move(set), std::move(held));
}

Result<std::vector<data::TokenFile>> open_files(lua_State* L, const std::string& path, int width_bytes) {
  std::vector<data::TokenFile> out;
  if (path.empty()) return out;
  RILLE_TRY(const auto files, data::files_of(path, look_at_limits(L)));
  for (const std::string& file : files) {
    RILLE_TRY(auto opened, data::TokenFile::open(file, width_bytes));
    out.push_back(std::move(opened));
  }
  return out;
}

// The files of a part, "train" or "validation", of a data set that was built.
Result<std::vector<data::TokenFile>> open_shards(const std::string& folder, const data::Dataset& set,
                                                 std::string_view part) {
  std::vector<data::TokenFile> out;
  for (const data::Shard& shard : set.shards) {
    if (shard.part != part) continue;
    RILLE_TRY(auto opened, data::TokenFile::open(folder + "/" + shard.path));
    out.push_back(std::move(opened));
  }
  return out;
}

struct TokenParts {
  std::vector<data::TokenFile> training, validation;
};

// `other`: the path of the validation files; "": the validation part of a data set that was built, if it has one.
Result<TokenParts> open_parts(lua_State* L, const std::string& path, const std::string& other, int width_bytes) {
  TokenParts out;
  std::vector<MemoryHeld> held;
  RILLE_TRY(const auto built, data::open_dataset(path, "text", keep_room(L, held)));
  if (built) {
    RILLE_TRY(out.training, open_shards(path, *built, "train"));
    RILLE_TRY(out.validation, open_shards(path, *built, "validation"));
  } else {
    RILLE_TRY(out.training, open_files(L, path, width_bytes));
  }
  if (other.empty()) return out;
  RILLE_TRY(out.validation, open_files(L, other, width_bytes));
  return out;
}

char made_key;  // its address is the registry key of a table: the paths of the files that tokenize has made

void push_made(lua_State* L) {
  get_registry(L, &made_key);
  if (!lua_isnil(L, -1)) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  set_registry(L, &made_key);
}

// Token files in Rille's own cache need no grant if this script has had them made.
Result<std::string> may_read_tokens(lua_State* L, std::string path) {
  StackGuard guard(L);
  push_made(L);
  push(L, path);
  lua_rawget(L, -2);
  if (path.empty() || lua_toboolean(L, -1)) return path;
  return may_read(L, path, Grants::Names::tree);
}

// tokens(path, path of the validation file or "", {context, seed, split, shuffle, width}) -> data set
Result<int> tokens(lua_State* L) {
  RILLE_TRY(const std::string path, may_read_tokens(L, std::string(check_text(L, 1, "rille.data.tokens"))));
  RILLE_TRY(const std::string other, may_read_tokens(L, std::string(check_text(L, 2, "rille.data.tokens"))));
  const int width = static_cast<int>(option_number(L, 3, "width").value_or(0));
  auto parts = open_parts(L, path, other, width);
  if (!parts) return at_line(L, std::move(parts).error());
  return push_set(L, BytesDataset::open_tokens(std::move(parts->training), std::move(parts->validation),
                                               bytes_options(L, 3), look_at_limits(L)));
}

// The folder of token files made from the text at `path`. One for all runs; but a run that is not trusted could put
// wrong ids there for others, by changing the text while it is read, so such a run has its own.
Result<std::string> tokens_folder(LuaHost& host, const std::string& path) {
  if (!host.has_run() || (!host.options().under_limits && host.grants().is_everything())) {
    const std::string home = default_home();
    return home.empty() ? path + ".tokens" : home + "/cache/tokens";
  }
  engine::RunControl& run = host.control();
  std::string folder = run.home();
  if (run.mode() != engine::Mode::durable || folder == engine::in_memory_home)
    return make_error(ErrorKind::state, "a text's tokens are kept in the run's folder, and this run has none",
                      "write them in another run, and open that file with rille.data.tokens");
  return folder + "/tokens";
}

Async<std::string> tokenize_on_thread(Loop& loop, std::string path, std::string tokenizer, std::string pattern,
                                      std::string folder, JobLimits limits) {
  std::function<Result<std::string>()> job = [path = std::move(path), tokenizer, pattern, folder = std::move(folder),
                                              limits = std::move(limits)]() -> Result<std::string> {
    std::vector<MemoryHeld> held;
    const data::Room disk = [&](std::int64_t bytes) { return limits.disk ? limits.disk->take(bytes) : success(); };
    const data::Room room = [&](std::int64_t bytes) -> Result<> {
      RILLE_TRY(MemoryHeld one, MemoryHeld::take(limits.memory, MemoryUse::Part::tensors, bytes));
      held.push_back(std::move(one));
      return success();
    };
    return limits.run([&](const data::Look& look) {
      return data::tokenize(path, tokenizer, pattern, folder, {look, room, [&] { held.clear(); }}, disk);
    });
  };
  co_return co_await thread_job(loop, std::move(job));
}

// tokenize(path, path of the tokenizer, its pattern) -> path of a file of token ids. Suspends the fiber.
Result<int> tokenize(lua_State* L) {
  RILLE_TRY(std::string path, may_read(L, check_text(L, 1, "path"), Grants::Names::tree));
  RILLE_TRY(std::string tokenizer, may_read(L, check_text(L, 2, "tokenizer"), Grants::Names::tree));
  std::string pattern(check_text(L, 3, "pattern"));
  LuaHost& host = LuaHost::of(L);
  RILLE_TRY(std::string folder, tokens_folder(host, path));
  JobLimits limits = JobLimits::of(host);
  return await(L,
               tokenize_on_thread(host.loop(), std::move(path), std::move(tokenizer), std::move(pattern),
                                  std::move(folder), std::move(limits)),
               [](lua_State* l, std::string made) {
                 push_made(l);
                 push(l, made);
                 lua_pushboolean(l, 1);
                 lua_rawset(l, -3);
                 push(l, made);
                 return 1;
               });
}

BytesDataset& bytes_self(lua_State* L) { return check_object<BytesHandle>(L, 1, "data").set; }

template <class T, class Fill>
Result<int> push_batch(lua_State* L, Graph& g, std::int64_t batch, std::int64_t context, DType dtype,
                       const Fill& fill) {
  RILLE_TRY(const MemoryHeld held, memory_for(L, batch, {2, context}, dtype));
  const auto count = static_cast<std::size_t>(batch * context);
  const auto x = std::make_unique_for_overwrite<T[]>(count), y = std::make_unique_for_overwrite<T[]>(count);
  fill(x.get(), y.get());
  Dims shape;
  shape.push(batch);
  shape.push(context);
  RILLE_TRY(Tensor tx, tensor::from_bytes(g, shape, dtype, x.get(), count * sizeof(T)));
  RILLE_TRY(Tensor ty, tensor::from_bytes(g, shape, dtype, y.get(), count * sizeof(T)));
  push_tensor(L, std::move(tx));
  push_tensor(L, std::move(ty));
  return 2;
}

// Pushes x and y, u8 for bytes and i32 for tokens, on the device at stack index `device`; nil: the default device.
template <class Fill>
Result<int> push_batch(lua_State* L, const BytesDataset& set, std::int64_t batch, int device, const Fill& fill) {
  const std::int64_t context = set.options().context;
  RILLE_CHECK(set.check_files());
  Graph& g = lua_isnoneornil(L, device) ? graph(L) : device_graph(L, device, "the device");
  if (set.is_tokens()) return push_batch<std::int32_t>(L, g, batch, context, DType::i32, fill);
  return push_batch<std::uint8_t>(L, g, batch, context, DType::u8, fill);
}

// next(batch size, rank, world, device | nil) -> x, y
Result<int> bytes_next(lua_State* L) {
  BytesDataset& set = bytes_self(L);
  RILLE_TRY(const Batch b, next_wanted(L));
  return push_batch(L, set, b.rows, 5,
                    [&](auto* x, auto* y) { set.next_batch(b.rows, x, y, b.rank, b.world, look_at_limits(L)); });
}

// validation(first, batch size, device | nil) -> x, y of `batch` samples from number `first` (from 0) on
Result<int> bytes_validation(lua_State* L) {
  BytesDataset& set = bytes_self(L);
  RILLE_TRY(const Batch b, validation_wanted(L));
  if (set.windows(data::Split::validation) == 0)
    return make_error(ErrorKind::state, "the data set has no validation part, or it is too short for one window",
                      "use more text, a smaller context, or a larger split");
  const auto fill = [&](auto* x, auto* y) { set.validation_batch(b.first, b.rows, x, y, look_at_limits(L)); };
  return push_batch(L, set, b.rows, 4, fill);
}

Result<int> bigram(lua_State* L) {
  BytesDataset& set = bytes_self(L);
  constexpr double add = 0.5;
  RILLE_CHECK(set.check_files());
  RILLE_TRY(double nats, data::bigram_nats_per_byte(set.bytes(data::Split::train), set.bytes(data::Split::validation),
                                                    add, look_at_limits(L)));
  push(L, nats);
  return 1;
}

int bytes_info(lua_State* L) {
  BytesDataset& set = bytes_self(L);
  lua_newtable(L);
  set_field(L, "context", set.options().context);
  const bool ids = set.is_tokens();
  const auto elements = [&](data::Split split) { return static_cast<double>(set.elements(split)); };
  set_field(L, ids ? "training_tokens" : "training_bytes", elements(data::Split::train));
  set_field(L, ids ? "validation_tokens" : "validation_bytes", elements(data::Split::validation));
  set_field(L, "training_windows", static_cast<double>(set.windows(data::Split::train)));
  set_field(L, "validation_windows", static_cast<double>(set.windows(data::Split::validation)));
  set_field(L, "epoch", static_cast<double>(set.epoch()));
  set_field(L, "cursor", static_cast<double>(set.cursor()));
  set_field(L, "digest", set.digest());
  return 1;
}

int bytes_state(lua_State* L) {
  push_value(L, bytes_self(L).state());
  return 1;
}

Result<int> bytes_restore(lua_State* L) {
  RILLE_TRY(Value state, to_value(L, 2, "the data's state"));
  if (auto done = bytes_self(L).restore(state); !done) return std::move(done).error();
  return 0;
}

// Turns text into a [1, n] tensor of u8, for prompts.
Result<int> encode_bytes(lua_State* L) {
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
                    {"tokens", bind<tokens>},
                    {"bytes_next", bind<bytes_next>},
                    {"bytes_validation", bind<bytes_validation>},
                    {"bytes_bigram", bind<bigram>},
                    {"bytes_info", bind<bytes_info>},
                    {"bytes_state", bind<bytes_state>},
                    {"bytes_restore", bind<bytes_restore>},
                    {"encode", bind<encode_bytes>}});
  set_async(L, "tokenize", bind<tokenize>);
}

}  // namespace rille::lua
