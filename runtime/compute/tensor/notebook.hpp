// Notebook: records what a compiled function does. It notes each operation so that two calls can be compared (storages
// are numbered by first appearance) and, while tracing, keeps the operations from which the plan is made.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

// Where an operand comes from. Two calls of a function that do the same have equal Origins.
struct Origin {
  enum class Kind : std::uint8_t { none, input, born, outside, constant } kind = Kind::none;
  std::uint64_t number = 0;  // input, born: index; outside: id of the storage; constant: hash of the bytes
  bool operator==(const Origin&) const = default;
};

struct Note {
  const Op* op = nullptr;
  kernels::Attrs attrs;
  std::shared_ptr<const kernels::Payload> payload;
  std::uint32_t random_index = 0;
  std::vector<std::pair<Origin, Window>> in, out;  // windows; an input's window is relative to the offset of that input
  std::string where;
  bool same_payload(const Note& other) const {
    return payload == other.payload || (payload && other.payload && payload->same(*other.payload));
  }
  bool same(const Note& other) const {
    return op == other.op && attrs == other.attrs && same_payload(other) && random_index == other.random_index &&
           in == other.in && out == other.out;
  }
};

// A leaf whose .grad the function read or wrote.
struct Guard {
  std::shared_ptr<TensorImpl> leaf;
  Tensor before;  // .grad before the call; if not empty, a further input of the function
  bool changed = false;
  bool had() const { return bool(before); }
};

// A tensor made outside that the function uses, with its state during the recording. The handle may be gone by now.
struct Watched {
  std::weak_ptr<TensorImpl> tensor;
  std::weak_ptr<Storage> storage;
  Window window;
  bool requires_grad = false, freed = false;
  bool is_freed() const {
    const auto s = storage.lock();
    return s && s->freed != freed;
  }
  bool is_changed() const {
    const auto t = tensor.lock();
    return is_freed() || (t && t->requires_grad != requires_grad);
  }
};

class Notebook {
 public:
  // `call`: the number of the call, which the handles of its arguments store (TensorImpl::argument).
  Notebook(std::function<std::string()> where, std::uint64_t call) : where_(std::move(where)), call_(call) {}

  void seed_input(const Tensor& t);
  void seed_constant(const std::shared_ptr<Storage>& storage, std::uint64_t hash);
  void operation(const std::shared_ptr<Node>& node, bool keep);
  // Notes that the function uses `t`. If `t` shares memory with an argument but is not that argument, the argument
  // counts as reached: in another call the two may be different tensors.
  void reach(const Tensor& t);
  void watch(const Tensor& t);
  void grad_read(const std::shared_ptr<TensorImpl>& leaf);
  void grad_written(const std::shared_ptr<TensorImpl>& leaf);

  const std::vector<Note>& notes() const { return notes_; }
  const std::unordered_set<std::uint64_t>& reached() const { return reached_; }  // ids of the reached storages
  const std::vector<Guard>& guards() const { return guards_; }
  const std::vector<Watched>& watched() const { return watched_; }
  const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }  // the arguments, then the leaves' earlier .grad
  std::shared_ptr<Storage> storage(std::uint64_t id) const;      // null: no traced operation used it
  Origin place_of(std::uint64_t storage_id) const;

 private:
  Guard& guard(const std::shared_ptr<TensorImpl>& leaf);
  Origin place(const std::shared_ptr<Storage>& storage);
  std::function<std::string()> where_;
  std::vector<Note> notes_;
  std::vector<Guard> guards_;
  std::vector<Watched> watched_;
  std::unordered_map<const TensorImpl*, std::size_t> watched_at_;
  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<Tensor> inputs_;
  std::unordered_map<std::uint64_t, Origin> places_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Storage>> storages_;
  std::uint64_t call_, births_ = 0;
  std::unordered_set<std::uint64_t> reached_;
};

// Empty if both calls did the same; else one sentence about the first difference.
std::string first_difference(const std::vector<Note>& before, const std::vector<Note>& now);

}  // namespace rille::tensor
