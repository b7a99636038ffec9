// A Call is the argument of every kernel. A kernel is `void name(const Call&)`: it reads c.in[], writes c.out[], takes
// plain numbers from c.attrs, and reports bad data (a label out of range) with c.fail(). The caller has checked shapes
// and types. Scratch memory comes from c.lane, so that a replayed plan allocates nothing. All calls of a process run on
// one thread, the lane, one at a time; a kernel may use OpenMP threads inside. A kernel that may take more than some
// milliseconds looks at stopped() and returns early if it is true. Kernel files include only C headers and this header:
// a std:: template compiled for AVX-512 could replace the generic copy at link time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.hpp"

namespace rille::kernels {

inline constexpr int max_rank = 8;

// A short list of numbers: a shape, strides in elements, or a permutation.
struct Dims {
  std::int64_t d[max_rank] = {};
  int n = 0;
  std::int64_t& operator[](int i) { return d[i]; }
  std::int64_t operator[](int i) const { return d[i]; }
  std::int64_t count() const {
    std::int64_t c = 1;
    for (int i = 0; i < n; ++i) c *= d[i];
    return c;
  }
  void push(std::int64_t v) {  // beyond max_rank: nothing
    if (n < max_rank) d[n++] = v;
  }
  bool operator==(const Dims& o) const {
    if (n != o.n) return false;
    for (int i = 0; i < n; ++i)
      if (d[i] != o.d[i]) return false;
    return true;
  }
};

// A strided view of memory. data is null for an omitted operand.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  Dims shape, strides;
  template <class T>
  T* ptr() const {
    return static_cast<T*>(data);
  }
  std::int64_t count() const { return shape.count(); }
};

// The plain numbers of one operation. Two calls with different attributes belong to different plans.
struct Attrs {
  std::int64_t i[max_rank] = {};
  double f[8] = {};
  bool operator==(const Attrs& o) const {
    for (int k = 0; k < max_rank; ++k)
      if (i[k] != o.i[k]) return false;
    for (int k = 0; k < 8; ++k)
      if (f[k] != o.f[k] && (f[k] == f[k] || o.f[k] == o.f[k])) return false;
    return true;
  }
};

// Index in attrs.i of products and convolutions. 1: devices with TF32 may round f32 operands to it.
inline constexpr int tf32_at = max_rank - 1;

// The key of a random operation. The number at a position is Philox(seed; step, index, position).
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t index = 0;
};

class GemmCache;  // defined in kernels/gemm.hpp

// Tells a call that another thread wants it to end early: that thread increases *count, and the call ends if *count is
// no longer `asked`, the count at which it was recorded. count null: the call runs to its end. A library's call cannot
// be ended, so a call with more than `parts_above` multiplications per thread is computed in parts; 0: never.
struct StopSign {
  const std::uint64_t* count = nullptr;
  std::uint64_t asked = 0;
  double parts_above = 0;
};
// Takes about half a second. Smaller parts would be slow, because each part prepares one of its operands again.
inline constexpr double parts_above_usual = 0x1p35;

// Memory and library objects that the lane keeps between calls. Not thread-safe: one per lane.
class LaneState {
 public:
  LaneState();
  ~LaneState();
  LaneState(const LaneState&) = delete;
  LaneState& operator=(const LaneState&) = delete;
  // Returns scratch memory of at least `bytes`, 64-byte aligned, valid until the kernel returns; nullptr: out of
  // memory. A kernel call may ask once. The buffer grows and is kept.
  void* scratch(std::size_t bytes);  // also nullptr if it would have to grow by more than may_grow allows
  // Like scratch(), in a separate buffer for widened(), because the kernel that widened() runs may use scratch().
  void* staging(std::size_t bytes);
  void may_grow(std::int64_t bytes) { growth_ = bytes; }  // most bytes by which the next call may enlarge its scratch
  GemmCache& gemms() { return *gemms_; }
  // An object that a library prepares once and reuses. The kernel that uses it creates it; null before.
  struct Prepared {
    virtual ~Prepared();
  };
  enum class Library { convolution, fourier, count };
  Prepared*& prepared(Library l) { return prepared_[int(l)]; }
  // Sets the sign for the following calls. cut_short: a kernel has seen it, so its outputs are half written.
  void heed(const StopSign& sign) {
    sign_ = sign;
    cut_short_ = false;
  }
  bool cut_short() const { return cut_short_; }
  // Kernels that may run long call Call::stopped() every 0.1 ms or so, from any thread of the call.
  __attribute__((always_inline)) bool stopped() {
    if (!sign_.count || __atomic_load_n(sign_.count, __ATOMIC_RELAXED) == sign_.asked) return false;
    __atomic_store_n(&cut_short_, true, __ATOMIC_RELAXED);
    return true;
  }
  double parts_above() const { return sign_.parts_above; }

