// Runs operations: an operation's launch function names kernels; CardLauncher finds and launches them.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "runtime/compute/device/cuda/card.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::kernels {

// A second definition of Call::fail for the plug-in, which is not linked with the CPU's kernels.
void Call::fail(const char* format, ...) const {
  if (!error || error[0]) return;
  va_list args;
  va_start(args, format);
  std::vsnprintf(error, error_bytes, format, args);
  va_end(args);
}

}  // namespace rille::kernels

namespace rille::device::cuda {

namespace {

constexpr unsigned shared_default = 48u << 10;

// Launches the kernels of one operation.
class CardLauncher final : public kernels::cuda::Launcher {
 public:
  CardLauncher(Card& card, const char* operation, const kernels::Call& call, Failure& f)
      : card_(card), operation_(operation), call_(call), f_(f) {}
  bool good() const { return good_; }
  std::size_t asked() const { return asked_; }  // bytes of working memory requested

  void launch(const char* kernel, kernels::cuda::Grid grid, kernels::cuda::Grid block, unsigned shared_bytes,
              void** arguments) override {
    KernelHandle* handle = nullptr;
    good_ = good_ && card_.find(kernel, handle, f_) && card_.allow_shared(*handle, shared_bytes, f_) &&
            card_.ok(card_.driver.cuLaunchKernel(handle->function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                 shared_bytes, card_.stream(), arguments, nullptr),
                     kernel, f_);
  }

  void launch_loaded(void* function, kernels::cuda::Grid grid, kernels::cuda::Grid block, void** arguments) override {
    good_ = good_ && card_.ok(card_.driver.cuLaunchKernel(static_cast<Function*>(function)->kernel.function, grid.x,
                                                          grid.y, grid.z, block.x, block.y, block.z, 0, card_.stream(),
                                                          arguments, nullptr),
                              "launching a group", f_);
  }

  void fill(void* to, unsigned char byte, std::size_t bytes) override {
    good_ = good_ && (bytes == 0 || card_.ok(card_.driver.cuMemsetD8Async(address(to), byte, bytes, card_.stream()),
                                             "filling memory", f_));
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    good_ = good_ &&
            (bytes == 0 || card_.ok(card_.driver.cuMemcpyDtoDAsync(address(to), address(from), bytes, card_.stream()),
                                    "copying memory", f_));
  }

  void* scratch(std::size_t bytes) override { return working_memory(bytes, true); }

  kernels::cuda::Fault* fault() override { return card_.fault; }
  const kernels::cuda::StepKey* step_key() override {
    // During a capture the key is not set: each replay sets it.
    if (!card_.capturing) good_ = good_ && card_.set_key(call_.random.seed, call_.random.step, f_);
    return card_.key;
  }
  int multiprocessors() const override { return card_.multiprocessors; }
  int architecture() const override { return card_.architecture; }
  bool product(const Product& p) override {
    BlasShape shape;
    const char* why = "";
    if (!good_) return false;
    if (!blas_shape(p, shape, why)) return refused("cuBLASLt", why);
    const auto* plan = card_.blas->plan(shape, p);
    if (!plan) return refused("cuBLASLt", card_.blas->why());
    void* const memory = plan->scratch_bytes ? scratch(plan->scratch_bytes) : nullptr;
    return good_ &&
           (card_.blas->run(shape, *plan, p, memory, card_.stream()) || refused("cuBLASLt", card_.blas->why()));
  }
  // The transform is in place: after cuFFT has failed half-way, Rille's own kernels cannot repeat it.
  bool transform(const Fourier& f) override {
    if (!good_) return false;
    const auto* plan = card_.fft->plan(f, !card_.capturing);
    if (!plan) return refused("cuFFT", card_.fft->why());
    void* const memory = plan->scratch_bytes ? scratch(plan->scratch_bytes) : nullptr;
    good_ =
        good_ && (card_.fft->run(*plan, f, memory, card_.stream()) ||
                  refuse(f_, int(ErrorKind::device), "RILLE_CUDA_WITHOUT=cufft makes Rille use its own kernels instead",
                         "cuFFT failed to transform %lld numbers", static_cast<long long>(f.n)));
    return true;
  }
  bool convolve(const Convolved& c) override {
    DnnShape shape;
    if (!good_) return false;
    if (!dnn_shape(c, shape)) return refused("cuDNN", "it does not support these element types or this memory layout");
    auto* plan = card_.dnn->plan(shape, !card_.capturing);
    if (!plan) return refused("cuDNN", card_.dnn->why());
    void* memory = nullptr;
    while (plan->ways[0].scratch_bytes && !(memory = working_memory(plan->ways[0].scratch_bytes, false))) {
      if (!good_) return false;
      const bool other = card_.dnn->take_less(*plan);
      refused("cuDNN", card_.dnn->why());
      if (!other) return false;
    }
    return good_ && (card_.dnn->run(shape, *plan, c, memory, card_.stream()) || refused("cuDNN", card_.dnn->why()));
  }
  void declined(const char* library, const char* why) override { refused(library, why); }

