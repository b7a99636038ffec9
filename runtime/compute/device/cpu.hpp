// The CPU as a compute device: its memory is host memory, and its jobs run on the lane that the process shares.
#pragma once

#include <memory>

#include "runtime/compute/device/device.hpp"
#include "runtime/compute/device/lane.hpp"

namespace rille::device {

class CpuDevice final : public Device {
 public:
  static std::shared_ptr<CpuDevice> create(std::shared_ptr<Lane> lane);
  ~CpuDevice() override;
  Kind kind() const override { return Kind::cpu; }
  std::string name() const override { return "cpu"; }
  std::string description() const override;
  int threads() const override { return lane_->threads(); }
  Lane& lane() const override { return *lane_; }
  Result<> upload(const Buffer& to, const void* from, std::size_t bytes) override;
  Result<> download(void* to, const void* from, std::size_t bytes) override;
  Result<> clear(void* at, std::size_t bytes) override;
  Result<> finish() override { return success(); }  // nothing to wait for: a CPU job is done when it returns

 private:
  explicit CpuDevice(std::shared_ptr<Lane> lane) : lane_(std::move(lane)) {}
  void* system_allocate(std::size_t bytes) override;
  void system_free(void* data, std::size_t bytes) override;
  std::shared_ptr<Lane> lane_;
};

}  // namespace rille::device
