#include "bindings/cli/prompt/tensor_keeper.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runtime/core/loop/thread_job.hpp"

namespace rille::cli {

struct TensorKeeper::Job {
  std::string path;
  Request request;
  std::vector<tensor::HostData> values;
  std::size_t left = 0;
  std::optional<Error> error;
};

namespace {

void remove_kept(const std::string& path) {
  std::error_code absent;
  std::filesystem::remove(path, absent);
}

Result<> write_kept(const std::string& path, const std::vector<std::string>& names,
                    const std::vector<tensor::HostData>& values, const store::StringMap& metadata) {
  std::vector<store::TensorSource> sources;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const tensor::HostData& data = values[i];
    store::TensorSource source{names[i], lua::format_name(data.dtype), {}, data.bytes.data(), {}};
    for (int d = 0; d < data.shape.n; ++d) source.shape.push_back(data.shape[d]);
    sources.push_back(std::move(source));
  }
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  RILLE_CHECK(store::write_safetensors(path, sources, metadata));
  return {};
}

}  // namespace

void TensorKeeper::keep(const std::string& path, Request request) {
  File& file = files_[path];
  file.failure.clear();
  if (file.busy) file.next = std::make_shared<Request>(std::move(request));
  else begin(path, std::move(request));
}

void TensorKeeper::drop(const std::string& path) {
  const auto file = files_.find(path);
  if (file != files_.end() && file->second.busy) file->second.next = std::make_shared<Request>();
  else remove_kept(path);
}

std::size_t TensorKeeper::under_way() const {
  return static_cast<std::size_t>(
      std::count_if(files_.begin(), files_.end(), [](const auto& file) { return file.second.busy; }));
}

std::string TensorKeeper::failure(const std::string& path) const {
  const auto file = files_.find(path);
  return file == files_.end() ? "" : file->second.failure;
}

void TensorKeeper::begin(const std::string& path, Request request) {
  remove_kept(path);
  files_[path].busy = !request.tensors.empty();
  if (request.tensors.empty()) return;
  auto job = std::make_shared<Job>();
  job->path = path;
  job->left = request.tensors.size();
  job->values.resize(job->left);
  job->request = std::move(request);
  files_[path].job = job;
  for (std::size_t i = 0; i < job->request.tensors.size(); ++i) {
    const tensor::Tensor& t = job->request.tensors[i];
    // The device's thread holds no job, because a job's tensors belong to this thread.
    t.graph().glance(t, [weak = weak_from_this(), &loop = loop_, path, i](Result<tensor::HostData> data) {
      loop.post_from_thread([weak, path, i, data = std::move(data)]() mutable {
        if (const auto self = weak.lock()) self->arrived(self->files_[path].job, i, std::move(data));
      });
    });
  }
}

void TensorKeeper::arrived(std::shared_ptr<Job> job, std::size_t i, Result<tensor::HostData> data) {
  if (data) job->values[i] = std::move(*data);
  else if (!job->error) job->error = data.error();
  if (--job->left) return;
  job->request.tensors.clear();
  if (job->error) end(job->path, *job->error);
  else loop_.spawn(write(shared_from_this(), job));
}

Task<void> TensorKeeper::write(std::shared_ptr<TensorKeeper> self, std::shared_ptr<Job> job) {
  auto work = [job] { return write_kept(job->path, job->request.names, job->values, job->request.metadata); };
  const Result<> written = co_await thread_job(self->loop_, std::move(work));
  self->end(job->path, written);
}

void TensorKeeper::end(const std::string& path, const Result<>& written) {
  File& file = files_[path];
  file.busy = false;
  file.job = nullptr;
  if (!written) file.failure = std::string(to_string(written.error().kind)) + ": " + written.error().message;
  if (const auto next = std::exchange(file.next, nullptr)) begin(path, std::move(*next));
}

}  // namespace rille::cli
