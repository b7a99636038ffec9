// What an update of several tensors reads and writes stays until it has run, whoever lets go of it before: the averages
// of an optimiser that was collected are still read by its later steps, and the parameters show it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

// A node's payload that no kernel sees. Storage and node hold each other until the node is sent, as a launch does.
struct Held final : kernels::Payload {
  explicit Held(std::vector<std::shared_ptr<Storage>> all) : storages(std::move(all)) {}
  const char* name() const override { return "held"; }
  bool same(const kernels::Payload& other) const override { return dynamic_cast<const Held*>(&other) != nullptr; }
  void run(const kernels::Call&) const override {}
  std::vector<std::shared_ptr<Storage>> storages;
};

}  // namespace rille::tensor