 private:
  // Returns scratch memory; null: out of memory, which fails the operation if `must`. Several requests of one operation
  // are adjacent in one block. A block that became too small is kept until the operation ends, because queued launches
  // may use it.
  void* working_memory(std::size_t bytes, bool must) {
    bytes = (std::max<std::size_t>(bytes, 1) + 255) / 256 * 256;
    asked_ += bytes;
    auto& block = card_.scratch;
    if (good_ && (!block || used_ + bytes > block->bytes)) {
      if (card_.capturing) {
        good_ = refuse(
            f_, int(ErrorKind::internal), "call the function without rille.compile, and report this bug",
            "a compiled operation needs %zu bytes of working memory that it did not need when it was recorded", bytes);
        return nullptr;
      }
      // Errors of two attempts: ample: a block with room for later requests; bare: a block for this request only.
      Failure ample, bare;
      auto grown = card_.allocate_block(
          std::max({used_ + bytes, card_.scratch_wanted, block ? 2 * block->bytes : std::size_t(1) << 20}), ample);
      if (!grown) grown = card_.allocate_block(used_ + bytes, bare);
      if (!grown) {
        asked_ -= bytes;
        if (!must) return nullptr;
        f_ = bare;
        good_ = false;
        return nullptr;
      }
      retired_.push_back(block);
      block = std::move(grown);
      used_ = 0;
    }
    if (!good_) return nullptr;
    void* const at = static_cast<char*>(block->data) + used_;
    used_ += bytes;
    return at;
  }
  bool refused(const char* library, const char* why) {
    card_.fall_back(library, operation_, why);
    return false;
  }
  Card& card_;
  const char* operation_;
  const kernels::Call& call_;
  Failure& f_;
  bool good_ = true;
  std::size_t used_ = 0, asked_ = 0;
  std::vector<std::shared_ptr<Block>> retired_;  // earlier blocks of this operation, kept until it ends
};

}  // namespace

// Lets a kernel use `bytes` of dynamic shared memory. By default static and dynamic shared memory together are limited
// to 48 KB; a kernel must opt in to more.
bool Card::allow_shared(KernelHandle& kernel, unsigned bytes, Failure& f) {
  if (bytes <= kernel.shared_allowed) return true;
  if (kernel.shared_allowed == 0) {
    int own = 0;
    if (!ok(driver.cuFuncGetAttribute(&own, cu::static_shared, kernel.function), "shared memory", f)) return false;
    kernel.shared_static = unsigned(own);
    kernel.shared_allowed = kernel.shared_static < shared_default ? shared_default - kernel.shared_static : 0;
    if (bytes <= kernel.shared_allowed) return true;
  }
  if (kernel.shared_static + bytes > unsigned(shared_max)) {
    return refuse(
        f, int(ErrorKind::invalid), "lower the launch's option shared, or make the kernel's __shared__ arrays smaller",
        "cuda:%d: %u bytes of dynamic shared memory and %u static bytes of the kernel: a block has at most %d", ordinal,
        bytes, kernel.shared_static, shared_max);
  }
  const auto result = driver.cuFuncSetAttribute(kernel.function, cu::dynamic_shared_max, int(bytes));
  if (!ok(result, "shared memory", f)) return false;
  kernel.shared_allowed = bytes;
  return true;
}

bool Card::run(kernels::OpId op, const kernels::Call& call, Failure& f) {
  if (!alive(f)) return false;
  const auto launch = kernels::cuda::launch_of(op);
  if (!launch) {
    return refuse(f, int(ErrorKind::device), "run this part on the CPU: rille.device(\"cpu\")",
                  "%s has no CUDA kernel in this build", kernels::operation_name(op));
  }
  CardLauncher launcher(*this, kernels::kernel_name(op), call, f);
  launch(call, launcher);
  if (!capturing) scratch_wanted = std::max(scratch_wanted, launcher.asked());
  return launcher.good();
}

void Card::fall_back(const char* library, const char* operation, const char* why) {
  const std::lock_guard lock(declined_mutex);
  const auto [found, fresh] = declined.try_emplace({library, operation});
  if (fresh) found->second.why = why;
  if (fresh || !capturing) ++found->second.calls;  // captured calls have run, and were counted, before
}

void Card::fallbacks(void (*each)(void* to, const Fallback*), void* to) {
  const std::lock_guard lock(declined_mutex);
  for (const auto& [which, d] : declined) {
    const Fallback row{which.first.c_str(), which.second.c_str(), d.why.c_str(), d.calls};
    each(to, &row);
  }
}

}  // namespace rille::device::cuda
