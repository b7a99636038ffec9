// Helpers for kernels that call oneDNN: memory descriptors, and the key that identifies a cached primitive.
#pragma once

#include <cstdint>
#include <cstring>
#include <dnnl.hpp>
#include <initializer_list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "kernels/call.hpp"

namespace rille::kernels {

// oneDNN cannot be stopped, so a product or convolution with more multiplications than this for each thread, about half
// a second, is computed in parts. The limit is high because each part prepares one of its operands again.
inline constexpr double onednn_work_max = 0x1p35;

}  // namespace rille::kernels

namespace rille::kernels::onednn {

// A descriptor for f32 or bf16, the types for which Rille creates primitives.
inline dnnl::memory::desc describe(DType type, const Dims& shape, const Dims& strides) {
  return {dnnl::memory::dims(shape.d, shape.d + shape.n),
          type == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32,
          dnnl::memory::dims(strides.d, strides.d + strides.n)};
}
inline dnnl::memory::desc describe(const View& v) { return describe(v.dtype, v.shape, v.strides); }

// The numbers that identify a primitive, in the order of the calls of add(). `kind` implies how many numbers follow.
class Key {
 public:
  Key(std::int64_t kind, std::initializer_list<const View*> operands) {
    add(kind);
    for (const View* v : operands)
      for (int d = 0; d < v->shape.n; ++d) {
        add(v->shape[d]);
        add(v->strides[d]);
      }
  }
  void add(std::int64_t word) { words_[n_++] = word; }
  bool operator==(const Key& o) const { return std::memcmp(words_, o.words_, sizeof words_) == 0; }

  struct Hash {
    std::size_t operator()(const Key& k) const {
      std::uint64_t h = 1469598103934665603ull;
      for (const auto w : k.words_) h = (h ^ std::uint64_t(w)) * 1099511628211ull;
      return h ^ (h >> 29);
    }
  };

 private:
  std::int64_t words_[48] = {};  // enough for two operands of rank 8, or for three of rank 5 and seven options
  int n_ = 0;
};

// Caches primitives by key. When `limit` is reached, all are dropped.
template <class Made>
class Kept {
 public:
  static constexpr std::size_t limit = 1024;
  // Returns the entry of `key`, creating it with make() if missing. If make() throws, nothing changes.
  template <class Make>
  Made& get(const Key& key, const Make& make) {
    if (const auto found = made_.find(key); found != made_.end()) return *found->second;
    std::unique_ptr<Made> fresh = make();
    if (made_.size() >= limit) made_.clear();
    return *made_.emplace(key, std::move(fresh)).first->second;
  }

 private:
  std::unordered_map<Key, std::unique_ptr<Made>, Key::Hash> made_;
};

}  // namespace rille::kernels::onednn
