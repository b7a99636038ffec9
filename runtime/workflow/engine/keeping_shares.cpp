#include "runtime/workflow/engine/keeping_shares.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/agent/heard.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/transfer/stored_checkpoints.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t share_patience_ms = 60'000;  // until the runner has heard of every rank's share
constexpr std::int64_t share_pause_ms = 20;

Error no_share(std::int64_t rank, const std::string& why) {
  Error e = make_error(ErrorKind::network, fmt::format("the share of rank {} is not here: {}", rank, why),
                       "its machine is lost or cannot be reached; the checkpoint before stays the newest one");
  e.retryable = true;
  return e;
}

}  // namespace

Async<> hold_all(Loop& loop, std::shared_ptr<std::vector<HeldFolder>> folders, std::string name, CancelToken token) {
  std::vector<Together<std::string>> all;
  for (const HeldFolder& one : *folders)
    all.push_back({"a folder", [one, name](CancelToken t) { return one.agent->hold(one.folder, name, std::move(t)); }});
  std::vector<Result<std::string>> held = co_await together(loop, std::move(all), 0, token);
  Result<> out = success();
  for (std::size_t i = 0; i < held.size(); ++i) {
    HeldFolder& one = (*folders)[i];
    if (held[i]) one.held = *held[i];
    else if (held[i].error().kind == ErrorKind::invalid) one.held = one.folder;  // an agent of an older build
    else out = held[i].error();
  }
  co_return out;
}

// If a machine is lost or cannot be reached, its held folder stays until it holds the next checkpoint.
Async<> let_go(std::shared_ptr<std::vector<HeldFolder>> folders, CancelToken token) {
  for (const HeldFolder& one : *folders)
    if (!one.held.empty() && one.held != one.folder) (void)co_await one.agent->remove(one.held, token);
  co_return success();
}

Async<RankShares> Calls::shares_of_rank(std::string training, std::int64_t rank, CancelToken token) {
  const auto life = run_.life_.watch();
  for (std::int64_t waited_ms = 0;; waited_ms += share_pause_ms) {
    if (const RankShares* found = shares_.find(training, rank)) {
      const std::shared_ptr<agent::AgentClient> agent = found->agent.lock();
      if (agent && !agent->broken()) co_return *found;  // else the next connection tells it again
    }
    if (waited_ms >= share_patience_ms) co_return no_share(rank, "its machine has not told of it");
    RILLE_CO_CHECK(co_await sleep_for(run_.loop(), share_pause_ms, token));
    if (life.ended()) co_return no_share(rank, "the run has ended");
  }
}

// Names the folders of a checkpoint whose shares are on the machines of its ranks. `agent`: of rank 0.
Async<> Calls::find_shares(std::shared_ptr<Holdings> held, std::shared_ptr<agent::AgentClient> agent, Value published,
                           CancelToken token) {
  const Value& share = published["share"];
  const std::string training = share.text("training"), manifest = share.text("manifest");
  const std::int64_t world = share.integer("world"), step = published.integer("step");
  if (world < 1 || world > ranks_max || !transfer::is_stored_file_name(manifest))
    co_return agent::lie("a share of a checkpoint without a world or a manifest");
  const auto life = run_.life_.watch();
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (life.ended()) co_return no_share(rank, "the run has ended");
    RILLE_CO_TRY(const RankShares place, co_await shares_of_rank(training, rank, token));
    const std::shared_ptr<agent::AgentClient> there = rank == 0 ? agent : place.agent.lock();
    if (!there) co_return no_share(rank, "the connection to its machine is closed");
    held->folders->push_back({there, fmt::format("{}/step-{:08}", place.folder, step), ""});
  }
  co_return success();
}

// Lists the files of all shares. Rank 0's folder has the manifest of all.
Async<> Calls::list_shares(std::shared_ptr<Holdings> held, std::string manifest, CancelToken token) {
  for (std::size_t rank = 0; rank < held->folders->size(); ++rank) {
    const std::shared_ptr<agent::AgentClient> there = (*held->folders)[rank].agent;
    const std::string folder = (*held->folders)[rank].held;
    RILLE_CO_TRY(std::vector<transfer::StoredFile> files, co_await transfer::files_there(there, folder, token));
    files.pop_back();  // the manifest of the share alone
    for (transfer::StoredFile& file : files) {
      if (rank == 0 && file.name == manifest) continue;
      if (!held->places.emplace(file.name, HeldFile{there, folder + "/" + file.name}).second)
        co_return make_error(ErrorKind::integrity, fmt::format("two ranks have a file '{}'", file.name),
                             "every rank saves its own share of one checkpoint.state");
      held->files.push_back(std::move(file));
    }
    if (rank > 0) continue;
    const std::string path = folder + "/" + manifest;
    RILLE_CO_TRY(const agent::FileInfo whole, co_await there->stat(path, true, token));
    if (whole.sha256.size() != 64) co_return agent::lie(fmt::format("'{}' without a SHA-256", manifest));
    held->places[transfer::manifest_name] = {there, path};
    held->files.push_back({transfer::manifest_name, whole.size_bytes, whole.sha256});
  }
  const auto last = std::find_if(held->files.begin(), held->files.end(),
                                 [](const transfer::StoredFile& f) { return f.name == transfer::manifest_name; });
  std::rotate(last, last + 1, held->files.end());
  co_return success();
}

}  // namespace rille::engine
