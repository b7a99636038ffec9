// Keeps a call's checkpoints while the call runs, in the run's home or in an object store, and brings the newest back
// onto the lease's next machine. To and from a store, the machine sends and fetches the files itself.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "runtime/core/base/id.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/keeping_shares.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/engine/staging.hpp"
#include "runtime/workflow/transfer/store_files.hpp"
#include "runtime/workflow/transfer/stored_checkpoints.hpp"

namespace rille::engine {

namespace {
// A name as the name of a folder.
std::string as_folder(const std::string& name) {
  std::string out = name.substr(0, 60);
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  return out;
}

// Gives the files of earlier checkpoints in `folder` their names in a later one, where they need not be fetched: a file
// "model.step-00000050.safetensors" is what step 50 had as "model.safetensors" (compute/data/checkpoint_files.hpp). The
// names are the machine's word: what it has under them is compared by SHA-256 afterwards.
void link_earlier(const std::filesystem::path& folder, const std::filesystem::path& part,
                  const std::vector<agent::FileInfo>& there) {
  constexpr std::string_view mark = ".step-", suffix = ".safetensors";
  constexpr std::size_t digits = 8;
  std::error_code ec;
  std::filesystem::create_directories(part, ec);
  for (const agent::FileInfo& file : there) {
    const std::size_t at = file.path.find(mark);
    if (at == std::string::npos || !transfer::is_stored_file_name(file.path)) continue;
    std::vector<std::filesystem::path> places = {folder / file.path.substr(at + 1, mark.size() - 1 + digits) /
                                                 (file.path.substr(0, at) + std::string(suffix))};
    for (const auto& kept : std::filesystem::directory_iterator(folder, ec)) places.push_back(kept.path() / file.path);
    for (const auto& place : places)
      if (place.parent_path() != part && std::filesystem::is_regular_file(place, ec))
        std::filesystem::create_hard_link(place, part / file.path, ec);  // an error: it is fetched
  }
}
}  // namespace

// The folder name of a call's checkpoints: the call's name as a valid file name, and a suffix that depends on its key.
std::string Calls::folder_of(const std::string& name, const std::string& key) {
  return as_folder(name) + "-" + derive_hex({"checkpoints", key}, 6);
}

Result<> Calls::open_store(const CallSpec& spec, Keeper& keeper) {
  // A simulated machine can neither send nor fetch: its checkpoints are kept at home.
  if (spec.checkpoint_store.empty() || !connector_->real_time()) return success();
  // A run of another home may have the same id, and its call the same key; they began at different instants.
  std::int64_t created_us = 0;
  RILLE_CHECK(run_.journal_->reader().query("SELECT created_us FROM runs WHERE id=?", {run_.id()},
                                            [&](const store::Row& row) { created_us = row.integer(0); }));
  const std::string writer = "c-" + derive_hex({"writer", keeper.key, std::to_string(created_us)}, 20);
  RILLE_TRY(keeper.stored, transfer::open_stored_checkpoints(spec.checkpoint_store, as_folder(spec.name), run_.loop(),
                                                             run_.limits_.may_connect, writer, run_.config_.epoch));
  return run_.journal_->reader().query("SELECT generation,base FROM lineages WHERE lease=? AND call=?",
                                       {keeper.lease, keeper.key}, [&](const store::Row& row) {
                                         keeper.restored = row.integer(0);
                                         keeper.stored->count_from(row.integer(1));
                                       });
}

// The call goes on from the store's newest checkpoint. If this process ends, a later one must know so: the store's
// newest may then be of another writer, and a call that runs on must not replace it with what it began before.
Async<> Calls::record_lineage(std::shared_ptr<Keeper> keeper) {
  keeper->restored = keeper->generation;
  run_.count_row(keeper->lease.size() + keeper->key.size());
  store::Journal::Write write = [lease = keeper->lease, key = keeper->key, generation = keeper->generation,
                                 base = keeper->stored->base()](store::Db& db) {
    return db.run("INSERT OR REPLACE INTO lineages(lease,call,generation,base) VALUES(?,?,?,?)",
                  {lease, key, generation, base});
  };
  co_return co_await run_.journal_->commit(std::move(write), run_.fence());
}

Task<void> Calls::keep(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent, CancelToken token) {
  const auto life = run_.life_.watch();
  keeper->busy = true;
  while (keeper->latest.integer("step", -1) > keeper->kept_step && !agent->broken()) {
    Value published = keeper->latest;
    if (published.text("directory").empty() || is_share_of_another(published)) break;
    const Result<std::string> kept = co_await keep_one(keeper, agent, published, token);
    if (life.ended()) co_return;
    keeper->fault.reset();
    if (!kept) keeper->fault = kept.error();
    if (!kept && (kept.error().kind == ErrorKind::auth || kept.error().kind == ErrorKind::quota) &&
        !may_be_kept_later(kept.error()))
      tell_not_kept(*keeper, "checkpoints are not kept");
    keeper->kept_step = published.integer("step");
    if (!kept) continue;  // the call may have deleted this checkpoint meanwhile: try the next one
    keeper->safe_step = keeper->kept_step;
    record_kept(*keeper, published, *kept);
    run_.event("checkpoint_kept", Value().set("directory", *kept).set("step", published["step"]));
  }
  keeper->busy = false;
}

// Once for each reason, or a long training would say nothing else.
void Calls::tell_not_kept(Keeper& keeper, const char* what) {
  const std::string why = keeper.fault->summary();
  if (std::exchange(keeper.told, why) == why) return;
  run_.event("warning", Value().set("what", what).set("message", why));
}

// Keeps a checkpoint, which its machines hold meanwhile: a training that saves faster than this process fetches would
// otherwise remove each before it is here.
Async<std::string> Calls::keep_one(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent,
                                   Value published, CancelToken token) {
  const auto life = run_.life_.watch();
  const auto held = std::make_shared<Holdings>();
  if (keeper->stored && is_share(published)) {
    RILLE_CO_CHECK(co_await find_shares(held, agent, published, token));
    if (life.ended()) co_return run_gone();
  } else {
    held->folders->push_back({agent, published.text("directory"), published.text("directory")});
  }
  Result<std::string> kept = std::string();
  Result<> holds = success();
  const std::string name = derive_hex({"held", keeper->key}, 16);
  if (connector_->real_time())  // a simulated machine has no files
    holds = co_await hold_all(run_.loop(), held->folders, name, token);
  if (life.ended()) co_return run_gone();
  if (!holds) kept = holds.error();
  else if (keeper->stored) kept = co_await keep_in_store(keeper, held, published, token);
  else kept = co_await keep_at_home(keeper, held, published, token);
  (void)co_await let_go(held->folders, token);
  co_return kept;
}

// Fetches a checkpoint beside its place in the home, and renames it. Returns its folder.
Async<std::string> Calls::keep_at_home(std::shared_ptr<Keeper> keeper, std::shared_ptr<Holdings> held, Value published,
                                       CancelToken token) {
  const std::filesystem::path folder = std::filesystem::path(run_.home()) / "checkpoints" / keeper->folder;
  // The copy is named by its step, not after the machine's directory: a hostile machine could name a parent folder.
  const std::string name = fmt::format("step-{:08}", published.integer("step"));
  const std::filesystem::path to = folder / name, part = to.string() + ".part";
  const std::string from = held->folders->front().held, into = part.string() + "/";
  const std::shared_ptr<agent::AgentClient> agent = held->folders->front().agent;
  if (connector_->real_time()) {  // a simulated machine has no files
    RILLE_CO_TRY(const std::vector<agent::FileInfo> there, co_await agent->list(from, token));
    link_earlier(folder, part, there);
  }
  RILLE_CO_CHECK(co_await agent->get(from, into, nullptr, token, disk_room()));
  std::error_code ec;
  std::filesystem::remove_all(to, ec);
  std::filesystem::rename(part, to, ec);
  if (ec) co_return errno_error("cannot rename into place", to.string(), ec.value());
  retire(folder, 2);
  co_return to.string();
}

// Lets the machine send a checkpoint to the store, and publishes it there. Returns its address.
Async<std::string> Calls::keep_in_store(std::shared_ptr<Keeper> keeper, std::shared_ptr<Holdings> held, Value published,
                                        CancelToken token) {
  const std::shared_ptr<transfer::StoredCheckpoints> stored = keeper->stored;
  transfer::StoredCheckpoint made;
  made.step = published.integer("step");
  made.generation = keeper->generation;
  made.directory = std::filesystem::path(published.text("directory")).lexically_normal().string();
  const HeldFolder& first = held->folders->front();
  if (is_share(published)) {
    std::string manifest = published["share"].text("manifest");
    RILLE_CO_CHECK(co_await list_shares(held, std::move(manifest), token));
  } else {
    RILLE_CO_TRY(held->files, co_await transfer::files_there(first.agent, first.held, token));
    for (const transfer::StoredFile& file : held->files)
      held->places[file.name] = {first.agent, first.held + "/" + file.name};
  }
  made.files = held->files;
  transfer::StoreRetention rule;
  rule.newest = static_cast<int>(std::clamp<std::int64_t>(published.integer("keep", rule.newest), 1, 1000));
  rule.every = std::max<std::int64_t>(published.integer("keep_every"), 0);
  const transfer::StoredCheckpoints::Send send = [stored, held](transfer::StoredFile file, std::string key,
                                                                CancelToken t) {
    HeldFile from = held->places.at(file.name);
    return transfer::push_file(*stored, from.agent, std::move(from.path), std::move(file), std::move(key),
                               std::move(t));
  };
  RILLE_CO_TRY(const transfer::StoredCheckpoint done, co_await stored->add(made, rule, send, token));
  co_return stored->address(done.folder);
}

// Deletes all but the newest `count` checkpoints in the folder; their names sort by step.
void Calls::retire(const std::filesystem::path& folder, std::size_t count) {
  std::vector<std::filesystem::path> found;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec))
    if (entry.is_directory(ec) && entry.path().extension() != ".part") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  for (std::size_t i = 0; i + count < found.size(); ++i) std::filesystem::remove_all(found[i], ec);
}

