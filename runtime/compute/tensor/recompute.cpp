#include "runtime/compute/tensor/recompute.hpp"

#include <algorithm>

namespace rille::tensor {

namespace {

constexpr std::size_t least_gap = 12;  // in operations: after a shorter gap between two reads a value is kept
// Ids for the storages that this pass creates; graphs assign smaller ids only.
constexpr std::uint64_t first_id = std::uint64_t(1) << 62;

bool cheap(const Op& op, Recompute level) {
  if (level == Recompute::norms && (op.id == OpId::layer_norm || op.id == OpId::rms_norm)) return true;
  return by_rows(op);
}

class Recomputing {
 public:
  Recomputing(const Nodes& nodes, const IsTemporary& temporary, Recompute level,
              std::vector<std::shared_ptr<Storage>>& made)
      : nodes_(nodes), temporary_(temporary), level_(level), made_(made), uses_(nodes), before_(nodes.size()) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const auto& in : nodes_[i]->in)
        if (in.storage) add(readers_[in.storage->id], i);
      for (const auto& out : nodes_[i]->out)
        if (out.update) updates_[id_of(out)].push_back(i);
    }
  }

  Nodes run() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) consider(i);
    Nodes out;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const auto& again : before_[i]) out.push_back(redirected(again, i));
      out.push_back(redirected(nodes_[i], i));
    }
    return out;
  }

 private:
  static void add(std::vector<std::size_t>& list, std::size_t i) {
    if (list.empty() || list.back() != i) list.push_back(i);
  }

  void consider(std::size_t i) {
    const Node& node = *nodes_[i];
    if (node.payload || node.out.empty() || !cheap(*node.op, level_) || draws(*node.op)) return;
    for (const auto& out : node.out)
      if (out.update) return;
    const auto id = id_of(node.out[0]);
    if (!temporary_(id) || !uses_.written_once(id)) return;
    const auto late = late_reader(i, readers_[id]);
    if (late == none || !kept_until(node, i, late)) return;
    repeat(i, late);
  }

  // The first reader after the longest gap between reads; `none` if every gap is shorter than least_gap.
  static std::size_t late_reader(std::size_t writer, const std::vector<std::size_t>& readers) {
    std::size_t longest = least_gap - 1, late = none, last = writer;
    for (const auto r : readers) {
      if (r - last > longest) longest = r - last, late = r;
      last = r;
    }
    return late;
  }

  // Whether all inputs of `node` still exist, unchanged, at operation `late`.
  bool kept_until(const Node& node, std::size_t i, std::size_t late) {
    return std::all_of(node.in.begin(), node.in.end(), [&](const Input& in) {
      if (!in.storage) return true;
      const auto id = in.storage->id;
      const auto changed = updates_.find(id);
      if (changed != updates_.end() &&
          std::any_of(changed->second.begin(), changed->second.end(), [&](std::size_t u) { return u > i && u < late; }))
        return false;
      return !temporary_(id) || last_use(id) >= late;
    });
  }

  // Takes recomputation into account: after a value is computed again, its original is not read any more.
  std::size_t last_use(std::uint64_t id) {
    const auto& readers = readers_[id];
    if (readers.empty()) return 0;
    const auto again = instead_.find(id);
    if (again == instead_.end()) return readers.back();
    const auto end = std::lower_bound(readers.begin(), readers.end(), again->second.from);
    return end == readers.begin() ? 0 : *(end - 1);
  }

  void repeat(std::size_t i, std::size_t late) {
    const Node& node = *nodes_[i];
    auto again = std::make_shared<Node>();
    again->op = node.op;
    again->attrs = node.attrs;
    again->in = node.in;
    for (const auto& out : node.out) {
      auto storage = std::make_shared<Storage>();
      storage->id = first_id + made_.size();
      storage->bytes = out.bytes;
      again->out.push_back({storage, out.bytes, out.window, false});
      made_.push_back(std::move(storage));
    }
    instead_[id_of(node.out[0])] = {late, again->out[0].storage.lock()};
    before_[late].push_back(std::move(again));
  }

  // A copy of `node`, at index `at`, that reads recomputed values where they exist.
  std::shared_ptr<Node> redirected(const std::shared_ptr<Node>& node, std::size_t at) const {
    std::vector<Input> in = node->in;
    bool changed = false;
    for (auto& one : in) {
      if (!one.storage) continue;
      const auto found = instead_.find(one.storage->id);
      if (found == instead_.end() || at < found->second.from) continue;
      one.storage = found->second.storage;
      changed = true;
    }
    return changed ? with_inputs(node, in) : node;
  }

  static constexpr std::size_t none = ~std::size_t(0);
  struct Again {
    std::size_t from = 0;  // index of the operation before which the value is computed again
    std::shared_ptr<Storage> storage;
  };
  const Nodes& nodes_;
  const IsTemporary& temporary_;
  Recompute level_;
  std::vector<std::shared_ptr<Storage>>& made_;
  Uses uses_;
  std::vector<Nodes> before_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> readers_, updates_;
  std::unordered_map<std::uint64_t, Again> instead_;
};

}  // namespace

Nodes recompute_late(const Nodes& nodes, const IsTemporary& temporary, Recompute level,
                     std::vector<std::shared_ptr<Storage>>& made) {
  return Recomputing(nodes, temporary, level, made).run();
}

}  // namespace rille::tensor
