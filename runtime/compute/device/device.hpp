// Device: where tensors live and run. Buffer: a piece of its memory. Memory is counted to the byte; a limit can be set,
// and running out is an Error of kind memory whose hint lists what is live by size.
//
// Ownership: a Buffer keeps its Device alive. Threads: every function here may be called from any thread that does not
// say "lane": those are for jobs of lane(), in whose order the device works.
// Devices: the CPU (cpu.hpp), CUDA (cuda.hpp, behind it a plug-in).
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
  std::int64_t live_bytes = 0;     // in buffers that somebody holds
  std::int64_t working_bytes = 0;  // of the device's own: what its libraries' products and convolutions work in
  std::int64_t peak_bytes = 0;     // the most that live_bytes and working_bytes have been since reset_peak()
  std::int64_t cached_bytes = 0;   // freed, kept for the next buffer of that size
  std::int64_t limit_bytes = 0;    // of live, cached and working, for new buffers; 0: none but the machine's
  std::int64_t live_buffers = 0;
  std::int64_t allocations = 0;  // calls of allocate() so far
};

class Device;
class Executor;
class Lane;

// Uninitialised memory, 64-byte aligned. Copies share it; the last one gives it back to its device's cache.
class Buffer {
 public:
  Buffer() = default;
  void* data() const { return block_ ? block_->data : nullptr; }
  std::size_t size_bytes() const { return block_ ? block_->bytes : 0; }
  // Of the use before this one: Device::stamp().
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
  virtual int threads() const = 0;                  // that compute uses; 0 where the word means nothing
  virtual Lane& lane() const = 0;                   // whose jobs give it work
  virtual Executor* executor() { return nullptr; }  // null: kernels of the CPU work on its memory

  // Moving bytes. Errors: device, when it is lost; what the device has found wrong since it was asked last.
  // Before all work that is given from now on. `from` may go when it returns.
  virtual Result<> upload(const Buffer& to, const void* from, std::size_t bytes) = 0;
  virtual Result<> download(void* to, const void* from, std::size_t bytes) = 0;  // lane; waits
  virtual Result<> clear(void* at, std::size_t bytes) = 0;                       // lane; zeros
  // Whether send() to that device is possible; else values go by download and upload.
  virtual bool sends_to(const Device&) const { return false; }
  // Lane of this device, which does not wait. Before all work that the other one is given from now on.
  virtual Result<> send(Device& other, const Buffer& to, const void* from, std::size_t bytes);
  virtual Result<> finish() = 0;  // lane; waits for all that was given

  // memory: over the limit, or the machine is out; the hint holds memory_summary(). Zero bytes give an empty Buffer.
  Result<Buffer> allocate(std::size_t bytes);
  MemoryStats memory() const;
  // Live buffers grouped by size, largest group first, e.g. "12 x 4.2 MB, 3 x 1.0 kB".
  std::string memory_summary() const;
  void set_memory_limit(std::int64_t bytes);  // 0: none
  void reset_peak();
  void release_cache();  // gives cached memory back to the system

 protected:
  Device();
  // The system's memory; release_all() must be called by the derived destructor.
  virtual void* system_allocate(std::size_t bytes) = 0;
  virtual void system_free(void* data, std::size_t bytes) = 0;
  virtual Result<> usable() const { return success(); }     // why it is not: said in place of "no memory"
  virtual std::string memory_beside() const { return ""; }  // for that message: ", of 139 GB 1 GB are free"
  virtual std::int64_t working_bytes() const { return 0; }
  virtual void before_frees() {}  // of system_free(): waits until nothing works on freed memory
  // What has been given so far, as a number that grows: kept with freed memory. 0: memory is free when it is freed.
  virtual std::uint64_t stamp() const { return 0; }
  void release_all();

 private:
  friend struct Buffer::Block;
  void give_back(void* data, std::size_t bytes, std::uint64_t stamp);
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace rille::device
