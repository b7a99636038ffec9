// Changes to a trace before it is planned. Each pass keeps results bit for bit, except the optional one in
// epilogues.hpp: a compiled call returns what the same call returns uncompiled.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "runtime/compute/tensor/notebook.hpp"

namespace rille::tensor {

using Nodes = std::vector<std::shared_ptr<Node>>;

inline std::uint64_t id_of(const Output& out) { return out.storage.lock()->id; }  // the notebook keeps it alive

// Whether a window covers all of its storage, in order.
inline bool whole(const Window& w, std::size_t bytes) {
  return w.offset == 0 && is_contiguous(w.shape, w.strides) &&
         std::size_t(w.shape.count()) * size_bytes(w.dtype) == bytes;
}

// The writers and readers of each storage.
struct Uses {
  std::unordered_map<std::uint64_t, int> writers, readers;
  std::unordered_set<std::uint64_t> updated;
  std::unordered_map<std::uint64_t, std::size_t> writer;  // index of the last one

  explicit Uses(const Nodes& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const auto& in : nodes[i]->in)
        if (in.storage) ++readers[in.storage->id];
      for (const auto& out : nodes[i]->out) {
        ++writers[id_of(out)];
        writer[id_of(out)] = i;
        if (out.update) updated.insert(id_of(out));
      }
    }
  }

  bool written_once(std::uint64_t id) const { return !updated.contains(id) && writers.at(id) == 1; }
};

// Whether a storage is created in the trace and used only there.
using IsTemporary = std::function<bool(std::uint64_t storage_id)>;

// Whether `op` is element-wise and its kernel offers a row function (kernels/fused.hpp).
bool by_rows(const Op& op);
// A copy of `node` with other inputs.
std::shared_ptr<Node> with_inputs(const std::shared_ptr<Node>& node, const std::vector<Input>& in);

// Of equal operations on the same values keeps the first. Skips random operations and values that are written in place.
Nodes share_common(const Nodes& nodes, const IsTemporary& temporary);
// When an embedding's gradient is added to another gradient, adds it row by row, in place if the other one is not used
// later: most rows of a large table are not touched.
Nodes accumulate_rows(const Nodes& nodes, const IsTemporary& temporary);
// Passes AdamW a half gradient as it is (kernels/optimizer.cpp) if only AdamW needed its wide copy. Saves the copy's
// memory and two passes over it.
Nodes leave_gradients_narrow(const Nodes& nodes, const IsTemporary& temporary);

}  // namespace rille::tensor
