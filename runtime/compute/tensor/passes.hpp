// Passes that change a trace before it is planned. A compiled call must return the same bits as an uncompiled one, so
// each pass preserves results bit for bit; the optional pass in epilogues.hpp is the only exception.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "runtime/compute/tensor/notebook.hpp"

namespace rille::tensor {

using Nodes = std::vector<std::shared_ptr<Node>>;

inline std::uint64_t id_of(const Output& out) { return out.storage.lock()->id; }  // the notebook keeps it alive

// Whether a window covers its whole storage, in memory order.
inline bool whole(const Window& w, std::size_t bytes) {
  return w.offset == 0 && is_contiguous(w.shape, w.strides) &&
         std::size_t(w.shape.count()) * size_bytes(w.dtype) == bytes;
}

// How often each storage is written and read.
struct Uses {
  std::unordered_map<std::uint64_t, int> writers, readers;
  std::unordered_set<std::uint64_t> updated;
  std::unordered_map<std::uint64_t, std::size_t> writer;  // index of the storage's last writer

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

// Whether the trace creates a storage and nothing outside uses it.
using IsTemporary = std::function<bool(std::uint64_t storage_id)>;

// Whether `op` is element-wise and its kernel can process one row at a time (kernels/fused.hpp).
bool by_rows(const Op& op);
// A copy of `node` with other inputs.
std::shared_ptr<Node> with_inputs(const std::shared_ptr<Node>& node, const std::vector<Input>& in);

// Keeps only the first of equal operations on equal values. Leaves random operations and values written in place alone.
Nodes share_common(const Nodes& nodes, const IsTemporary& temporary);
// When an embedding's gradient is added to another gradient, adds only the rows that the batch used: a batch uses few
// rows of a large table. Works in place if the other gradient is not read later.
Nodes accumulate_rows(const Nodes& nodes, const IsTemporary& temporary);
// Passes AdamW the half gradient itself (kernels/optimizer.cpp) if only AdamW read the f32 copy. Saves the memory of
// the copy and two passes over it.
Nodes leave_gradients_narrow(const Nodes& nodes, const IsTemporary& temporary);

}  // namespace rille::tensor
