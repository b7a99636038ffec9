// Joins operations into groups, in program order. A group runs at the position of its last member, so it is closed at a
// later node outside the group that reads the group's results or writes its inputs.
#include "runtime/compute/tensor/fuse.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace rille::tensor {

namespace {

using kernels::Fused;

constexpr int most_inputs = 9;  // limit of a group's inputs, which leaves operands for the outputs

// Whether `node` can fail: only the kernel of integer division reports a division by zero.
bool may_fail(const Node& node) {
  return (node.op->id == OpId::floor_divide || node.op->id == OpId::remainder) &&
         !is_floating(node.out[0].window.dtype);
}

// The window that reads the elements of `w`, broadcast to `shape`, in order; nullopt if no strides do that.
std::optional<Window> seen_as(const Window& w, const Dims& shape) {
  if (w.shape == shape) return w;
  if (w.shape.count() != shape.count()) return std::nullopt;
  const auto strides = view_strides(w.shape, w.strides, shape);
  if (!strides) return std::nullopt;
  return Window{w.offset, w.dtype, shape, *strides};
}

struct Group {
  std::vector<std::size_t> members;  // indices of nodes, in program order
  Dims shape;
  int inputs = 0;  // upper bound: inputs from outside the group, counting repeats
  bool closed = false;
};

class Fusion {
 public:
  Fusion(const Nodes& nodes, const IsTemporary& temporary)
      : nodes_(nodes), temporary_(temporary), uses_(nodes), group_of_(nodes.size(), none) {}

  Nodes run() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (fits(*nodes_[i])) join(i);
      close_others(i);
    }
    Nodes out;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Group* group = group_of_[i] == none ? nullptr : &groups_[group_of_[i]];
      if (!group || group->members.size() < 2) out.push_back(nodes_[i]);
      else if (group->members.back() == i) emit(*group, out);
    }
    return out;
  }

 private:
  static constexpr std::size_t none = ~std::size_t(0);

  bool fits(const Node& node) const {
    if (!node.op || !by_rows(*node.op) || node.payload || node.out.size() != 1 || node.in.size() > 3) return false;
    const Output& out = node.out[0];
    if (out.update || out.window.shape.count() == 0 || !whole(out.window, out.bytes)) return false;
    for (const auto& in : node.in)
      if (!in.storage) return false;
    return uses_.written_once(id_of(out)) && !may_fail(node);
  }

  std::size_t maker_of(const Input& in) const {
    const auto found = made_by_.find(in.storage->id);
    return found == made_by_.end() ? none : found->second;
  }

  // A member may read the output of another member only through a window on the whole output.
  static bool straight(const Input& in) { return whole(in.window, in.storage->bytes); }

  // Whether all inputs of node `i` can be read in the order of the elements of `shape`.
  bool readable(std::size_t i, const Dims& shape) const {
    return std::all_of(nodes_[i]->in.begin(), nodes_[i]->in.end(),
                       [&](const Input& in) { return seen_as(in.window, shape).has_value(); });
  }

  // The open groups that make inputs of node `i`.
  std::vector<std::size_t> candidates(std::size_t i) const {
    std::vector<std::size_t> out;
    for (const auto& in : nodes_[i]->in) {
      const auto g = maker_of(in);
      if (g == none || groups_[g].closed || std::find(out.begin(), out.end(), g) != out.end()) continue;
      const bool all_straight = std::all_of(nodes_[i]->in.begin(), nodes_[i]->in.end(), [&](const Input& other) {
        return maker_of(other) != g || straight(other);
      });
      if (all_straight) out.push_back(g);
    }
    return out;
  }

  void join(std::size_t i) {
    std::size_t into = none;
    for (const auto g : candidates(i)) {
      if (into == none) {
        if (takes(g, {i}, int(nodes_[i]->in.size()) - 1)) add(into = g, i);
      } else if (takes(into, groups_[g].members, groups_[g].inputs - 1)) {
        unite(into, g);
      }
    }
    if (into == none) {
      groups_.push_back({{}, nodes_[i]->out[0].window.shape, 0, false});
      add(groups_.size() - 1, i);
      groups_.back().inputs = int(nodes_[i]->in.size());
    }
  }

  bool takes(std::size_t g, const std::vector<std::size_t>& more, int more_inputs) const {
    const Group& group = groups_[g];
    return group.members.size() + more.size() <= Fused::most_steps && group.inputs + more_inputs <= most_inputs &&
           std::all_of(more.begin(), more.end(), [&](std::size_t i) { return readable(i, group.shape); });
  }

  void add(std::size_t g, std::size_t i) {
    Group& group = groups_[g];
    if (!group.members.empty())
      for (const auto& in : nodes_[i]->in) group.inputs += maker_of(in) != g;
    group.members.push_back(i);
    group_of_[i] = g;
    made_by_[id_of(nodes_[i]->out[0])] = g;
    for (const auto& in : nodes_[i]->in) read_by_[in.storage->id].push_back(g);
  }

  void unite(std::size_t into, std::size_t from) {
    const auto members = groups_[from].members;
    const int inputs = groups_[from].inputs;
    for (const auto m : members) {
      group_of_[m] = into;
      made_by_[id_of(nodes_[m]->out[0])] = into;
      for (const auto& in : nodes_[m]->in) read_by_[in.storage->id].push_back(into);
    }
    auto& all = groups_[into].members;
    all.insert(all.end(), members.begin(), members.end());
    std::sort(all.begin(), all.end());
    groups_[into].inputs += inputs - 1;
    groups_[from] = {{}, {}, 0, true};
  }

  void close_others(std::size_t i) {
    for (const auto& in : nodes_[i]->in) {
      if (!in.storage) continue;
      const auto g = maker_of(in);
      if (g != none && g != group_of_[i]) groups_[g].closed = true;
    }
    for (const auto& out : nodes_[i]->out) {
      const auto id = id_of(out);
      if (const auto found = made_by_.find(id); found != made_by_.end() && found->second != group_of_[i])
        groups_[found->second].closed = true;
      if (const auto found = read_by_.find(id); found != read_by_.end())
        for (const auto g : found->second)
          if (g != group_of_[i]) groups_[g].closed = true;
    }
  }

  void emit(const Group& group, Nodes& out) const;

  const Nodes& nodes_;
  const IsTemporary& temporary_;
  Uses uses_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;
  std::unordered_map<std::uint64_t, std::size_t> made_by_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> read_by_;
};

