#include "runtime/compute/tensor/profile.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/tensor/shape.hpp"

namespace rille::tensor {

namespace {

double bytes_of(const kernels::View& v) {
  double elements = 1;
  // A dimension with stride 0 reads one element again and again, so it counts once.
  for (int d = 0; d < v.shape.n; ++d) elements *= v.strides[d] == 0 ? 1 : double(v.shape[d]);
  return elements * double(size_bytes(v.dtype));
}

std::string name_of(const kernels::View& v) {
  std::string out;
  for (int d = 0; d < v.shape.n; ++d) out += (d ? "x" : "") + std::to_string(v.shape[d]);
  return out.empty() ? "-" : out;
}

// The shapes of three operands are enough to tell calls apart; an optimizer has hundreds of operands.
std::string shapes_of(const kernels::Call& c) {
  constexpr int most = 3;
  std::string out;
  for (int i = 0; i < std::min(c.n_in, most); ++i) out += (i ? ", " : "") + name_of(c.in[i]);
  if (c.n_in > most) out += " + " + std::to_string(c.n_in - most);
  out += " -> ";
  for (int i = 0; i < std::min(c.n_out, most); ++i) out += (i ? ", " : "") + name_of(c.out[i]);
  if (c.n_out > most) out += " + " + std::to_string(c.n_out - most);
  return out;
}

// The number of (query, key) pairs that are not masked.
double attention_pairs(const kernels::Call& c, const kernels::View& q, const kernels::View& k) {
  const double t = double(q.shape[2]), s = double(k.shape[2]), heads = double(q.shape[0] * q.shape[1]);
  return heads * (c.attrs->i[0] == 1 ? t * (s - (t - 1) / 2) : t * s);
}

}  // namespace

Cost cost_of(const Op& op, const kernels::Call& c) {
  Cost cost;
  for (int i = 0; i < c.n_in; ++i) cost.bytes += bytes_of(c.in[i]);
  for (int i = 0; i < c.n_out; ++i) cost.bytes += bytes_of(c.out[i]);
  if (op.id == OpId::matmul || op.id == OpId::linear || op.id == OpId::linear_activated) {
    cost.flops = 2.0 * double(c.out[0].count()) * double(c.in[0].shape[c.in[0].shape.n - 1]);
  } else if (op.id == OpId::attention) {
    cost.flops = 2.0 * attention_pairs(c, c.in[0], c.in[1]) * double(c.in[0].shape[3] + c.in[2].shape[3]);
  } else if (op.id == OpId::attention_grad) {  // five matrix products
    cost.flops = attention_pairs(c, c.in[1], c.in[2]) * double(6 * c.in[1].shape[3] + 4 * c.in[3].shape[3]);
  }
  return cost;
}

ProfileRow& Profile::row_of(const Op& op, const kernels::Call& call) {
  std::string shape = (call.payload ? std::string(call.payload->name()) + ": " : "") + shapes_of(call);
  ProfileRow& row = rows_[{&op, shape}];
  if (!row.calls) row.name = op.name, row.shape = std::move(shape);
  return row;
}

void Profile::add(const Op& op, const kernels::Call& call, std::int64_t ns) {
  ProfileRow& row = row_of(op, call);
  const Cost cost = cost_of(op, call);
  ++row.calls;
  row.ns += ns;
  row.cost.bytes += cost.bytes;
  row.cost.flops += cost.flops;
}

void Profile::begin(device::Executor& executor) {
  const auto traced = executor.trace_start();
  report_.timed_by = traced ? "cupti" : "events";
  if (!traced) report_.why = traced.error().message;
}

void Profile::add_traced(const Op& op, const kernels::Call& call) {
  add(op, call, 0);
  call_rows_.push_back({&row_of(op, call), cost_of(op, call)});
}

Result<ProfileReport> Profile::end(device::Executor* executor) {
  if (traced()) {
    RILLE_TRY(const auto records, executor->trace_stop());
    settle(records);
  }
  report_.rows = rows();
  if (report_.timed_by.empty()) report_.timed_by = "clock";
  return std::move(report_);
}

// Sums up the trace. A kernel gets the bytes and FLOPs of its operation only if the operation ran no other kernel.
void Profile::settle(const std::vector<device::Traced>& records) {
  std::map<std::string, KernelRow> kernels;
  std::map<std::string, std::set<std::string>> operations;
  const auto call_of = [&](const device::Traced& r) {
    return r.call && r.call <= call_rows_.size() ? &call_rows_[r.call - 1] : nullptr;
  };
  for (const auto& r : records)
    if (auto* call = call_of(r)) ++call->records;
  std::set<std::string> partly;
  for (const auto& r : records) {
    KernelRow& kernel = kernels[r.name];
    kernel.name = r.name;
    ++kernel.calls;
    kernel.ns += r.ns;
    auto* const call = call_of(r);
    if (call) call->row->ns += r.ns;
    if (call) operations[r.name].insert(call->row->name);
    if (r.bytes) {
      kernel.cost.bytes += double(r.bytes);
    } else if (call && call->records == 1) {
      kernel.cost.bytes += call->cost.bytes;
      kernel.cost.flops += call->cost.flops;
    } else {
      partly.insert(r.name);
    }
  }
  for (auto& [name, kernel] : kernels) {
    if (partly.contains(name)) kernel.cost = {};
    for (const auto& o : operations[name]) kernel.operations += (kernel.operations.empty() ? "" : ", ") + o;
    report_.kernels.push_back(std::move(kernel));
  }
  std::stable_sort(report_.kernels.begin(), report_.kernels.end(),
                   [](const KernelRow& a, const KernelRow& b) { return a.ns > b.ns; });
}

std::vector<ProfileRow> Profile::rows() const {
  std::vector<ProfileRow> out;
  for (const auto& [key, row] : rows_) out.push_back(row);
  std::stable_sort(out.begin(), out.end(), [](const ProfileRow& a, const ProfileRow& b) {
    return std::tuple(a.ns, a.cost.bytes) > std::tuple(b.ns, b.cost.bytes);
  });
  return out;
}

}  // namespace rille::tensor
