// Copies of tensor values in host memory, made by `native.snapshot`, and the dtype names of safetensors files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/data/checkpoint.hpp"

namespace rille::lua {

struct Snapshot {
  struct Entry {
    std::string part, name;  // of a training's state: "model", "wte.weight"
    HostData data;
    std::optional<data::Slice> slice = {};  // the values are some rows of the tensor
  };
  std::shared_ptr<std::vector<Entry>> entries;
};

// Translates a safetensors dtype name. Error invalid: Rille has no such dtype; the message names `tensor`.
Result<DType> type_of_format(const std::string& type, const std::string& tensor);

}  // namespace rille::lua
