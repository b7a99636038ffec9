// What is changed in a trace before it is planned. Each pass keeps results bit for bit, but for the one that is asked
// for (epilogues.hpp): a compiled call gives what the same call gives uncompiled.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "runtime/compute/tensor/notebook.hpp"

namespace rille::tensor {

using Nodes = std::vector<std::shared_ptr<Node>>;

inline std::uint64_t id_of(const Output& out) { return out.storage.lock()->id; }  // the notebook holds all of them

// Whether a window is all of its storage, in order.
inline bool whole(const Window& w, std::size_t bytes) {
  return w.offset == 0 && is_contiguous(w.shape, w.strides) &&
         std::size_t(w.shape.count()) * size_bytes(w.dtype) == bytes;
}

// Who writes and reads each storage.
struct Uses {
  std::unordered_map<std::uint64_t, int> writers, readers;
  std::unordered_set<std::uint64_t> updated;
  std::unordered_map<std::uint64_t, std::size_t> writer;  // the last one's place

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

// Whether a storage is born in the trace and does not leave it.
using IsTemporary = std::function<bool(std::uint64_t storage_id)>;

// Element by element, by a kernel that can be asked for its row (kernels/fused.hpp).
bool by_rows(const Op& op);
// A copy of `node` with other inputs.
std::shared_ptr<Node> with_inputs(const std::shared_ptr<Node>& node, const std::vector<Input>& in);

// Of operations that ask for the same of the same values the first stays. Never of random ones, nor of what is written
// in place.
Nodes share_common(const Nodes& nodes, const IsTemporary& temporary);
// An embedding's gradient that is added to another one is added row by row, in place where the other ends there: most
// rows of a large table are not touched.
Nodes accumulate_rows(const Nodes& nodes, const IsTemporary& temporary);
// A gradient that was widened for AdamW alone is given to it as it is (kernels/optimizer.cpp): of its wide copy neither
// the memory nor the two ways through it are needed.
Nodes leave_gradients_narrow(const Nodes& nodes, const IsTemporary& temporary);

}  // namespace rille::tensor
