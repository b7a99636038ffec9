// Notebook: records what a compiled function does. It notes each operation in a form in which two calls can be compared
// (storages numbered by their first appearance) and, while tracing, keeps the operations themselves for the plan.
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

// The origin of an operand, equal in all calls of a function that does the same.
struct Place {
  enum class Kind : std::uint8_t { none, input, born, outside, constant } kind = Kind::none;
  std::uint64_t number = 0;  // input, born: its number; outside: the storage's id; constant: the hash of its bytes
  bool operator==(const Place&) const = default;
};

struct Note {
  const Op* op = nullptr;
  kernels::Attrs attrs;
  std::shared_ptr<const kernels::Payload> payload;
  std::uint32_t random_index = 0;
  std::vector<std::pair<Place, Window>> in, out;  // an input's window is relative to the input's own offset
  std::string where;
  bool same_payload(const Note& other) const {
    return payload == other.payload || (payload && other.payload && payload->same(*other.payload));
  }
  bool same(const Note& other) const {
    return op == other.op && attrs == other.attrs && same_payload(other) && random_index == other.random_index &&
           in == other.in && out == other.out;
  }
};

// A leaf whose .grad the function read or wrote, with its .grad before the call.
struct Guard {
  std::shared_ptr<TensorImpl> leaf;
  Tensor before;  // .grad before; becomes a further input of the function
  bool changed = false;
  bool had() const { return bool(before); }
};

// A tensor from outside that the function uses, with its state at that time. A view's handle may be gone since.
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
  // `call`: number of the call, as stored in its arguments' handles (TensorImpl::argument).
  Notebook(std::function<std::string()> where, std::uint64_t call) : where_(std::move(where)), call_(call) {}

  void seed_input(const Tensor& t);
  void seed_constant(const std::shared_ptr<Storage>& storage, std::uint64_t hash);
  void operation(const std::shared_ptr<Node>& node, bool keep);
  // Notes that the function uses `t`. An argument's memory used through another handle counts as reached: in another
  // call the two may be different tensors.
  void reach(const Tensor& t);
  void watch(const Tensor& t);
  void grad_read(const std::shared_ptr<TensorImpl>& leaf);
  void grad_written(const std::shared_ptr<TensorImpl>& leaf);

  const std::vector<Note>& notes() const { return notes_; }
  const std::unordered_set<std::uint64_t>& reached() const { return reached_; }  // storages
  const std::vector<Guard>& guards() const { return guards_; }
  const std::vector<Watched>& watched() const { return watched_; }
  const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }  // then gradients that it found
  std::shared_ptr<Storage> storage(std::uint64_t id) const;      // seen while tracing
  Place place_of(std::uint64_t storage_id) const;

 private:
  Guard& guard(const std::shared_ptr<TensorImpl>& leaf);
  Place place(const std::shared_ptr<Storage>& storage);
  std::function<std::string()> where_;
  std::vector<Note> notes_;
  std::vector<Guard> guards_;
  std::vector<Watched> watched_;
  std::unordered_map<const TensorImpl*, std::size_t> watched_at_;
  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<Tensor> inputs_;
  std::unordered_map<std::uint64_t, Place> places_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Storage>> storages_;
  std::uint64_t call_, births_ = 0;
  std::unordered_set<std::uint64_t> reached_;
};

// Empty if both did the same, else one sentence about the first difference.
std::string first_difference(const std::vector<Note>& before, const std::vector<Note>& now);

}  // namespace rille::tensor
