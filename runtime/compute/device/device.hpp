// Device: where tensors are stored and computed. Buffer: a block of a device's memory. A device counts its allocated
// bytes and can limit them; an allocation that fails is an Error of kind memory whose hint lists live buffers by size.
//
// Ownership: a Buffer keeps its Device alive. Threads: functions marked "on the lane" are called from jobs of lane(),
// and the device executes their work in the order of the jobs; all other functions from any thread. Devices: the CPU
// (cpu.hpp) and CUDA (cuda.hpp, with a plug-in).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/dtype.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/use.hpp"

namespace rille {
// Converts "f32", "i64", ... to a DType. For another name an error of kind invalid, whose hint lists the known names.
Result<DType> parse_dtype(std::string_view name);
}  // namespace rille

namespace rille::device {

enum class Kind : std::uint8_t { cpu, cuda };

struct MemoryStats {
  std::int64_t live_bytes = 0;     // bytes of buffers in use
  std::int64_t working_bytes = 0;  // scratch memory of the device's libraries
  std::int64_t peak_bytes = 0;     // maximum of live_bytes + working_bytes since reset_peak()
  std::int64_t cached_bytes = 0;   // bytes of freed buffers, kept for later buffers of equal size
  std::int64_t limit_bytes = 0;    // limit for live + cached + working bytes; 0: no limit
  std::int64_t live_buffers = 0;
  std::int64_t allocations = 0;  // calls of allocate() so far
};

class Device;
class Executor;
class Lane;

// A handle of device memory, uninitialised and 64-byte aligned. Copies of a Buffer share the memory; when the last copy
// is destroyed, the memory returns to the device's cache.
class Buffer {
 public:
  Buffer() = default;
  void* data() const { return block_ ? block_->data : nullptr; }
  std::size_t size_bytes() const { return block_ ? block_->bytes : 0; }
  // Device::stamp() when the previous buffer at this address was freed.
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
    std::shared_ptr<void> keeper;  // not null: owns the memory
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
  virtual int threads() const = 0;                  // CPU threads that compute; 0 for a GPU
  virtual Lane& lane() const = 0;                   // jobs of this lane queue the device's work
  virtual Executor* executor() { return nullptr; }  // null: CPU kernels compute in its memory

  // Transfers. They fail with kind device if the device is lost, or with an error that a kernel has found since the
  // last report. upload() happens before all work that is queued later; the caller may free `from` when it returns.
  virtual Result<> upload(const Buffer& to, const void* from, std::size_t bytes) = 0;
  virtual Result<> download(void* to, const void* from, std::size_t bytes) = 0;  // on the lane; waits for the copy
  virtual Result<> clear(void* at, std::size_t bytes) = 0;                       // on the lane; fills with zero bytes
  // Whether send() to that device works. If not, the caller downloads the data and uploads it to the other device.
  virtual bool sends_to(const Device&) const { return false; }
  // Copies to another device's buffer before all work queued on that device later. For this device's lane. Does not
  // wait.
  virtual Result<> send(Device& other, const Buffer& to, const void* from, std::size_t bytes);
  virtual Result<> finish() = 0;  // on the lane; waits for all work queued so far

  // Error of kind memory: the limit or the device's memory is exhausted; the hint has memory_summary(). For zero bytes
  // returns an empty Buffer.
  Result<Buffer> allocate(std::size_t bytes);
  // A Buffer over memory that the CPU device can use and `keeper` keeps alive. It is not counted, limited or cached,
  // and has the alignment of `data`.
  Buffer adopt(void* data, std::size_t bytes, std::shared_ptr<void> keeper);
  MemoryStats memory() const;
  // Live buffers grouped by size, largest group first, e.g. "12 x 4.2 MB, 3 x 1.0 kB".
  std::string memory_summary() const;
  void set_memory_limit(std::int64_t bytes);  // 0: no limit
  // Counts the device's memory, including cached memory, in `use` and under its limit. Call before the first
  // allocation.
  void count_in(std::shared_ptr<MemoryUse> use) { use_ = std::move(use); }
  const std::shared_ptr<MemoryUse>& counted_in() const { return use_; }  // may be null
  void reset_peak();
  void release_cache();  // returns cached memory to the system

 protected:
  Device();
  // Allocate and free the device's memory without the cache. The derived class's destructor must call release_all().
  virtual void* system_allocate(std::size_t bytes) = 0;
  virtual void system_free(void* data, std::size_t bytes) = 0;
  virtual Result<> usable() const { return success(); }     // its error replaces "no memory"
  virtual std::string memory_beside() const { return ""; }  // ends the "no memory" message
  virtual std::int64_t working_bytes() const { return 0; }
  virtual void before_frees() {}  // called before system_free(); waits until the device no longer uses freed memory
  // A number that grows with the work queued so far. It is stored with freed memory and tells up to which work the
  // device may still use that memory. 0: freed memory can be reused at once.
  virtual std::uint64_t stamp() const { return 0; }
  void release_all();

 private:
  friend struct Buffer::Block;
  void give_back(void* data, std::size_t bytes, std::uint64_t stamp);
  struct Pool;
  void* counted_allocate(std::size_t bytes);  // null: no memory, or the limit of use_ would be exceeded
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<MemoryUse> use_;
};

}  // namespace rille::device
