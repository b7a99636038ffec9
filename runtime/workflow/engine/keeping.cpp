// Copies a call's checkpoints to the run's home while the call runs, and back onto the lease's next machine.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "runtime/core/base/id.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

// The folder name of a call's checkpoints: the call's name as a valid file name, and a suffix that depends on its key.
std::string Calls::folder_of(const std::string& name, const std::string& key) {
  std::string out = name.substr(0, 60);
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  return out + "-" + derive_hex({"checkpoints", key}, 6);
}

Task<void> Calls::keep(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent, CancelToken token) {
  const auto life = run_.life_.watch();
  keeper->busy = true;
  while (keeper->latest.integer("step", -1) > keeper->kept_step && !agent->broken()) {
    Value published = keeper->latest;
    std::string from = published.text("directory");
    if (from.empty()) break;
    std::filesystem::path folder = std::filesystem::path(run_.home()) / "checkpoints" / keeper->folder;
    // The copy is named by its step, not after the machine's directory: a hostile machine could name a parent folder.
    const std::string name = fmt::format("step-{:08}", published.integer("step"));
    std::filesystem::path to = folder / name, part = to.string() + ".part";
    auto moved = co_await agent->get(from, part.string() + "/", nullptr, token, disk_room());
    if (life.ended()) co_return;
    std::error_code ec;
    if (moved) {
      std::filesystem::remove_all(to, ec);
      std::filesystem::rename(part, to, ec);
    }
    keeper->warning = !moved ? moved.error().message : ec ? ec.message() : "";
    keeper->kept_step = published.integer("step");
    if (!keeper->warning.empty()) continue;  // the call may have deleted this checkpoint meanwhile: try the next one
    record_kept(*keeper, published, to.string());
    run_.event("checkpoint_kept", Value().set("directory", to.string()).set("step", published["step"]));
    retire(folder, 2);
  }
  keeper->busy = false;
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
  Result<agent::Transfer> moved = co_await agent->put(here, there, nullptr, token);
  if (!moved) co_return moved.error();
  keeper->kept_step = step;
  if (keeper->latest.is_null())
    if (Result<Value> known = Value::from_json(event)) keeper->latest = std::move(*known);
  run_.event("checkpoint_restored",
             Value().set("directory", here).set("step", step).set("generation", keeper->generation));
  co_return success();
}

// If `from` is the path of a call's newest checkpoint on a lost machine, or the `latest` link beside it, copies the
// checkpoint kept at home to `to`. nullopt: `from` is another path, and nothing was copied.
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
