// Values of tensors in host memory, as `native.snapshot` takes them, and safetensors' names of types.
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

// The type of a file's tensor. invalid: one that tensors do not have.
Result<DType> type_of_format(const std::string& type, const std::string& tensor);

}  // namespace rille::lua
