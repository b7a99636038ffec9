#include "runtime/compute/device/kernel_run.hpp"

#include <omp.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/compute/device/block_runner.hpp"

namespace rille::device {

struct RunnerPool::State {
  std::mutex mutex;
  std::vector<std::unique_ptr<BlockRunner>> idle;
};

RunnerPool::RunnerPool() : state_(std::make_unique<State>()) {}
RunnerPool::~RunnerPool() = default;

std::unique_ptr<BlockRunner> RunnerPool::take() {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->idle.empty()) {
      auto runner = std::move(state_->idle.back());
      state_->idle.pop_back();
      return runner;
    }
  }
  return std::make_unique<BlockRunner>();
}

void RunnerPool::give(std::unique_ptr<BlockRunner> runner) {
  const std::lock_guard lock(state_->mutex);
  if (state_->idle.size() < 64) state_->idle.push_back(std::move(runner));
}

namespace {

// With fewer CUDA threads, starting an OpenMP team takes longer than it saves.
constexpr unsigned team_threads_min = 512;

// Runs blocks of the grid until none are left.
void work(LaunchShared& launch, RunnerPool& pool, unsigned blocks, unsigned piece) {
  auto runner = pool.take();
  if (!runner->prepare(launch)) {
    const std::lock_guard lock(launch.mutex);
    launch.report->out_of_memory = true;
    launch.stop = true;
  }
  while (!launch.stop.load(std::memory_order_relaxed)) {
    const unsigned first = launch.next.fetch_add(piece, std::memory_order_relaxed);
    if (first >= blocks) break;
    runner->run_blocks(first, std::min(first + piece, blocks));
  }
  pool.give(std::move(runner));
}

void run_cooperative(LaunchShared& launch, RunnerPool& pool, unsigned blocks) {
  GridBarrier barrier;
  barrier.blocks = blocks;
  launch.grid = &barrier;
  const auto no_memory = [&] {
    const std::lock_guard lock(launch.mutex);
    launch.report->out_of_memory = true;
  };
  std::vector<std::thread> threads;
  threads.reserve(blocks);
  for (unsigned b = 0; b < blocks; ++b) {
    const auto one = [&, b] {
      auto runner = pool.take();
      const bool ready = runner->prepare(launch);
      if (ready) runner->run_blocks(b, b + 1);
      else no_memory();
      barrier.leave(!ready || launch.stop);
      pool.give(std::move(runner));
    };
    try {
      threads.emplace_back(one);
    } catch (const std::system_error&) {  // the system has no more threads
      no_memory();
      barrier.leave(true);
    }
  }
  for (auto& t : threads) t.join();
}

}  // namespace

void run_kernel(const KernelRun& run, RunnerPool& pool, RunReport& report) {
  LaunchShared launch;
  launch.run = &run;
  launch.report = &report;
  const unsigned blocks = run.grid[0] * run.grid[1] * run.grid[2];
  const unsigned threads = run.block[0] * run.block[1] * run.block[2];
  if (run.cooperative) return run_cooperative(launch, pool, blocks);
  const int team = run.check ? 1 : omp_get_max_threads();
  if (team == 1 || blocks == 1 || std::uint64_t(blocks) * threads < team_threads_min) {
    return work(launch, pool, blocks, blocks);
  }
  const unsigned piece = std::max(1u, blocks / (unsigned(team) * 8));
#pragma omp parallel num_threads(team)
  work(launch, pool, blocks, piece);
}

}  // namespace rille::device
