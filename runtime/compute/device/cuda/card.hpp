// Card: one opened device. Its primary context is retained and never reset, so that other users of CUDA in this process
// can continue.
//
// All computation runs on one stream in the order of the calls. Memory whose last use has been queued may therefore be
// reused at once: the next use comes later on that stream. The exception is an upload: it runs on a second stream,
// beside the computation, after the mark that `stamp` names; work queued later waits for it. A third stream only
// captures: nothing runs on it, and other threads may use the first two meanwhile. Users' streams are ordered by their
// callers (streams.cpp).
//
// Locks: `mutex` guards marks, uploads and copies from other cards; `streams_mutex` users' streams; `declined_mutex`
// the operations that libraries declined. The rest belongs to the lane.
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

constexpr unsigned marks_max = 16;        // jobs by which the device may lag behind its lane
constexpr std::size_t streams_max = 128;  // users' streams in use

// Device memory of the plug-in, held by all that may still use it: the card, captured sequences.
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
  unsigned shared_static = 0, shared_allowed = 0;  // bytes per block; allowed: dynamic memory. Set at first use
};

struct Sequence {
  CUgraphExec exec = nullptr;
  std::vector<std::shared_ptr<Block>> scratch;  // used by the graph
};

struct Function {
  CUmodule module = nullptr;
  KernelHandle kernel;
  int threads_most = 0;  // per block; 0: not queried yet
};

struct Card {
  explicit Card(const Driver& d) : driver(d) {}
  bool open(int ordinal, Failure& f);
  void close();

  // Like Driver::ok, with the device's name in the message; remembers a loss.
  bool ok(CUresult result, const char* doing, Failure& f);
  bool alive(Failure& f);

  // -- streams
  bool settle(Failure& f);
  bool upload(void* to, const void* from, std::size_t bytes, std::uint64_t stamp, Failure& f);
  bool download(void* to, const void* from, std::size_t bytes, Failure& f);
  bool finish(Failure& f);  // also returns a fault found by a kernel
  bool mark(Failure& f);
  // Results were lost: every read and finish() fails with `why` until spoil(""). Any thread.
  void spoil(const char* why);
  bool whole(Failure& f);
  // To another card's memory, which was free at that card's stamp (peers.cpp).
  bool send(Card& other, void* to, const void* from, std::size_t bytes, std::uint64_t stamp, Failure& f);
  std::uint64_t stamp() const { return marked.load(std::memory_order_acquire) + 1; }

  // -- Rille's kernels (own_kernels.cpp)
  bool find(const char* name, KernelHandle*& handle, Failure& f);
  bool give(const void* image, Failure& f);  // compiled for this card from the sources
  bool fits_images = false;                  // the build's images run on this card

  // -- calls (launcher.cpp)
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

  // Device memory shared with the host: the fault found by a kernel, and the random key.
  std::shared_ptr<Block> cells;
  kernels::cuda::Fault* fault = nullptr;
  kernels::cuda::StepKey* key = nullptr;
  kernels::cuda::StepKey known_key{};  // the value at that point of the stream

  std::vector<CUmodule> modules;                                  // of kernels::cuda::images, those loaded so far
  std::vector<CUmodule> given;                                    // modules given instead of the images
  std::unordered_map<const void*, KernelHandle> kernels_by_name;  // names live as long as the plug-in
  std::atomic<std::int64_t> block_bytes{0};                       // of all live blocks
  std::shared_ptr<Block> scratch;
  std::size_t scratch_wanted = 0;  // the most that one operation has used
  std::unique_ptr<Blas> blas = std::make_unique<Blas>();
  std::unique_ptr<Fft> fft = std::make_unique<Fft>();
  std::unique_ptr<Dnn> dnn;
  bool capturing = false;
  CUevent clock[2] = {}, sent = nullptr;
  std::vector<CUcontext> met;  // cards for which peer access was requested
  std::mutex streams_mutex;
  std::vector<CUstream> streams, idle_streams;  // all users' streams; the unused ones
  struct Declined {
    std::int64_t calls = 0;
    std::string why;
  };
  std::mutex declined_mutex;
  std::map<std::pair<std::string, std::string>, Declined> declined;  // by library and operation

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

// Makes the card's context current on this thread and restores the previous one.
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
