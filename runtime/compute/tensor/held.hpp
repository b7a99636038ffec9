// Keeps the tensors that a joint update reads and writes alive until the update has run, even if the script has dropped
// them. Example: pending steps of a collected optimiser still read its state, and their results show in the parameters.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

// Payload of a node, ignored by kernels. It makes node and storage hold each other until the node is sent to the lane.
struct Held final : kernels::Payload {
  explicit Held(std::vector<std::shared_ptr<Storage>> all) : storages(std::move(all)) {}
  const char* name() const override { return "held"; }
  bool same(const kernels::Payload& other) const override { return dynamic_cast<const Held*>(&other) != nullptr; }
  void run(const kernels::Call&) const override {}
  std::vector<std::shared_ptr<Storage>> storages;
};

}  // namespace rille::tensor
