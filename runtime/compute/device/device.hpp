// Device: where tensors are stored and computed. Buffer: a piece of its memory. Memory is counted to the byte and can
// be limited; running out is an Error of kind memory whose hint lists live buffers by size.
//
// Ownership: a Buffer keeps its Device alive. Threads: functions marked "lane" from jobs of lane(), in whose order the
// device works; all others from any thread. Devices: the CPU (cpu.hpp) and CUDA (cuda.hpp, with a plug-in).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/dtype.hpp"
#include "runtime/core/base/result.hpp"

namespace rille {
// "f32", "i64", ... -> DType. invalid: lists the names.
Result<DType> parse_dtype(std::string_view name);
}  // namespace rille

namespace rille::device {

enum class Kind : std::uint8_t { cpu, cuda };

struct MemoryStats {
  std::int64_t live_bytes = 0;     // in buffers in use
  std::int64_t working_bytes = 0;  // scratch memory of the device's libraries
  std::int64_t peak_bytes = 0;     // maximum of live_bytes + working_bytes since reset_peak()
  std::int64_t cached_bytes = 0;   // freed, kept for later buffers of the same size
  std::int64_t limit_bytes = 0;    // for live, cached and working; 0: no limit
  std::int64_t live_buffers = 0;
  std::int64_t allocations = 0;  // calls of allocate() so far
};

class Device;
class Executor;
class Lane;

// Uninitialised memory, 64-byte aligned. Copies share it; the last one returns it to the device's cache.
class Buffer {
 public:
  Buffer() = default;
  void* data() const { return block_ ? block_->data : nullptr; }
  std::size_t size_bytes() const { return block_ ? block_->bytes : 0; }
  // Device::stamp() at the end of the memory's previous use.
  std::uint64_t stamp() const { return block_ ? block_->stamp : 0; }
  explicit operator bool() const { return block_ != nullptr; }
  void reset() { block_.reset(); }

 private:
  friend class Device;
  struct Block {
    std::shared_ptr<Device> device;
    void* data = nullptr;
    std::size_t bytes = 0;
    std::uint64_t stamp = 0;
    ~Block();
  };
  std::shared_ptr<Block> block_;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  virtual ~Device() = default;
  virtual Kind kind() const = 0;
  virtual std::string name() const = 0;             // "cpu", "cuda:0"
  virtual std::string description() const = 0;      // "AMD EPYC, AVX-512, 2 threads"
  virtual int threads() const = 0;                  // compute threads; 0 if the device has none
  virtual Lane& lane() const = 0;                   // its jobs give the device work
  virtual Executor* executor() { return nullptr; }  // null: the CPU's kernels run on its memory

  // Transfers. Errors: device if it is lost; errors found by the device since the last report.
  // upload comes before all work given later; `from` may be freed on return.
  virtual Result<> upload(const Buffer& to, const void* from, std::size_t bytes) = 0;
  virtual Result<> download(void* to, const void* from, std::size_t bytes) = 0;  // lane; waits
  virtual Result<> clear(void* at, std::size_t bytes) = 0;                       // lane; zeros
  // Whether send() to that device works; otherwise download and upload.
  virtual bool sends_to(const Device&) const { return false; }
  // On this device's lane; does not wait. Comes before all work given to the other device later.
  virtual Result<> send(Device& other, const Buffer& to, const void* from, std::size_t bytes);
  virtual Result<> finish() = 0;  // lane; waits for all work given so far

  // memory: the limit or the machine's memory is reached; the hint has memory_summary(). Zero bytes: an empty Buffer.
  Result<Buffer> allocate(std::size_t bytes);
  MemoryStats memory() const;
  // Live buffers grouped by size, largest group first, e.g. "12 x 4.2 MB, 3 x 1.0 kB".
  std::string memory_summary() const;
  void set_memory_limit(std::int64_t bytes);  // 0: none
  void reset_peak();
  void release_cache();  // returns cached memory to the system

 protected:
  Device();
  // System memory. The derived destructor must call release_all().
  virtual void* system_allocate(std::size_t bytes) = 0;
  virtual void system_free(void* data, std::size_t bytes) = 0;
  virtual Result<> usable() const { return success(); }     // an error here replaces "no memory"
  virtual std::string memory_beside() const { return ""; }  // ends that message: ", of 139 GB 1 GB are free"
  virtual std::int64_t working_bytes() const { return 0; }
  virtual void before_frees() {}  // before system_free(): waits until freed memory is unused
  // A growing number for the work given so far, stored with freed memory. 0: freed memory is unused at once.
  virtual std::uint64_t stamp() const { return 0; }
  void release_all();

 private:
  friend struct Buffer::Block;
  void give_back(void* data, std::size_t bytes, std::uint64_t stamp);
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace rille::device
