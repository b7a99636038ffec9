// Tensor values in host memory, as `native.snapshot` takes them, and the safetensors dtype names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

struct Snapshot {
  struct Entry {
    std::string file, name;
    HostData data;
  };
  std::shared_ptr<std::vector<Entry>> entries;
};

// The dtype of a tensor in a file. invalid: Rille has no such dtype.
Result<DType> type_of_format(const std::string& type, const std::string& tensor);

}  // namespace rille::lua
