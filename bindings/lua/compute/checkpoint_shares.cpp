// The shares of ranks in one checkpoint; C functions for stdlib/tools/shares.lua. Where all ranks see one folder, rank
// 0 begins a checkpoint there, each rank writes its share and lists its files, and rank 0 publishes all of them. Where
// they do not, and the runner keeps their checkpoints in a store (engine/keeping_shares.cpp), each rank's share is a
// checkpoint of its own below shares/, and rank 0 adds a manifest that lists the files of all.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "bindings/lua/compute/checkpoint_write.hpp"
#include "runtime/compute/data/checkpoint_files.hpp"
#include "runtime/compute/data/checkpoint_parts.hpp"

namespace rille::lua {

namespace {

constexpr std::int64_t list_bytes_max = 64 << 20;
constexpr const char* whole_manifest = "whole.json";  // in rank 0's share: the manifest of all ranks' files

// A checkpoint that is being written by several ranks. It goes with the object, unless it was published.
struct Gathering {
  std::shared_ptr<data::CheckpointWriter> writer;
};

std::string list_path(const std::string& directory, std::int64_t rank) {
  return fmt::format("{}/rank-{}.json", directory, rank);
}

// share_begin(directory, step) -> Gathering, the name of its folder in the directory
Result<int> share_begin(lua_State* L) {
  const std::string directory(check_text(L, 1, "the checkpoints' directory"));
  RILLE_TRY(const std::string root, LuaHost::of(L).grants().write(directory, Grants::Names::tree));
  RILLE_TRY(data::CheckpointWriter writer, data::CheckpointStore(root).begin(check_integer(L, 2, "step")));
  const std::string name = writer.directory().substr(root.size() + 1);
  push_object(L, Gathering{std::make_shared<data::CheckpointWriter>(std::move(writer))});
  push(L, name);
  return 2;
}

// share_end(gathering): removes what was not published
Result<int> share_end(lua_State* L) {
  check_object<Gathering>(L, 1, "the checkpoint").writer.reset();
  return 0;
}

// The folder of the unfinished checkpoint; its name is rank 0's word.
Result<std::string> shared_folder(lua_State* L, int directory, int name) {
  const std::string root(check_text(L, directory, "the checkpoints' directory"));
  const std::string folder(check_text(L, name, "the folder's name"));
  if (!folder.starts_with(".tmp-step-") || folder.find('/') != std::string::npos)
    return make_error(ErrorKind::invalid, fmt::format("'{}' is not the folder of an unfinished checkpoint", folder),
                      "all ranks run the same build of Rille");
  RILLE_TRY(const std::string granted, LuaHost::of(L).grants().write(root, Grants::Names::tree));
  return granted + "/" + folder;
}

// share_sees(directory, name) -> whether this rank can write into that folder. Its name is random, so that a folder of
// the same path on another machine is not taken for it.
Result<int> share_sees(lua_State* L) {
  const Result<std::string> folder = shared_folder(L, 1, 2);
  struct stat info {};
  push(L,
       folder && ::stat(folder->c_str(), &info) == 0 && S_ISDIR(info.st_mode) && ::access(folder->c_str(), W_OK) == 0);
  return 1;
}

// runs on a background thread
Result<Value> write_share(const std::string& root, const std::string& folder, std::int64_t rank, std::int64_t world,
                          const std::vector<Snapshot::Entry>& entries) {
  RILLE_TRY(const std::optional<data::Checkpoint> before, data::CheckpointStore(root).latest());
  data::Manifest written;
  for (const auto& [part, tensors] : parts_of(entries)) {
    const data::PartFiles to{folder, part, fmt::format("rank-{}-of-{}", rank, world)};
    RILLE_TRY(auto files, data::write_part(to, tensors, before ? &*before : nullptr));
    for (data::CheckpointFile& file : files) written.files.push_back(std::move(file));
  }
  RILLE_CHECK(store::write_file_atomic(list_path(folder, rank), written.to_json()));
  return Value().set("files", static_cast<std::int64_t>(written.files.size()));
}

// share_write(snapshot, directory, name, rank, world) -> Write
Result<int> share_write(lua_State* L) {
  const auto entries = check_object<Snapshot>(L, 1, "snapshot").entries;
  RILLE_TRY(const std::string folder, shared_folder(L, 2, 3));
  const std::int64_t rank = check_integer(L, 4, "rank"), world = check_integer(L, 5, "world");
  RILLE_CHECK(count_files(L, *entries, {}));
  return begin_write(L, [root = store::parent_path(folder), folder, rank, world, entries] {
    return write_share(root, folder, rank, world, *entries);
  });
}

// runs on a background thread
Result<Value> publish_shares(data::CheckpointWriter& writer, const CheckpointPlan& plan, std::int64_t world) {
  data::Checkpoint made{writer.directory(), {}};
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const std::string path = list_path(writer.directory(), rank);
    RILLE_TRY(const std::string text, store::read_file(path, list_bytes_max));
    RILLE_TRY(const data::Manifest listed, data::Manifest::from_json(text, path));
    for (const data::CheckpointFile& file : listed.files) {
      RILLE_CHECK(writer.add(file));
      made.manifest.files.push_back(file);
    }
    RILLE_CHECK(store::remove_tree(path));
  }
  if (const auto joined = data::open_parts(made); !joined)
    return make_error(ErrorKind::state, "the ranks' shares are not one state: " + joined.error().message,
                      "every rank saves the same checkpoint.state, with tensors of the same names and sizes");
  return publish_checkpoint(writer, plan);
}

// share_publish(gathering, world, { directory=, step=, .. }) -> Write
Result<int> share_publish(lua_State* L) {
  const auto writer = std::exchange(check_object<Gathering>(L, 1, "the checkpoint").writer, nullptr);
  if (!writer)
    return make_error(ErrorKind::state, "the checkpoint has ended already", "begin a new checkpoint for each save");
  const std::int64_t world = check_integer(L, 2, "world");
  RILLE_TRY(CheckpointPlan plan, checkpoint_plan(L, 3));
  RILLE_CHECK(count_files(L, {}, {&plan.manifest.cursor, &plan.manifest.rng, &plan.manifest.metadata}));
  return begin_write(L, [writer, plan = std::move(plan), world] { return publish_shares(*writer, plan, world); });
}

// Where each rank keeps its shares, if they go to a store: below the checkpoints' directory.
std::string shares_root(const std::string& root) { return root + "/shares"; }

// share_clear(directory): removes the shares of an earlier training, whose steps may be higher
Result<int> share_clear(lua_State* L) {
  const std::string directory(check_text(L, 1, "the checkpoints' directory"));
  RILLE_TRY(const std::string root, LuaHost::of(L).grants().write(directory, Grants::Names::tree));
  RILLE_CHECK(store::remove_tree(shares_root(root)));
  return 0;
}

// runs on a background thread
Result<Value> write_apart(const CheckpointPlan& plan, std::int64_t rank, std::int64_t world,
                          const std::vector<Snapshot::Entry>& entries) {
  const data::CheckpointStore shares(shares_root(plan.root));
  RILLE_TRY(const std::optional<data::Checkpoint> before, shares.latest());
  RILLE_TRY(data::CheckpointWriter writer, shares.begin(plan.step));
  for (const auto& [part, tensors] : parts_of(entries)) {
    const data::PartFiles to{writer.directory(), part, fmt::format("rank-{}-of-{}", rank, world)};
    RILLE_TRY(auto files, data::write_part(to, tensors, before ? &*before : nullptr));
    for (data::CheckpointFile& file : files) RILLE_CHECK(writer.add(std::move(file)));
  }
  RILLE_TRY(const data::Checkpoint done, writer.publish(plan.manifest));
  RILLE_CHECK(shares.retain(plan.keep));
  return Value().set("directory", done.directory).set("list", done.manifest.to_json());
}

// share_apart(snapshot, { directory=, step=, keep= }, rank, world) -> Write
Result<int> share_apart(lua_State* L) {
  const auto entries = check_object<Snapshot>(L, 1, "snapshot").entries;
  RILLE_TRY(CheckpointPlan plan, checkpoint_plan(L, 2));
  plan.keep.every = 0;               // what is kept for ever is in the store
  plan.manifest.metadata = Value();  // is in the manifest of all
  const std::int64_t rank = check_integer(L, 3, "rank"), world = check_integer(L, 4, "world");
  RILLE_CHECK(count_files(L, *entries, {}));
  return begin_write(
      L, [plan = std::move(plan), rank, world, entries] { return write_apart(plan, rank, world, *entries); });
}

// runs on a background thread
Result<Value> join_lists(const CheckpointPlan& plan, const std::string& folder, const std::vector<std::string>& lists) {
  data::Manifest whole = plan.manifest;
  whole.step = plan.step;
  std::set<std::string> names;
  std::int64_t size_bytes = 0;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    RILLE_TRY(data::Manifest one, data::Manifest::from_json(lists[rank], fmt::format("the share of rank {}", rank)));
    for (data::CheckpointFile& file : one.files) {
      if (!names.insert(file.name).second)
        return make_error(ErrorKind::state, fmt::format("two ranks have a file '{}'", file.name),
                          "every rank saves its own share: name one rank and one world at each");
      size_bytes += file.fingerprint.size_bytes;
      whole.files.push_back(std::move(file));
    }
  }
  RILLE_CHECK(store::write_file_atomic(folder + "/" + whole_manifest, whole.to_json()));
  return Value()
      .set("step", plan.step)
      .set("directory", plan.root + "/" + data::checkpoint_name(plan.step))
      .set("size_bytes", size_bytes)
      .set("manifest", whole_manifest);
}

