#include "runtime/compute/tensor/epilogues.hpp"

#include "kernels/gemm.hpp"

namespace rille::tensor {

namespace {

using kernels::Activation;

Activation activation_of(const Node& node) {
  return node.op->id == OpId::relu ? Activation::relu : node.op->id == OpId::gelu ? Activation::gelu : Activation::none;
}

class Epilogues {
 public:
  Epilogues(const Nodes& nodes, const IsTemporary& temporary) : nodes_(nodes), temporary_(temporary), uses_(nodes) {}

  Nodes run() {
    std::unordered_map<std::size_t, std::shared_ptr<Node>> joined;  // index of a product -> the joined operation
    std::unordered_set<std::size_t> gone;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto product = product_of(i);
      if (!product || joined.contains(*product)) continue;
      auto both = join(*nodes_[*product], *nodes_[i]);
      if (!both) continue;
      joined[*product] = std::move(both);
      gone.insert(i);
    }
    Nodes out;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (gone.contains(i)) continue;
      const auto found = joined.find(i);
      out.push_back(found == joined.end() ? nodes_[i] : found->second);
    }
    return out;
  }

 private:
  bool plain(const Output& out) const {
    return !out.update && whole(out.window, out.bytes) && uses_.written_once(id_of(out));
  }

  // The index of the product that activation `i` reads; empty: none.
  std::optional<std::size_t> product_of(std::size_t i) const {
    const Node& node = *nodes_[i];
    if (activation_of(node) == Activation::none || node.in.size() != 1 || !node.in[0].storage) return std::nullopt;
    const auto& in = node.in[0];
    const auto made = uses_.writer.find(in.storage->id);
    if (made == uses_.writer.end() || made->second >= i || !whole(in.window, in.storage->bytes) || !plain(node.out[0]))
      return std::nullopt;
    const Node& product = *nodes_[made->second];
    if (product.op->id != OpId::linear || !plain(product.out[0])) return std::nullopt;
    return product.out[0].window.dtype == node.out[0].window.dtype ? std::optional(made->second) : std::nullopt;
  }

  std::shared_ptr<Node> join(const Node& product, const Node& node) const {
    const Output& before = product.out[0];
    const auto id = id_of(before);
    const bool wanted = !temporary_(id) || uses_.readers.at(id) > 1;
    const auto activation = activation_of(node);
    if (wanted && activation == Activation::relu) return nullptr;
    auto both = std::make_shared<Node>();
    both->op = &op_of(OpId::linear_activated);
    both->attrs = product.attrs;
    both->attrs.i[0] = std::int64_t(activation);
    both->in = product.in;
    const Output& out = node.out[0];
    both->out.push_back({out.storage, out.bytes, before.window, false});
    if (wanted) both->out.push_back(before);
    return both;
  }

  const Nodes& nodes_;
  const IsTemporary& temporary_;
  Uses uses_;
};

}  // namespace

Nodes join_epilogues(const Nodes& nodes, const IsTemporary& temporary) { return Epilogues(nodes, temporary).run(); }

}  // namespace rille::tensor
