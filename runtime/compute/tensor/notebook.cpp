#include "runtime/compute/tensor/notebook.hpp"

#include <fmt/format.h>

namespace rille::tensor {

void Notebook::seed_input(const Tensor& t) {
  const auto& storage = t.impl()->storage;
  places_.try_emplace(storage->id, Origin{Origin::Kind::input, inputs_.size()});
  storages_.try_emplace(storage->id, storage);
  inputs_.push_back(t);
}

void Notebook::seed_constant(const std::shared_ptr<Storage>& storage, std::uint64_t hash) {
  places_[storage->id] = {Origin::Kind::constant, hash};
  storages_[storage->id] = storage;
}

Origin Notebook::place_of(std::uint64_t storage_id) const {
  const auto found = places_.find(storage_id);
  return found == places_.end() ? Origin{} : found->second;
}

std::shared_ptr<Storage> Notebook::storage(std::uint64_t id) const {
  const auto found = storages_.find(id);
  return found == storages_.end() ? nullptr : found->second;
}

Origin Notebook::place(const std::shared_ptr<Storage>& storage) {
  return places_.try_emplace(storage->id, Origin{Origin::Kind::outside, storage->id}).first->second;
}

void Notebook::operation(const std::shared_ptr<Node>& node, bool keep) {
  Note note{node->op, node->attrs, node->payload, node->random.index, {}, {}, where_ ? where_() : std::string{}};
  const auto add = [&](std::vector<std::pair<Origin, Window>>& list, Origin where, Window window) {
    if (where.kind == Origin::Kind::input) window.offset -= inputs_[where.number].impl()->window.offset;
    list.emplace_back(where, window);
  };
  for (const auto& in : node->in) {
    add(note.in, in.storage ? place(in.storage) : Origin{}, in.window);
    if (keep && in.storage) storages_.try_emplace(in.storage->id, in.storage);
  }
  for (const auto& out : node->out) {
    const auto storage = out.storage.lock();
    if (!out.update && !places_.contains(storage->id)) places_[storage->id] = {Origin::Kind::born, births_++};
    add(note.out, place(storage), out.window);
    if (keep) storages_.try_emplace(storage->id, storage);
  }
  notes_.push_back(std::move(note));
  if (keep) nodes_.push_back(node);
}

void Notebook::reach(const Tensor& t) {
  const auto id = t.impl()->storage->id;
  if (t.impl()->argument != call_ && place_of(id).kind == Origin::Kind::input) reached_.insert(id);
}

void Notebook::watch(const Tensor& t) {
  const auto kind = place_of(t.impl()->storage->id).kind;
  if (kind == Origin::Kind::born || kind == Origin::Kind::input) return;
  const auto [at, fresh] = watched_at_.try_emplace(t.impl().get(), watched_.size());
  if (fresh) watched_.emplace_back();
  else if (!watched_[at->second].tensor.expired()) return;
  const auto& storage = t.impl()->storage;
  watched_[at->second] = {t.impl(), storage, t.impl()->window, t.requires_grad(), storage->freed};
}

Guard& Notebook::guard(const std::shared_ptr<TensorImpl>& leaf) {
  for (auto& g : guards_)
    if (g.leaf == leaf) return g;
  guards_.push_back({leaf, leaf->grad, false});
  if (leaf->grad) seed_input(leaf->grad);
  return guards_.back();
}

void Notebook::grad_read(const std::shared_ptr<TensorImpl>& leaf) { guard(leaf); }
void Notebook::grad_written(const std::shared_ptr<TensorImpl>& leaf) { guard(leaf).changed = true; }

namespace {

std::string show(const Note& n) {
  std::string text = std::string(n.op->name) + "(";
  for (std::size_t i = 0; i < n.in.size() && i < 4; ++i) {
    text += (i ? ", " : "") + std::string(name_of(n.in[i].second.dtype)) + to_string(n.in[i].second.shape);
  }
  if (n.in.size() > 4) text += ", ...";
  return text + ")" + (n.where.empty() ? "" : " at " + n.where);
}

std::string reason(const Note& a, const Note& b) {
  if (a.op != b.op || a.in.size() != b.in.size() || a.out.size() != b.out.size()) return "";
  for (std::size_t i = 0; i < a.in.size(); ++i) {
    const auto &x = a.in[i], &y = b.in[i];
    if (x.first == y.first) continue;
    if (x.first.kind == Origin::Kind::constant && y.first.kind == Origin::Kind::constant) {
      return fmt::format("; operand {} is host data that changed: pass it as an argument", i + 1);
    }
    return fmt::format("; operand {} is another tensor: pass it as an argument", i + 1);
  }
  if (!a.same_payload(b)) {
    return "; its kernel, shape or a plain argument changed: pass what changes through a tensor, or put it in the key";
  }
  if (!(a.attrs == b.attrs)) return "; a plain number changed: pass it as a 0-d tensor or put it in the key";
  return "";
}

}  // namespace

std::string first_difference(const std::vector<Note>& before, const std::vector<Note>& now) {
  const std::size_t n = std::min(before.size(), now.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (before[i].same(now[i])) continue;
    return fmt::format("operation {} was {}, now {}{}", i + 1, show(before[i]), show(now[i]),
                       reason(before[i], now[i]));
  }
  if (before.size() > n)
    return fmt::format("operation {} was {}, now the function ends before it", n + 1, show(before[n]));
  if (now.size() > n) return fmt::format("operation {} is {}, where the function ended before", n + 1, show(now[n]));
  return "";
}

}  // namespace rille::tensor
