// The cost of operations: bytes and FLOPs from the shapes of the operands and, during a profile, the time. Times come
// from the clock on the CPU; on another device from its trace of kernels and copies or, without a trace, from events
// around each operation. One row per operation and shape. Between start and stop only the lane uses a Profile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/call.hpp"
#include "runtime/compute/tensor/table.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::device {
class Executor;
struct Traced;
}  // namespace rille::device

namespace rille::tensor {

// bytes: size of all operands, each counted once, whether or not a cache holds them. flops: of matrix products and
// attention; 0 for other operations.
struct Cost {
  double bytes = 0, flops = 0;
};

Cost cost_of(const Op& op, const kernels::Call& call);

struct ProfileRow {
  std::string name, shape;  // name of the operation; shapes of its operands, "256x768, 2304x768 -> 256x2304"
  std::int64_t calls = 0, ns = 0;
  Cost cost;  // bytes and FLOPs of all calls together
};

// A kernel or a kind of copy, by its name in the device's trace.
struct KernelRow {
  std::string name, operations;  // operations: those that ran this kernel, "add, mul"; "" for uploads
  std::int64_t calls = 0, ns = 0;
  Cost cost;  // of a copy, or of a kernel that is the only one of its operation; else zero
};

struct ProfileReport {
  std::vector<ProfileRow> rows;
  std::vector<KernelRow> kernels;  // the longest total time first
  std::string timed_by;            // source of the times: "clock", "cupti" or "events"
  std::string why;                 // if timed by events: why the device has no trace; else ""
};

class Profile {
 public:
  void add(const Op& op, const kernels::Call& call, std::int64_t ns);
  std::vector<ProfileRow> rows() const;  // the longest time first; rows without times by bytes

  // For a device with an executor: uses the device's trace if there is one. Traced calls are numbered from 1.
  void begin(device::Executor& executor);
  bool traced() const { return report_.timed_by == "cupti"; }
  std::uint64_t next_call() const { return call_rows_.size() + 1; }
  void add_traced(const Op& op, const kernels::Call& call);
  Result<ProfileReport> end(device::Executor* executor);

 private:
  ProfileRow& row_of(const Op& op, const kernels::Call& call);
  void settle(const std::vector<device::Traced>& records);
  std::map<std::pair<const Op*, std::string>, ProfileRow> rows_;
  struct CallRow {
    ProfileRow* row;
    Cost cost;
    std::size_t records = 0;
  };
  std::vector<CallRow> call_rows_;  // element i belongs to traced call i + 1
  ProfileReport report_;
};

}  // namespace rille::tensor
