// Saves and loads tensors; C functions for stdlib/checkpoint.lua. A snapshot copies tensor values to host memory. A
// background thread writes the copies while training continues; the Write object tells when the files are complete.
#include <utility>

#include "bindings/lua/compute/checkpoint_write.hpp"
#include "bindings/lua/compute/tensor_files.hpp"
#include "runtime/core/loop/thread_job.hpp"

namespace rille::lua {

namespace {

struct WriteState {
  std::optional<Result<Value>> outcome;
  std::optional<Completion> waiter;
};
struct Write {
  std::shared_ptr<WriteState> state;
};

struct Stored {  // a checkpoint whose files are verified and open for reading
  data::Checkpoint checkpoint;
  std::map<std::string, data::StatePart> parts;
  std::vector<std::string> skipped;  // newer checkpoints that failed verification, each with the reason
};

}  // namespace

const char* format_name(DType t) {
  switch (t) {
    case DType::boolean: return "BOOL";
    case DType::u8: return "U8";
    case DType::i8: return "I8";
    case DType::i32: return "I32";
    case DType::i64: return "I64";
    case DType::f16: return "F16";
    case DType::bf16: return "BF16";
    case DType::f32: return "F32";
    case DType::f64: return "F64";
  }
  return "?";
}

Result<DType> type_of_format(const std::string& type, const std::string& tensor) {
  for (DType t :
       {DType::boolean, DType::u8, DType::i8, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64})
    if (type == format_name(t)) return t;
  return make_error(
      ErrorKind::invalid,
      fmt::format("tensor '{}' of the file is of type {}, which Rille does not compute with", tensor, type),
      "convert the file first: BF16, F16, F32, F64, I8, I32, I64, U8 and BOOL can be read");
}

namespace {

// snapshot({{part =, name =, tensor =, first =, of =}, ..}) -> Snapshot. Suspends the fiber until the values are in
// host memory. With `of`, the tensor is a slice: rows from `first` of so many.
int snapshot(lua_State* L) {
  check_table(L, 1, "snapshot");
  auto entries = std::make_shared<std::vector<Snapshot::Entry>>();
  std::vector<Tensor> tensors;
  for (std::size_t i = 1, n = lua_objlen(L, 1); i <= n; ++i) {
    lua_rawgeti(L, 1, static_cast<int>(i));
    Snapshot::Entry entry{option_text(L, -1, "part").value_or("model"), option_text(L, -1, "name").value_or(""), {}};
    if (const auto of = option_number(L, -1, "of"))
      entry.slice = data::Slice{static_cast<std::int64_t>(option_number(L, -1, "first").value_or(0)),
                                static_cast<std::int64_t>(*of)};
    entries->push_back(std::move(entry));
    lua_getfield(L, -1, "tensor");
    tensors.push_back(check_tensor(L, -1, "snapshot"));
    lua_pop(L, 2);
  }
  return await_values(L, std::move(tensors), [entries](lua_State* l, std::vector<HostData> values) {
    for (std::size_t i = 0; i < values.size(); ++i) (*entries)[i].data = std::move(values[i]);
    push_object(l, Snapshot{entries});
    return 1;
  });
}

store::TensorSource source_of(const Snapshot::Entry& e) {
  store::TensorSource source{e.name, format_name(e.data.dtype), {}, e.data.bytes.data(), {}};
  for (int d = 0; d < e.data.shape.n; ++d) source.shape.push_back(e.data.shape[d]);
  return source;
}

void settle(const std::shared_ptr<WriteState>& state) {
  if (!state->waiter) return;
  Completion waiter = *state->waiter;
  state->waiter.reset();
  if (*state->outcome)
    waiter.finish([state](lua_State* l) {
      push_value(l, **state->outcome);
      return 1;
    });
  else waiter.fail(state->outcome->error());
}

// The job captures by value: this frame may be destroyed before the thread ends.
Task<void> drive_write(Loop& loop, std::function<Result<Value>()> job, std::shared_ptr<WriteState> state) {
  auto written = co_await thread_job(loop, std::move(job));
  state->outcome.emplace(std::move(written));
  settle(state);
}

}  // namespace

Result<CheckpointPlan> checkpoint_plan(lua_State* L, int options) {
  LuaHost& host = LuaHost::of(L);
  CheckpointPlan plan;
  const std::string directory = option_text(L, options, "directory").value_or("checkpoints");
  RILLE_TRY(plan.root, host.grants().write(directory, Grants::Names::tree));
  plan.step = static_cast<std::int64_t>(option_number(L, options, "step").value_or(0));
  plan.keep.keep = static_cast<int>(option_number(L, options, "keep").value_or(3));
  plan.keep.every = static_cast<std::int64_t>(option_number(L, options, "keep_every").value_or(0));
  plan.manifest.created_us = host.loop().clock().wall_us();
  RILLE_TRY(Value all, to_value(L, options, "checkpoint"));
  plan.manifest.cursor = all["cursor"];
  plan.manifest.rng = all["rng"];
  plan.manifest.metadata = all["metadata"];
  return plan;
}

Result<> count_files(lua_State* L, const std::vector<Snapshot::Entry>& entries,
                     std::initializer_list<const Value*> others) {
  constexpr std::size_t header_row_bytes = 100;
  const auto& disk = LuaHost::of(L).options().disk;
  if (!disk) return {};
  std::size_t bytes = 0;
  for (const auto& e : entries) bytes += e.data.bytes.size() + e.name.size() + header_row_bytes;
  for (const Value* other : others) bytes += other->to_json().size();
  return disk->take(static_cast<std::int64_t>(bytes));
}

std::map<std::string, std::vector<data::StateSource>> parts_of(const std::vector<Snapshot::Entry>& entries) {
  std::map<std::string, std::vector<data::StateSource>> out;
  for (const auto& e : entries) out[e.part].push_back({source_of(e), e.slice});
  return out;
}

Result<Value> publish_checkpoint(data::CheckpointWriter& writer, const CheckpointPlan& plan) {
  RILLE_TRY(const data::Checkpoint done, writer.publish(plan.manifest));
  data::link_latest(plan.root, plan.step);
  if (auto removed = data::CheckpointStore(plan.root).retain(plan.keep); !removed) return std::move(removed).error();
  Value out;
  out.set("event", "checkpoint").set("step", plan.step).set("directory", done.directory);
  std::int64_t size = 0;
  for (const auto& f : done.manifest.files) size += f.fingerprint.size_bytes;
  out.set("size_bytes", size);
  return out;
}

int begin_write(lua_State* L, std::function<Result<Value>()> job) {
  auto state = std::make_shared<WriteState>();
  Loop& loop = LuaHost::of(L).loop();
  loop.spawn(drive_write(loop, std::move(job), state));
  push_object(L, Write{state});
  return 1;
}

namespace {

// runs on a background thread
Result<Value> write_files(const CheckpointPlan& plan, const std::vector<Snapshot::Entry>& entries) {
  data::CheckpointStore store(plan.root);
  RILLE_TRY(const std::optional<data::Checkpoint> before, store.latest());
  RILLE_TRY(data::CheckpointWriter writer, store.begin(plan.step));
  for (const auto& [part, tensors] : parts_of(entries))
    RILLE_CHECK(writer.write(part, tensors, before ? &*before : nullptr));
  return publish_checkpoint(writer, plan);
}

// write(snapshot, {directory=, step=, keep=, keep_every=, cursor=, rng=, metadata=}) -> Write; returns before the
// files are written
Result<int> write(lua_State* L) {
  const auto entries = check_object<Snapshot>(L, 1, "snapshot").entries;
  RILLE_TRY(CheckpointPlan plan, checkpoint_plan(L, 2));
  RILLE_CHECK(count_files(L, *entries, {&plan.manifest.cursor, &plan.manifest.rng, &plan.manifest.metadata}));
  return begin_write(L, [plan = std::move(plan), entries] { return write_files(plan, *entries); });
}

// poll(write) -> nil while the write is running; afterwards {step=, directory=, size_bytes=}; raises if the write
// failed
Result<int> poll(lua_State* L) {
  auto& state = *check_object<Write>(L, 1, "write").state;
  if (!state.outcome) return 0;
  if (!*state.outcome) return Error(state.outcome->error());
  push_value(L, **state.outcome);
  return 1;
}

int wait_write(lua_State* L) {
  auto state = check_object<Write>(L, 1, "write").state;
  state->waiter = begin_await(L);
  if (state->outcome) settle(state);
  return end_await(L);
}

Async<Stored> open_latest(Loop& loop, std::string root, std::int64_t step) {
  std::function<Result<Stored>()> job = [root = std::move(root), step]() -> Result<Stored> {
    data::CheckpointStore store(root);
    Stored out;
    if (step >= 0) {
      RILLE_TRY(out.checkpoint, store.load(step));
    } else {
      std::vector<Error> skipped;
      RILLE_TRY(out.checkpoint, store.load_latest(false, &skipped));
      for (const Error& e : skipped) out.skipped.push_back(e.message);
    }
    RILLE_TRY(out.parts, data::open_parts(out.checkpoint));
    return out;
  };
  co_return co_await thread_job(loop, std::move(job));
}

int push_stored(lua_State* L, Stored stored) {
  const auto& m = stored.checkpoint.manifest;
  lua_newtable(L);
  set_field(L, "step", m.step);
  set_field(L, "directory", stored.checkpoint.directory);
  push_value(L, m.cursor);
  lua_setfield(L, -2, "cursor");
  push_value(L, m.rng);
  lua_setfield(L, -2, "rng");
  push_value(L, m.metadata);
  lua_setfield(L, -2, "metadata");
  push_value(L, Value(Value::Array(stored.skipped.begin(), stored.skipped.end())));
  lua_setfield(L, -2, "skipped");
  push_object(L, std::move(stored));
  lua_setfield(L, -2, "files");
  return 1;
}

// open(directory, step | nil: newest) -> {step, directory, cursor, rng, metadata, skipped, files}
Result<int> open_checkpoint(lua_State* L) {
  RILLE_TRY(std::string root, may_read(L, check_text(L, 1, "the checkpoints' directory"), Grants::Names::tree));
  std::int64_t step = lua_isnoneornil(L, 2) ? -1 : check_integer(L, 2, "step");
  return await(L, open_latest(LuaHost::of(L).loop(), std::move(root), step), push_stored);
}

// any(directory) -> whether the directory contains a checkpoint; damaged checkpoints count
Result<int> any(lua_State* L) {
  RILLE_TRY(std::string root, may_read(L, check_text(L, 1, "directory"), Grants::Names::tree));
  RILLE_TRY(bool found, data::CheckpointStore(std::move(root)).any());
  push(L, found);
  return 1;
}

// newest(directory) -> the step of the newest complete checkpoint; -1: there is none
Result<int> newest(lua_State* L) {
  RILLE_TRY(std::string root, may_read(L, check_text(L, 1, "directory"), Grants::Names::tree));
  RILLE_TRY(const auto found, data::CheckpointStore(std::move(root)).latest());
  push(L, found ? found->manifest.step : std::int64_t{-1});
  return 1;
}

// tensors(files, part) -> { name = tensor }; each tensor is read from disk when its field is accessed
Result<int> tensors(lua_State* L) {
  Stored& stored = check_object<Stored>(L, 1, "checkpoint");
  const std::string name(check_text(L, 2, "part"));
  const auto found = stored.parts.find(name);
  if (found == stored.parts.end())
    return make_error(ErrorKind::state, fmt::format("the checkpoint {} has no '{}'", stored.checkpoint.directory, name),
                      "the checkpoint was written with a different list of states: load it with that list");
  TensorFiles files;
  files.places = found->second;
  push_tensor_files(L, std::move(files));
  return 1;
}

Async<bool> write_file(Loop& loop, std::string path, std::shared_ptr<std::vector<Snapshot::Entry>> entries,
                       store::StringMap metadata) {
  std::function<Result<>()> job = [path = std::move(path), entries, metadata = std::move(metadata)]() -> Result<> {
    std::vector<store::TensorSource> sources;
    for (const auto& e : *entries) sources.push_back(source_of(e));
    RILLE_CHECK(store::write_safetensors(path, sources, metadata));
    return success();
  };
  Result<> written = co_await thread_job(loop, std::move(job));
  if (!written) co_return written.error();
  co_return true;
}

// save(snapshot, path, metadata): writes one safetensors file
Result<int> save(lua_State* L) {
  Snapshot& s = check_object<Snapshot>(L, 1, "snapshot");
  RILLE_TRY(std::string path, LuaHost::of(L).grants().write(std::string(check_text(L, 2, "the file"))));
  store::StringMap metadata;
  RILLE_TRY(Value given, to_value(L, 3, "metadata"));
  RILLE_CHECK(count_files(L, *s.entries, {&given}));
  if (const Value::Object* fields = given.as_object())
    for (const auto& [key, value] : *fields) {
      if (!value.as_string())
        return make_error(ErrorKind::invalid, fmt::format("metadata.{} = {}: expected a string", key, value.to_json()),
                          "safetensors files store only strings as metadata: use tostring()");
      metadata[key] = *value.as_string();
    }
  Loop& loop = LuaHost::of(L).loop();
  auto nothing = [](lua_State*, bool) { return 0; };
  return await(L, write_file(loop, std::move(path), s.entries, std::move(metadata)), nothing);
}

}  // namespace

void add_checkpoint_natives(lua_State* L) {
  define_class<Snapshot>(L, {.name = "Snapshot"});
  define_class<Write>(L, {.name = "CheckpointWrite"});
  define_class<Stored>(L, {.name = "CheckpointFiles"});
  set_functions(L, {{"checkpoint_write", bind<write>},
                    {"checkpoint_poll", bind<poll>},
                    {"checkpoint_any", bind<any>},
                    {"checkpoint_newest", bind<newest>},
                    {"checkpoint_tensors", bind<tensors>}});
  add_share_natives(L);
  add_tensor_file_natives(L);
  set_async(L, "snapshot", bind<snapshot>);
  set_async(L, "tensors_save", bind<save>);
  set_async(L, "checkpoint_wait", bind<wait_write>);
  set_async(L, "checkpoint_open", bind<open_checkpoint>);
}

}  // namespace rille::lua
