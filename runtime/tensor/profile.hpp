// What operations cost: bytes and FLOPs from their operands' shapes, and, while a profile runs, their time on the
// lane. Rows are per operation and shape. A Profile belongs to the lane between start and stop.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/call.hpp"
#include "runtime/tensor/table.hpp"

namespace rille::tensor {

// bytes: of all operands, each read or written once; what stays in the caches between operations is counted all the
// same. flops: of products and attention; 0 for what memory bounds.
struct Cost {
  double bytes = 0, flops = 0;
};

Cost cost_of(const Op& op, const kernels::Call& call);

struct ProfileRow {
  std::string name, shape;             // of the operation; of its operands, "256x768, 2304x768 -> 256x2304"
  std::int64_t calls = 0, ns = 0;
  Cost cost;                           // of all calls
};

class Profile {
 public:
  void add(const Op& op, const kernels::Call& call, std::int64_t ns);
  std::vector<ProfileRow> rows() const;  // the longest first; those without times by bytes

 private:
  std::map<std::pair<const Op*, std::string>, ProfileRow> rows_;
};

}  // namespace rille::tensor
