#include "runtime/compute/tensor/passes.hpp"

#include <algorithm>

namespace rille::tensor {

bool by_rows(const Op& op) {
  for (const OpId id : {OpId::dropout, OpId::embedding_add})
    if (op.id == id) return false;
  for (const OpId id : {OpId::lt, OpId::le, OpId::gt, OpId::ge, OpId::eq, OpId::ne, OpId::where, OpId::cast})
    if (op.id == id) return true;
  return op.in_place;
}

std::shared_ptr<Node> with_inputs(const std::shared_ptr<Node>& node, const std::vector<Input>& in) {
  auto copy = std::make_shared<Node>();
  copy->op = node->op;
  copy->attrs = node->attrs;
  copy->random = node->random;
  copy->payload = node->payload;
  copy->in = in;
  copy->out = node->out;
  copy->together = node->together;
  return copy;
}

namespace {

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_window(std::string& key, const Window& w) {
  append(key, w.offset);
  append(key, w.dtype);
  for (const Dims* d : {&w.shape, &w.strides}) {
    append(key, d->n);
    for (int i = 0; i < d->n; ++i) append(key, (*d)[i]);
  }
}

class Sharing {
 public:
  Sharing(const Nodes& nodes, const IsTemporary& temporary) : uses_(nodes), temporary_(temporary) {}

  Nodes run(const Nodes& nodes) {
    Nodes out;
    for (const auto& node : nodes) {
      auto now = redirected(node);
      if (!shared(*now)) out.push_back(std::move(now));
      for (const auto& o : node->out)
        if (o.update) ++version_[id_of(o)];
    }
    return out;
  }

 private:
  std::shared_ptr<Node> redirected(const std::shared_ptr<Node>& node) const {
    std::vector<Input> in = node->in;
    bool changed = false;
    for (auto& i : in) {
      if (!i.storage) continue;
      auto other = instead_.find(i.storage->id);
      if (other == instead_.end()) continue;
      i.storage = other->second;
      changed = true;
    }
    return changed ? with_inputs(node, in) : node;
  }

  // Whether an earlier operation gives the same results; if so, later operations read those results.
  bool shared(const Node& node) {
    if (node.out.empty() || draws(*node.op) || node.payload) return false;
    for (const auto& out : node.out)
      if (!temporary_(id_of(out)) || !uses_.written_once(id_of(out)) || !whole(out.window, out.bytes)) return false;
    const auto [before, fresh] = made_.try_emplace(key_of(node), node.out);
    if (fresh) return false;
    for (std::size_t i = 0; i < node.out.size(); ++i) instead_[id_of(node.out[i])] = before->second[i].storage.lock();
    return true;
  }

  std::string key_of(const Node& node) const {
    std::string key;
    append(key, node.op);
    for (const auto n : node.attrs.i) append(key, n);
    for (const auto x : node.attrs.f) append(key, x);
    for (const auto& in : node.in) {
      const std::uint64_t id = in.storage ? in.storage->id : 0;
      append(key, id);
      auto version = version_.find(id);
      append(key, version == version_.end() ? 0 : version->second);
      append_window(key, in.window);
    }
    for (const auto& out : node.out) append_window(key, out.window);
    return key;
  }

  Uses uses_;
  const IsTemporary& temporary_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Storage>> instead_;
  std::unordered_map<std::uint64_t, int> version_;
  std::unordered_map<std::string, std::vector<Output>> made_;
};

}  // namespace

Nodes share_common(const Nodes& nodes, const IsTemporary& temporary) { return Sharing(nodes, temporary).run(nodes); }

Nodes accumulate_rows(const Nodes& nodes, const IsTemporary& temporary) {
  const Uses uses(nodes);
  Nodes out = nodes;
  // The embedding gradient that only this addition reads; null: the operand is something else.
  const auto gradient = [&](const Input& in) -> std::shared_ptr<Node> {
    if (!in.storage || !temporary(in.storage->id) || !whole(in.window, in.storage->bytes)) return nullptr;
    const auto writer = uses.writer.find(in.storage->id);
    if (writer == uses.writer.end() || !uses.written_once(in.storage->id) || uses.readers.at(in.storage->id) != 1)
      return nullptr;
    const auto& made = out[writer->second];
    if (!made || made->op->id != OpId::embedding_grad) return nullptr;
    for (const auto& read : made->in)
      if (uses.updated.contains(read.storage->id)) return nullptr;
    return made;
  };
  for (auto& node : out) {
    if (!node || node->op->id != OpId::add || node->in.size() != 2) continue;
    const DType dtype = node->out[0].window.dtype;  // in other types the two sums would round differently
    if (dtype != DType::f32 && dtype != DType::f64) continue;
    for (int side : {1, 0}) {
      const auto made = gradient(node->in[std::size_t(side)]);
      const Input& other = node->in[std::size_t(1 - side)];
      if (!made || !other.storage || !whole(other.window, other.storage->bytes) ||
          !(other.window.shape == node->out[0].window.shape) || other.window.dtype != node->out[0].window.dtype)
        continue;
      auto joined = with_inputs(node, {other, made->in[0], made->in[1]});
      joined->op = &op_of(OpId::embedding_add);
      out[uses.writer.at(node->in[std::size_t(side)].storage->id)] = nullptr;
      node = std::move(joined);
      break;
    }
  }
  std::erase(out, nullptr);
  return out;
}

Nodes leave_gradients_narrow(const Nodes& nodes, const IsTemporary& temporary) {
  const Uses uses(nodes);
  Nodes out = nodes;
  for (auto& node : out) {
    if (!node || node->op->id != OpId::adamw) continue;
    std::vector<Input> in = node->in;
    for (std::size_t i = 2; i < 2 + std::size_t(node->attrs.i[0]); ++i) {
      const Storage& wide = *in[i].storage;
      if (!temporary(wide.id) || !whole(in[i].window, wide.bytes) || in[i].window.dtype != DType::f32 ||
          uses.readers.at(wide.id) != 1 || !uses.writer.contains(wide.id) || !uses.written_once(wide.id))
        continue;
      auto& made = out[uses.writer.at(wide.id)];
      if (!made || made->op->id != OpId::cast) continue;
      const Input& narrow = made->in[0];
      if (!is_half(narrow.window.dtype) || !whole(narrow.window, narrow.storage->bytes) ||
          uses.updated.contains(narrow.storage->id) || !uses.writer.contains(narrow.storage->id))
        continue;
      in[i] = narrow;
      made = nullptr;
    }
    node = with_inputs(node, in);
  }
  std::erase(out, nullptr);
  return out;
}

}  // namespace rille::tensor
