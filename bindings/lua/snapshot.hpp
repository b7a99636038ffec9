// Values of tensors in host memory, as `native.snapshot` takes them, and safetensors' names of types.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings/lua/tensor.hpp"

namespace rille::lua {

struct Snapshot {
  struct Entry { std::string file, name; HostData data; };
  std::shared_ptr<std::vector<Entry>> entries;
};

Result<DType> type_of_format(const std::string& name);   // invalid: one that tensors do not have

}  // namespace rille::lua
