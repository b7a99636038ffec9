#include "runtime/workflow/agent/pull_placing.hpp"

#include <map>

#include "runtime/core/loop/thread_job.hpp"

namespace rille::agent {

namespace {
constexpr std::int64_t together_bytes_max = 4 << 20;

// The result of each.
Result<std::vector<Result<>>> place_all(const std::vector<PullPlacing::File>& files) {
  std::vector<Result<>> out;
  std::map<std::string, Result<>> folders;
  for (const PullPlacing::File& file : files) {
    file.before();
    file.part->start_writing();
  }
  for (const PullPlacing::File& file : files) {
    Result<> placed = file.part->sync_whole();
    if (placed) placed = file.part->rename_into_place();
    if (placed) folders.emplace(store::parent_path(file.part->destination()), success());
    out.push_back(std::move(placed));
  }
  for (auto& [folder, synced] : folders) synced = store::sync_directory(folder);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (out[i]) out[i] = folders.at(store::parent_path(files[i].part->destination()));
    if (out[i]) files[i].after();
  }
  return out;
}
}  // namespace

Async<> PullPlacing::place(std::shared_ptr<PullPlacing> self, File file) {
  if (file.size_bytes > together_bytes_max) {
    const std::vector<File> alone = {std::move(file)};
    auto job = [alone] { return place_all(alone); };
    RILLE_CO_TRY(const std::vector<Result<>> placed, co_await thread_job(self->loop_, std::move(job)));
    co_return placed.front();
  }
  Future<Result<>> placed(self->loop_);
  self->waiting_.push_back({std::move(file), placed});
  if (!std::exchange(self->running_, true)) self->loop_.spawn(place_waiting(self));
  co_return co_await placed;
}

Task<void> PullPlacing::place_waiting(std::shared_ptr<PullPlacing> self) {
  while (!self->waiting_.empty()) {
    const std::vector<Waiting> batch = std::exchange(self->waiting_, {});
    std::vector<File> files;
    files.reserve(batch.size());
    for (const Waiting& one : batch) files.push_back(one.file);
    auto job = [files] { return place_all(files); };
    const Result<std::vector<Result<>>> placed = co_await thread_job(self->loop_, std::move(job));
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i].placed.set(placed ? (*placed)[i] : placed.error());
  }
  self->running_ = false;
}

}  // namespace rille::agent
