// ImageLoader: makes batches of images on threads of its own, some batches ahead. What a row holds depends on its place
// alone, so neither the number of threads nor what was made ahead changes a batch. One thread at a time may call
// take(); the destructor waits for the rows that are being made.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/compute/data/pace.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/use.hpp"

namespace rille::data {

struct ImageBatch {
  std::unique_ptr<float[]> x;  // [rows, 3, size, size]
  std::vector<std::int32_t> y;
  MemoryHeld held;
};

class ImageLoader {
 public:
  // Rows first .. first + rows - 1 of a part; the batch after it begins at first + step.
  struct Wanted {
    bool validation = false;
    std::uint64_t first = 0, rows = 0, step = 0;
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  // Fills a row and returns its label. Any thread.
  using Make = std::function<Result<std::int32_t>(bool validation, std::uint64_t place, float* row)>;

  ImageLoader(int threads, std::size_t row_values, Make make, std::shared_ptr<MemoryUse> memory);
  ~ImageLoader();
  ImageLoader(const ImageLoader&) = delete;

  // Error: that of the first row that could not be made; memory, also for the first thread. `look` may throw.
  Result<ImageBatch> take(const Wanted& wanted, const Look& look);

 private:
  struct Job {
    Wanted wanted;
    ImageBatch batch;
    std::uint64_t started = 0, finished = 0, failed_row = 0;
    std::optional<Error> error;
  };
  Result<std::shared_ptr<Job>> job_for(const Wanted& wanted) const;
  Result<> start_threads();
  void work();
  std::shared_ptr<Job> job_with_work() const;

  const int thread_count_;
  const std::size_t row_values_;
  const Make make_;
  const std::shared_ptr<MemoryUse> memory_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace rille::data