// share_join(folder, { list, .. }, { directory=, step=, .. }) -> Write: rank 0's share gets the manifest of all
Result<int> share_join(lua_State* L) {
  RILLE_TRY(const std::string folder,
            LuaHost::of(L).grants().write(std::string(check_text(L, 1, "the share's folder")), Grants::Names::tree));
  std::vector<std::string> lists;
  for (std::size_t i = 1, n = lua_objlen(L, 2); i <= n; ++i) {
    lua_rawgeti(L, 2, static_cast<int>(i));
    lists.emplace_back(check_text(L, -1, "a rank's list"));
    lua_pop(L, 1);
  }
  RILLE_TRY(CheckpointPlan plan, checkpoint_plan(L, 3));
  RILLE_CHECK(count_files(L, {}, {&plan.manifest.cursor, &plan.manifest.rng, &plan.manifest.metadata}));
  return begin_write(
      L, [plan = std::move(plan), folder, lists = std::move(lists)] { return join_lists(plan, folder, lists); });
}

}  // namespace

void add_share_natives(lua_State* L) {
  define_class<Gathering>(L, {.name = "CheckpointGathering"});
  set_functions(L, {{"share_begin", bind<share_begin>},
                    {"share_end", bind<share_end>},
                    {"share_sees", bind<share_sees>},
                    {"share_write", bind<share_write>},
                    {"share_publish", bind<share_publish>},
                    {"share_clear", bind<share_clear>},
                    {"share_apart", bind<share_apart>},
                    {"share_join", bind<share_join>}});
}

}  // namespace rille::lua
