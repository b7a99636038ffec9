// A CUDA device as the runtime sees it; the plug-in (device/cuda/) makes the CUDA calls. Jobs of the device's lane
// queue work on the GPU; they wait for the GPU only to read results, or when too much work is queued.
//
// Errors: kind device if there is no plug-in, driver or card, or if the card is lost: every later call then returns the
// same error. An error that a kernel finds in its data (a label out of range) has kind invalid and is returned by the
// next read.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/compute/device/cuda_plugin.hpp"
#include "runtime/compute/device/device.hpp"
#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/device/group.hpp"

namespace rille::device {

// Returns text such as "NVIDIA H200, sm_90, 132 multiprocessors, 141 GB".
std::string describe(const CudaCard& card);

class CudaDevice final : public Device, private Executor {
 public:
  // `name`: "cuda" (the first card), "cuda:1", or "cuda:" and a card's uuid: "cuda:GPU-2c3f...", "cuda:MIG-...".
  static Result<std::shared_ptr<CudaDevice>> open(std::string_view name);
  ~CudaDevice() override;

  const CudaCard& card() const { return card_; }
  std::string arch() const;  // the GPU's architecture, "sm_90"
  // Free and total bytes of the card's memory; memory of other processes is not counted as free.
  Result<std::pair<std::int64_t, std::int64_t>> card_memory() const;

  Kind kind() const override { return Kind::cuda; }
  std::string name() const override;
  std::string description() const override { return describe(card_); }
  int threads() const override { return 0; }
  Lane& lane() const override { return *lane_; }
  Executor* executor() override { return this; }
  Result<> upload(const Buffer& to, const void* from, std::size_t bytes) override;
  Result<> download(void* to, const void* from, std::size_t bytes) override;
  Result<> clear(void* at, std::size_t bytes) override;
  Result<> finish() override;
  bool sends_to(const Device& other) const override { return other.kind() == Kind::cuda; }
  Result<> send(Device& other, const Buffer& to, const void* from, std::size_t bytes) override;

 private:
  CudaDevice(const cuda::Table* table, const CudaCard& card, cuda::Card* handle);
  void* system_allocate(std::size_t bytes) override;
  void system_free(void* data, std::size_t bytes) override;
  void before_frees() override;
  std::uint64_t stamp() const override;
  Result<> usable() const override;
  std::string memory_beside() const override;
  std::int64_t working_bytes() const override { return table_->working_bytes(handle_); }

  bool knows(kernels::OpId op) const override;
  Result<> run(kernels::OpId op, const kernels::Call& call) override;
  Result<> launch(const Kernel& kernel, const LaunchShape& shape,
                  const std::vector<LaunchArgument>& arguments) override;
  Result<int> suggested_block(const Kernel& kernel) override;
  std::string why_one_by_one() const override;
  std::vector<Fallback> fallbacks() const override;
  Result<> copy(void* to, const void* from, std::size_t bytes) override;
  Result<> begin_capture() override;
  Result<std::shared_ptr<Captured>> end_capture() override;
  Result<> replay(Captured& captured, std::uint64_t seed, std::uint64_t step) override;
  Result<> pace() override;
  Result<> start_clock() override;
  Result<std::int64_t> stop_clock_ns() override;
  Result<> trace_start() override;
  void trace_call(std::uint64_t call) override;
  Result<std::vector<Traced>> trace_stop() override;
  Result<std::shared_ptr<Stream>> make_stream() override;  // streams and events: cuda_streams.cpp
  Result<std::shared_ptr<Event>> make_event(bool timed) override;
  void choose(Stream* stream) override;
  Result<> record(Event& event, Stream* stream) override;
  Result<> wait(Stream* stream, Event& event) override;

  friend class CudaRanks;
  class Sequence;
  class LoadedKernel;
  class CudaStream;
  class CudaEvent;
  Result<std::shared_ptr<void>> load(const Kernel& kernel);
  Result<> make_kernels();
  void prepare(const Group& group, const kernels::Call& call);
  Result<std::shared_ptr<void>> load_group(const std::string& source);
  const cuda::Table* table_;
  CudaCard card_;
  cuda::Card* handle_;
  std::shared_ptr<Lane> lane_;
  cuda::Stream* chosen_ = nullptr;   // stream for launch(), null: the default; used on the lane only
  bool has_kernels_ = false;         // Rille's own kernels are loaded; used on the lane only
  std::optional<Error> no_kernels_;  // why loading Rille's own kernels failed
  // Compiled groups by their source; used on the lane only.
  std::unordered_map<std::string, std::weak_ptr<void>> groups_;
  mutable std::mutex mutex_;  // guards one_by_one_
  std::string one_by_one_;
};

}  // namespace rille::device