 private:
  struct Block {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  void* grown(Block& block, std::size_t bytes) const;
  Block scratch_, staging_;
  std::int64_t growth_ = INT64_MAX;
  GemmCache* gemms_;
  Prepared* prepared_[int(Library::count)] = {};
  StopSign sign_;
  bool cut_short_ = false;
};

struct Call;
struct RowAnswer;  // defined in kernels/fused.hpp

// Data of an operation other than numbers, such as a user's kernel and its launch. Part of a plan's identity.
struct Payload {
  virtual ~Payload() = default;
  virtual const char* name() const = 0;  // name of the kernel, for messages
  virtual bool same(const Payload& other) const = 0;
  // Whether an update in place obeys stopped(), so that the tensor it writes may lose its value.
  virtual bool breaks_off() const { return false; }
  virtual void run(const Call& c) const = 0;
};

struct Call {
  const View* in = nullptr;
  int n_in = 0;
  const View* out = nullptr;
  int n_out = 0;
  const Attrs* attrs = nullptr;
  RandomKey random;
  LaneState* lane = nullptr;
  char* error = nullptr;  // text of error_bytes bytes; empty: no error
  const Payload* payload = nullptr;
  RowAnswer* rows = nullptr;  // if set, an element-wise kernel does not run but stores its row function here
  static constexpr std::size_t error_bytes = 800;
  void fail(const char* format, ...) const __attribute__((format(printf, 2, 3)));  // keeps the first message only
  // true: the kernel must return
  __attribute__((always_inline)) bool stopped() const { return lane && lane->stopped(); }
};

using Kernel = void (*)(const Call&);

// The instruction-set level in use: 1 (any x86-64), 3 (AVX2, FMA) or 4 (AVX-512). It is the highest level that the
// processor supports and this build contains (RILLE_KERNEL_LEVELS), decided once per process. For tests,
// RILLE_ISA=v1|v3|v4 in the environment lowers it.
int isa_level();
const char* isa_levels_built();  // for example "v1, v3, v4"

// Runs `kernel`, which supports f32 and f64 only, on f32 copies of f16 and bf16 operands, and rounds the results to the
// outputs. The old values of outputs are not read. Element-wise kernels read half types themselves (kernels/walk.hpp).
void widened(const Call& c, Kernel kernel);

}  // namespace rille::kernels

// RILLE_KERNEL(name) declares a kernel whose file is compiled once per instruction set, and defines the function that
// calls the build for this processor. In those files themselves it expands to nothing, because the linker would merge
// an inline function compiled for one instruction set with the generic copy.
#ifdef RILLE_ISA
#define RILLE_KERNEL(name)
#else
#define RILLE_KERNEL_BUILDS(name) \
  namespace rille::kernels::v1 {  \
  void name(const Call&);         \
  }                               \
  namespace rille::kernels::v3 {  \
  void name(const Call&);         \
  }                               \
  namespace rille::kernels::v4 {  \
  void name(const Call&);         \
  }
// isa_level() never chooses a level that was not built; using v1 for it only makes the name valid.
#ifdef RILLE_WITHOUT_V3
#define RILLE_V3 v1
#else
#define RILLE_V3 v3
#endif
#ifdef RILLE_WITHOUT_V4
#define RILLE_V4 v1
#else
#define RILLE_V4 v4
#endif
#define RILLE_BEST_OF(name) best_of(&v1::name, &RILLE_V3::name, &RILLE_V4::name)
#define RILLE_KERNEL(name)                                    \
  RILLE_KERNEL_BUILDS(name)                                   \
  namespace rille::kernels {                                  \
  inline void name(const Call& c) { RILLE_BEST_OF(name)(c); } \
  }
namespace rille::kernels {
inline Kernel best_of(Kernel v1, Kernel v3, Kernel v4) {
  const int level = isa_level();
  return level == 4 ? v4 : level == 3 ? v3 : v1;
}
}  // namespace rille::kernels
#endif
