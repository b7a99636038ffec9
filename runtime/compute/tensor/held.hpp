// Keeps the tensors that a joint update reads and writes alive until it has run, even if their owner is gone: the state
// of a collected optimiser is still read by its pending steps, whose results show in the parameters.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

// A node's payload that no kernel sees. Storage and node form a cycle until the node is sent, as for a launch.
struct Held final : kernels::Payload {
  explicit Held(std::vector<std::shared_ptr<Storage>> all) : storages(std::move(all)) {}
  const char* name() const override { return "held"; }
  bool same(const kernels::Payload& other) const override { return dynamic_cast<const Held*>(&other) != nullptr; }
  void run(const kernels::Call&) const override {}
  std::vector<std::shared_ptr<Storage>> storages;
};

}  // namespace rille::tensor