// Turns one group into one node.
class Joiner {
 public:
  Joiner(const Nodes& nodes, const Group& group) : nodes_(nodes), group_(group) {}

  // Null: the group needs more operands or temporaries than a kernel call can have.
  std::shared_ptr<Node> run(const std::function<bool(std::uint64_t)>& leaves) {
    for (const auto i : group_.members) made_[id_of(nodes_[i]->out[0])] = i;
    collect_inputs();
    for (const auto i : group_.members) {
      const auto& out = nodes_[i]->out[0];
      if (!leaves(id_of(out))) continue;
      output_[id_of(out)] = int(node_->out.size());
      node_->out.push_back(
          {out.storage, out.bytes, {0, out.window.dtype, group_.shape, contiguous_strides(group_.shape)}, false});
    }
    if (node_->in.size() + node_->out.size() > std::size_t(Fused::most_operands)) return nullptr;
    measure();
    for (std::size_t k = 0; k < group_.members.size(); ++k)
      if (!step(k)) return nullptr;
    program_->n_steps = int(group_.members.size());
    node_->op = &op_of(OpId::fused);
    node_->payload = program_;
    return node_;
  }

 private:
  void collect_inputs() {
    for (const auto i : group_.members) {
      for (const auto& in : nodes_[i]->in) {
        if (made_.contains(in.storage->id)) continue;
        const Input as{in.storage, *seen_as(in.window, group_.shape)};
        const auto same = [&](const Input& other) {
          return other.storage->id == as.storage->id && other.window == as.window;
        };
        auto found = std::find_if(node_->in.begin(), node_->in.end(), same);
        input_[&in] = int(found - node_->in.begin());
        if (found != node_->in.end()) continue;
        node_->in.push_back(as);
      }
    }
  }