void Calls::record_kept(const Keeper& keeper, const Value& published, std::string here) {
  std::string text = published.to_json();
  run_.count_row(text.size());
  run_.journal_->enqueue(
      [k = keeper, step = published.integer("step"), there = published.text("directory"), here = std::move(here),
       event = std::move(text)](store::Db& db) {
        return db.run(
            "INSERT OR REPLACE INTO checkpoints(lease,call,generation,step,there,here,event) "
            "VALUES(?,?,?,?,?,?,?)",
            {k.lease, k.key, k.generation, step, there, here, event});
      },
      run_.fence());
}

// Called before a call starts on a machine. If the kept checkpoint is from an earlier machine, it is copied to the path
// that it had there, where the call finds it as its newest. On the machine that made it, nothing is copied.
Async<> Calls::restore(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent, CancelToken token) {
  if (keeper->stored) co_return co_await restore_from_store(keeper, agent, token);
  std::int64_t generation = 0, step = -1;
  std::string there, here, event;
  RILLE_CO_CHECK(
      run_.journal_->reader().query("SELECT generation,step,there,here,event FROM checkpoints WHERE lease=? "
                                    "ORDER BY call<>? DESC,generation,step",  // the last row counts
                                    {keeper->lease, keeper->key}, [&](const store::Row& row) {
                                      generation = row.integer(0);
                                      step = row.integer(1);
                                      there = row.text(2);
                                      here = row.text(3);
                                      event = row.text(4);
                                    }));
  if (there.empty() || generation >= keeper->generation) co_return success();
  std::error_code ec;
  if (!std::filesystem::is_directory(here, ec)) {
    run_.event(
        "warning",
        Value().set("what", "a kept checkpoint is not there any more: the call begins anew").set("message", here));
    co_return success();
  }
  const auto life = run_.life_.watch();
  Result<agent::Transfer> moved = co_await agent->put(here, there, nullptr, token);
  if (life.ended()) co_return success();
  if (!moved) co_return moved.error();
  keeper->kept_step = step;
  if (keeper->latest.is_null())
    if (Result<Value> known = Value::from_json(event)) keeper->latest = std::move(*known);
  run_.event("checkpoint_restored",
             Value().set("directory", here).set("step", step).set("generation", keeper->generation));
  co_return success();
}

