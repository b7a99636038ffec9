// The cost of operations: bytes and FLOPs from their operands' shapes and, during a profile, their time: on the CPU by
// the clock; on another device from its trace of kernels and copies or, without one, by waiting for each operation. One
// row per operation and shape. A Profile belongs to the lane between start and stop.
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

// bytes: all operands, each read or written once, whether or not a cache holds them. flops: of products and attention;
// 0 for memory-bound operations.
struct Cost {
  double bytes = 0, flops = 0;
};

Cost cost_of(const Op& op, const kernels::Call& call);

struct ProfileRow {
  std::string name, shape;  // of the operation; of its operands, "256x768, 2304x768 -> 256x2304"
  std::int64_t calls = 0, ns = 0;
  Cost cost;  // of all calls
};

// A kernel or a kind of copy, as the device's trace names it.
struct KernelRow {
  std::string name, operations;  // "add, mul": the operations it ran for; "": uploads
  std::int64_t calls = 0, ns = 0;
  Cost cost;  // of copies; of a kernel that is its operation's only one, else zeros
};

struct ProfileReport {
  std::vector<ProfileRow> rows;
  std::vector<KernelRow> kernels;  // the longest first
  std::string timed_by;            // "clock", "cupti", "events"
  std::string why;                 // for "events": why there is no trace
};

class Profile {
 public:
  void add(const Op& op, const kernels::Call& call, std::int64_t ns);
  std::vector<ProfileRow> rows() const;  // the longest first; rows without times by bytes

  // For a device with an executor: uses the device's trace if it has one. Calls are numbered from 1.
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
  std::vector<CallRow> call_rows_;  // one per traced call
  ProfileReport report_;
};

}  // namespace rille::tensor
