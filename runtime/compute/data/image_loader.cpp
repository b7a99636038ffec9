#include "runtime/compute/data/image_loader.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <chrono>
#include <new>
#include <system_error>

namespace rille::data {

namespace {
constexpr std::size_t ahead = 2;  // batches beside the one that is wanted
}

ImageLoader::ImageLoader(int threads, std::size_t row_values, Make make, std::shared_ptr<MemoryUse> memory)
    : thread_count_(threads), row_values_(row_values), make_(std::move(make)), memory_(std::move(memory)) {}

ImageLoader::~ImageLoader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Result<std::shared_ptr<ImageLoader::Job>> ImageLoader::job_for(const Wanted& wanted) const {
  auto job = std::make_shared<Job>();
  job->wanted = wanted;
  const std::size_t values = wanted.rows * row_values_;
  RILLE_TRY(job->batch.held,
            MemoryHeld::take(memory_, MemoryUse::Part::tensors,
                             static_cast<std::int64_t>(values * sizeof(float) + wanted.rows * sizeof(std::int32_t))));
  job->batch.x = std::make_unique_for_overwrite<float[]>(values);
  job->batch.y.resize(wanted.rows);
  return job;
}

Result<> ImageLoader::start_threads() {
  try {
    while (threads_.size() < static_cast<std::size_t>(thread_count_)) {
      threads_.emplace_back([this] { work(); });
      pthread_setname_np(threads_.back().native_handle(), "rille-images");
    }
  } catch (const std::system_error& e) {
    if (threads_.empty())
      return make_error(ErrorKind::memory, fmt::format("no thread for images could be started: {}", e.what()),
                        "free memory on this machine, or raise its limit of threads (ulimit -u)");
  }
  return success();
}

std::shared_ptr<ImageLoader::Job> ImageLoader::job_with_work() const {
  for (const auto& job : jobs_)
    if (job->started < job->wanted.rows) return job;
  return nullptr;
}

void ImageLoader::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stop_ || job_with_work(); });
    if (stop_) return;
    const std::shared_ptr<Job> job = job_with_work();
    const std::uint64_t row = job->started++;
    lock.unlock();
    Result<std::int32_t> label = std::int32_t{0};
    try {
      label = make_(job->wanted.validation, job->wanted.first + row, job->batch.x.get() + row * row_values_);
    } catch (const std::bad_alloc&) {
      label = make_error(ErrorKind::memory, "out of memory while an image was decoded",
                         "use a smaller batch, or free memory on this machine");
    }
    lock.lock();
    if (label) {
      job->batch.y[row] = *label;
    } else if (!job->error || row < job->failed_row) {
      job->error = std::move(label).error();
      job->failed_row = row;
    }
    if (++job->finished == job->wanted.rows) done_.notify_all();
  }
}

Result<ImageBatch> ImageLoader::take(const Wanted& wanted, const Look& look) {
  std::unique_lock lock(mutex_);
  if (!jobs_.empty() && !(jobs_.front()->wanted == wanted)) jobs_.clear();  // threads keep the one that they work on
  if (jobs_.empty()) {
    RILLE_TRY(auto job, job_for(wanted));
    jobs_.push_back(std::move(job));
  }
  RILLE_CHECK(start_threads());
  while (jobs_.size() <= ahead) {
    Wanted following = jobs_.back()->wanted;
    following.first += following.step;
    auto job = job_for(following);
    if (!job) break;  // no memory to work ahead
    jobs_.push_back(std::move(*job));
  }
  work_.notify_all();
  const std::shared_ptr<Job> job = jobs_.front();
  while (job->finished < job->wanted.rows) {
    done_.wait_for(lock, std::chrono::milliseconds(20));
    if (!look) continue;
    lock.unlock();
    look();
    lock.lock();
  }
  jobs_.pop_front();
  if (job->error) return *job->error;
  return std::move(job->batch);
}

}  // namespace rille::data