// The same from a store. There, the newest checkpoint may also be of another run.
Async<> Calls::restore_from_store(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent,
                                  CancelToken token) {
  // Where ranks write shares to their own machines, none has the whole checkpoint, and rank 0 alone reads it.
  if (is_share_of_another(keeper->latest)) co_return success();
  const bool shares = is_share(keeper->latest);
  if (keeper->restored == keeper->generation && !shares) co_return success();
  const auto life = run_.life_.watch();
  const std::shared_ptr<transfer::StoredCheckpoints> stored = keeper->stored;
  RILLE_CO_TRY(const transfer::Latest latest, co_await stored->read(token));
  std::optional<transfer::StoredCheckpoints::Found> found;
  if (shares || !stored->made_by(latest, keeper->generation)) {
    const transfer::StoredCheckpoints::Take take = [stored, agent](transfer::StoredCheckpoint from,
                                                                   transfer::StoredFile file, std::string version,
                                                                   CancelToken t) {
      std::string path = from.directory + "/" + file.name, key = stored->key(from, file);
      return transfer::pull_file(*stored, agent, std::move(path), std::move(file), std::move(key), std::move(version),
                                 std::move(t));
    };
    RILLE_CO_TRY(found, co_await stored->newest(latest, take, token));
  }
  if (life.ended()) co_return success();
  stored->follow(latest);
  RILLE_CO_CHECK(co_await record_lineage(keeper));
  if (!found || life.ended()) co_return success();
  for (const Error& fault : found->skipped)
    run_.event("warning", Value().set("what", "a damaged checkpoint is passed over").set("message", fault.summary()));
  const transfer::StoredCheckpoint& newest = found->checkpoint;
  keeper->kept_step = keeper->safe_step = newest.step;
  const Value brought = Value().set("step", newest.step).set("directory", newest.directory);
  if (keeper->latest.is_null()) keeper->latest = brought;
  record_kept(*keeper, brought, stored->address(newest.folder));  // box:get finds it there
  run_.event("checkpoint_restored", Value()
                                        .set("directory", stored->address(newest.folder))
                                        .set("step", newest.step)
                                        .set("generation", keeper->generation));
  co_return success();
}

