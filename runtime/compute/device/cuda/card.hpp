// Card: one opened GPU. Its primary CUDA context is retained and never reset: the process may contain other users of
// CUDA.
//
// All computation runs on one stream in the order of the calls. Memory may therefore be reused as soon as its last use
// is queued: the next use comes later on that stream. Uploads are the exception: they run on a second stream beside the
// computation, after the mark that `stamp` names, and work queued later waits for them. A third stream is only for
// capturing: nothing runs on it, and other threads may use the first two streams meanwhile. Callers order users'
// streams (streams.cpp).
//
// Locks: `mutex` guards marks, uploads and copies from other cards; `streams_mutex` guards users' streams;
// `declined_mutex` guards the operations that libraries declined. All other members are used on the lane only.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/cuda/launcher.hpp"
#include "runtime/compute/device/cuda/blas.hpp"
#include "runtime/compute/device/cuda/dnn.hpp"
#include "runtime/compute/device/cuda/fft.hpp"
#include "runtime/compute/device/cuda/staging.hpp"

namespace rille::device::cuda {

constexpr unsigned marks_max = 16;        // the GPU may lag behind its lane by this many jobs
constexpr std::size_t streams_max = 128;  // most users' streams in use at a time

// Device memory of the plug-in. The card and captured sequences share ownership of the blocks that they may still use.
struct Block {
  Card& card;
  void* data = nullptr;
  std::size_t bytes = 0;
  explicit Block(Card& c) : card(c) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();
};

struct KernelHandle {
  CUfunction function = nullptr;
  // Bytes of shared memory per block: static, and dynamic allowed; set at first use.
  unsigned shared_static = 0, shared_allowed = 0;
};

struct Sequence {
  CUgraphExec exec = nullptr;
  std::vector<std::shared_ptr<Block>> scratch;  // scratch memory that the graph's kernels use
};

struct Function {
  CUmodule module = nullptr;
  KernelHandle kernel;
  int threads_most = 0;  // most threads per block; 0: not queried yet
};

struct Card {
  explicit Card(const Driver& d) : driver(d) {}
  bool open(int ordinal, Failure& f);
  void close();

  // Like Driver::ok(), but adds the device's name to the message and records an error that loses the device.
  bool ok(CUresult result, const char* doing, Failure& f);
  bool alive(Failure& f);

  // -- streams
  bool settle(Failure& f);
  bool upload(void* to, const void* from, std::size_t bytes, std::uint64_t stamp, Failure& f);
  bool download(void* to, const void* from, std::size_t bytes, Failure& f);
  bool finish(Failure& f);  // also fails with an error that a kernel has found in its data
  bool mark(Failure& f);
  // Records that results were lost: every read and finish() fails with `why` until spoil("") is called. Any thread.
  void spoil(const char* why);
  bool whole(Failure& f);
  // Copies to memory of another card, which is free after the work that the other card's `stamp` covers (peers.cpp).
  bool send(Card& other, void* to, const void* from, std::size_t bytes, std::uint64_t stamp, Failure& f);
  std::uint64_t stamp() const { return marked.load(std::memory_order_acquire) + 1; }

  // -- Rille's kernels (own_kernels.cpp)
  bool find(const char* name, KernelHandle*& handle, Failure& f);
  bool give(const void* image, Failure& f);  // loads an image compiled from the sources for this card
  bool fits_images = false;                  // whether the build's images run on this card

  // -- running operations (launcher.cpp)
  bool run(kernels::OpId op, const kernels::Call& call, Failure& f);
  bool allow_shared(KernelHandle& kernel, unsigned bytes, Failure& f);
  std::shared_ptr<Block> allocate_block(std::size_t bytes, Failure& f);
  void fall_back(const char* library, const char* operation, const char* why);
  void fallbacks(void (*each)(void* to, const Fallback*), void* to);  // any thread
  bool set_key(std::uint64_t seed, std::uint64_t step, Failure& f);

  // -- captures (capture.cpp)
  bool begin_capture(Failure& f);
  Sequence* end_capture(Failure& f);
  bool replay(Sequence& sequence, std::uint64_t seed, std::uint64_t step, Failure& f);
  void drop(Sequence* sequence);
  CUstream stream() const { return capturing ? captures : compute; }

  // -- users' streams (streams.cpp)
  CUstream stream(Stream* s) const { return s ? reinterpret_cast<CUstream>(s) : stream(); }
  Stream* make_stream(Failure& f);
  void drop_stream(Stream* stream);
  bool passed(CUevent event, bool& yes, Failure& f);
  bool settle_streams(Failure& f);
  void close_streams();

  const Driver& driver;
  int ordinal = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  std::mutex spoilt_mutex;
  std::string spoilt;
  bool retained = false;
  int architecture = 0, multiprocessors = 0, shared_max = 0;
  std::atomic<CUresult> lost{cu::success};

  CUstream compute = nullptr, copies = nullptr, captures = nullptr;
  std::mutex mutex;
  CUevent marks[marks_max] = {}, now = nullptr;
  std::atomic<std::uint64_t> marked{0};
  std::unique_ptr<Staging> up_small, up_large, down_small, down_large, down_fault;

  // Device memory that holds the error that a kernel has found in its data, and the key of random operations.
  std::shared_ptr<Block> cells;
  kernels::cuda::Fault* fault = nullptr;
  kernels::cuda::StepKey* key = nullptr;
  kernels::cuda::StepKey known_key{};  // value of *key after the work queued so far

  std::vector<CUmodule> modules;                                  // the images of kernels::cuda::images loaded so far
  std::vector<CUmodule> given;                                    // modules from give(), used instead of the images
  std::unordered_map<const void*, KernelHandle> kernels_by_name;  // keys: names in the plug-in's constants
  std::atomic<std::int64_t> block_bytes{0};                       // total size of all live Blocks
  std::shared_ptr<Block> scratch;
  std::size_t scratch_wanted = 0;  // the largest amount of scratch memory that one operation has used
  std::unique_ptr<Blas> blas = std::make_unique<Blas>();
  std::unique_ptr<Fft> fft = std::make_unique<Fft>();
  std::unique_ptr<Dnn> dnn;
  bool capturing = false;
  CUevent clock[2] = {}, sent = nullptr;
  std::vector<CUcontext> met;  // contexts of cards for which peer access was requested
  std::mutex streams_mutex;
  std::vector<CUstream> streams, idle_streams;  // all users' streams; the released ones among them
  struct Declined {
    std::int64_t calls = 0;
    std::string why;
  };
  std::mutex declined_mutex;
  std::map<std::pair<std::string, std::string>, Declined> declined;  // keys: library and operation

 private:
  bool find_in_images(const char* name, CUfunction& found, Failure& f);
  bool find_in(CUmodule module, const char* name, CUfunction& found, Failure& f);
  bool tell_misfit(Failure& f) const;
  bool make_streams(Failure& f);
  bool wait_for_stamp(std::uint64_t stamp, CUstream waits, Failure& f);
  void meet(Card& other);
  bool transfer_out(void* to, const void* from, std::size_t bytes, Failure& f);
  Staging::Slot* ask_fault(Failure& f);
  bool tell_fault(const Staging::Slot* asked, Failure& f);
};

// Makes the card's context current on this thread; the destructor restores the previous context.
class Current {
 public:
  explicit Current(Card& card) : card_(card) { pushed_ = card.driver.cuCtxPushCurrent(card.context) == cu::success; }
  ~Current() {
    CUcontext other;
    if (pushed_) card_.driver.cuCtxPopCurrent(&other);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  Card& card_;
  bool pushed_;
};

}  // namespace rille::device::cuda