  void measure() {
    for (std::size_t k = 0; k < group_.members.size(); ++k) {
      for (const auto& in : nodes_[group_.members[k]]->in)
        if (made_.contains(in.storage->id)) last_read_[in.storage->id] = k;
    }
  }

  int place_of(const Input& in) const {
    if (const auto outside = input_.find(&in); outside != input_.end()) return outside->second;
    if (const auto out = output_.find(in.storage->id); out != output_.end()) return int(node_->in.size()) + out->second;
    return piece_.at(in.storage->id);
  }

  int new_place(const Output& out) {
    const auto id = id_of(out);
    if (const auto found = output_.find(id); found != output_.end()) return int(node_->in.size()) + found->second;
    const int outside = int(node_->in.size() + node_->out.size());
    int piece;
    if (free_.empty()) {
      piece = program_->n_pieces++;
    } else {
      piece = free_.back();
      free_.pop_back();
    }
    return piece_[id] = outside + piece;
  }

  bool step(std::size_t k) {
    const Node& member = *nodes_[group_.members[k]];
    int places[4];  // places of the member's inputs, then of its output
    for (std::size_t j = 0; j < member.in.size(); ++j) places[j] = place_of(member.in[j]);
    places[member.in.size()] = new_place(member.out[0]);
    if (program_->n_pieces > Fused::most_pieces) return false;
    for (const auto& in : member.in) {
      const auto held = piece_.find(in.storage->id);
      if (held == piece_.end() || last_read_.at(in.storage->id) != k) continue;
      free_.push_back(held->second - int(node_->in.size() + node_->out.size()));
      piece_.erase(held);
    }
    program_->steps[k].op = member.op->id;
    ask(member, places, program_->steps[k]);
    program_->text += (program_->text.empty() ? "" : "+") + std::string(member.op->name);
    return true;
  }

  // Asks the kernel of `member` for its row function.
  static void ask(const Node& member, const int* places, Fused::Step& step) {
    const int n_in = int(member.in.size());
    kernels::View views[4];
    for (int j = 0; j < n_in; ++j) views[j].dtype = member.in[std::size_t(j)].window.dtype;
    views[n_in].dtype = member.out[0].window.dtype;
    kernels::Call call{views, n_in, views + n_in, 1, &member.attrs};
    call.rows = &step.answer;
    member.op->kernel(call);
    for (int j = 0; j < step.answer.operands; ++j) {
      const int which = step.answer.operand[j];
      step.place[j] = which < 0 ? -1 : places[which];
      step.dtype[j] = which < 0 ? step.answer.number_dtype : views[which].dtype;
    }
  }

  const Nodes& nodes_;
  const Group& group_;
  std::shared_ptr<Node> node_ = std::make_shared<Node>();
  std::shared_ptr<FusedGroup> program_ = std::make_shared<FusedGroup>();
  std::unordered_map<std::uint64_t, std::size_t> made_, last_read_;
  std::unordered_map<std::uint64_t, int> output_, piece_;
  std::map<const Input*, int> input_;
  std::vector<int> free_;
};

void Fusion::emit(const Group& group, Nodes& out) const {
  std::unordered_map<std::uint64_t, int> inner_reads;
  for (const auto i : group.members)
    for (const auto& in : nodes_[i]->in) ++inner_reads[in.storage->id];
  const auto leaves = [&](std::uint64_t id) {
    const auto all = uses_.readers.find(id);
    return !temporary_(id) || (all != uses_.readers.end() && all->second > inner_reads[id]);
  };
  if (auto joined = Joiner(nodes_, group).run(leaves)) out.push_back(std::move(joined));
  else
    for (const auto i : group.members) out.push_back(nodes_[i]);
}

}  // namespace

bool FusedGroup::may_share(int in, int n_in, int out) const {
  bool written = false;
  for (const Step& s : std::span(steps, std::size_t(n_steps))) {
    const int last = s.answer.operands - 1;
    for (int j = 0; j < last; ++j)
      if (written && s.place[j] == in) return false;
    written = written || s.place[last] == n_in + out;
  }
  return true;
}

Nodes fuse_elementwise(const Nodes& nodes, const IsTemporary& temporary) { return Fusion(nodes, temporary).run(); }

}  // namespace rille::tensor