// Copies a checkpoint of a call from its address in a store to a folder here.
Async<Value> Calls::get_stored(std::string address, std::string to, CancelToken token) {
  RILLE_CO_TRY(objects::ObjectUrl url, objects::parse_object_url(address));
  const std::size_t name = url.key.rfind('/', url.key.size() - 2) + 1;
  const std::string folder = url.key.substr(name);
  std::string prefix = url.key.substr(0, name);
  RILLE_CO_TRY(auto store, transfer::open_users_store(url, run_.loop(), run_.limits_.may_connect));
  const auto stored =
      std::make_shared<transfer::StoredCheckpoints>(std::move(store), run_.loop(), std::move(prefix), "", 0);
  const Room room = disk_room();
  RILLE_CO_TRY(const transfer::Latest latest, co_await stored->read(token));
  for (const transfer::StoredCheckpoint& one : latest.checkpoints) {
    if (one.folder != folder) continue;
    std::int64_t bytes = 0;
    for (const transfer::StoredFile& file : one.files) {
      RILLE_CO_CHECK(co_await transfer::take_file(*stored, one, file, to, room, token));
      bytes += file.size_bytes;
    }
    co_return Value().set("files", static_cast<std::int64_t>(one.files.size())).set("bytes", bytes);
  }
  co_return make_error(ErrorKind::state, fmt::format("the checkpoint {} is not kept any more", address),
                       "a newer one has taken its place: rille.store lists what is there");
}

// If `from` is the path of a call's newest checkpoint, which the machine does not have (any more), or the `latest` link
// beside it, copies the checkpoint kept at home or in a store to `to`. nullopt: `from` is another path, and nothing was
// copied.
Async<std::optional<Value>> Calls::get_kept(std::string lease_id, std::string from, std::string to) {
  std::string here;
  RILLE_CO_CHECK(
      run_.journal_->reader().query("SELECT there,here FROM checkpoints WHERE lease=? ORDER BY generation,step",
                                    {lease_id}, [&](const store::Row& row) {
                                      std::filesystem::path there = row.text(0), wanted = from;
                                      if (wanted == there || wanted == there.parent_path() / "latest")
                                        here = row.text(1);
                                    }));
  if (here.empty()) co_return std::optional<Value>();
  if (objects::is_object_url(here)) {
    const CancelToken none;
    RILLE_CO_TRY(Value fetched, co_await get_stored(here, to, none));
    co_return std::optional<Value>(std::move(fetched));
  }
  std::function<Result<Value>()> copy = [here, to, room = disk_room()]() -> Result<Value> {
    namespace fs = std::filesystem;
    std::error_code ec;
    std::int64_t files = 0, bytes = 0;
    for (fs::recursive_directory_iterator at(here, ec), end; !ec && at != end; at.increment(ec))
      if (at->is_regular_file(ec)) ++files, bytes += static_cast<std::int64_t>(at->file_size(ec));
    if (!ec) RILLE_CHECK(room(bytes));
    if (!ec) fs::create_directories(to, ec);
    if (!ec) fs::copy(here, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing, ec);
    if (ec) return errno_error("copy", here, ec.value());
    return Value().set("files", files).set("bytes", bytes);
  };
  RILLE_CO_TRY(Value copied, co_await thread_job(run_.loop(), std::move(copy)));
  co_return std::optional<Value>(std::move(copied));
}

}  // namespace rille::engine
