// Writes tensors of the prompt's variables into files, in the background: the prompt does not wait, and an error of
// computing them stays with the entry that reads them. One file has what one variable needs; of several requests for a
// file only the newest is written. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/core/store/safetensors.hpp"

namespace rille::cli {

class TensorKeeper : public std::enable_shared_from_this<TensorKeeper> {
 public:
  explicit TensorKeeper(Loop& loop) : loop_(loop) {}

  struct Request {
    std::vector<std::string> names;
    std::vector<tensor::Tensor> tensors;
    store::StringMap metadata;
  };
  // Writes the tensors once they are computed. Until then the file is absent: an old value is not kept for a new one.
  void keep(const std::string& path, Request request);
  void drop(const std::string& path);
  std::size_t under_way() const;
  // Why the newest request for the file failed; "": it did not.
  std::string failure(const std::string& path) const;

 private:
  struct Job;
  struct File {
    bool busy = false;
    std::shared_ptr<Job> job;
    std::shared_ptr<Request> next;  // to write when the file is not busy any more; no tensors: remove it
    std::string failure;
  };
  void begin(const std::string& path, Request request);
  void arrived(std::shared_ptr<Job> job, std::size_t i, Result<tensor::HostData> data);
  void end(const std::string& path, const Result<>& written);
  static Task<void> write(std::shared_ptr<TensorKeeper> self, std::shared_ptr<Job> job);

  Loop& loop_;
  std::map<std::string, File> files_;
};

}  // namespace rille::cli
