// A graph whose every call is made twice: by the launch of kernels/cuda, run through the CPU shim, and by the CPU's
// kernel. The outputs are compared; later calls use the CPU's results, so that one wrong kernel is reported once.
#pragma once

#include <algorithm>
#include <random>
#include <set>

#include "../../support/shim_kernels.hpp"
#include "../tensor/operation.hpp"
#include "kernels/wide_rows.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

using namespace declared;

// The bytes between a window's first and last element.
struct Extent {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  explicit Extent(const kernels::View& v) {
    if (!v.data || v.shape.count() == 0) return;
    std::int64_t low = 0, high = 0;
    for (int d = 0; d < v.shape.n; ++d) {
      const auto end = (v.shape[d] - 1) * v.strides[d];
      (end < 0 ? low : high) += end;
    }
    begin = v.ptr<std::byte>() + low * std::int64_t(size_bytes(v.dtype));
    bytes = std::size_t(high - low + 1) * size_bytes(v.dtype);
  }
  std::vector<std::byte> saved() const { return {begin, begin + bytes}; }
  bool meets(const Extent& o) const { return begin < o.begin + o.bytes && o.begin < begin + bytes; }
};

inline double element(const kernels::View& v, const std::byte* begin, std::int64_t i) {
  std::int64_t at = 0;
  for (int d = v.shape.n - 1; d >= 0; --d) {
    at += i % v.shape[d] * v.strides[d];
    i /= v.shape[d];
  }
  const auto* p = begin + (v.ptr<std::byte>() - Extent(v).begin) + at * std::int64_t(size_bytes(v.dtype));
  HostData one;
  one.dtype = v.dtype;
  one.shape = {};
  one.bytes.assign(p, p + size_bytes(v.dtype));
  return one.number(0);
}

inline double tolerance_of(DType t) {
  switch (t) {
    case DType::f64: return 1e-12;
    case DType::f32: return 6e-6;
    case DType::f16: return 4e-3;
    case DType::bf16: return 3e-2;
    default: return 0;
  }
}

// What the lane's thread finds, and the test reports: Catch is for one thread.
struct Findings {
  test::ShimLauncher launcher;
  std::vector<std::string> wrong;
  std::set<std::string> without;  // operations that have no launch
  int calls = 0;
  std::string now;  // the declaration that runs
  void add(const std::string& what) {
    if (wrong.size() < 40) wrong.push_back(now + ": " + what);
  }
};
inline Findings* findings = nullptr;

inline void compare(const Op& op, const kernels::View& out, int number, const std::vector<std::byte>& mine) {
  double largest = 1;
  const Extent e(out);
  const auto n = out.shape.count();
  for (std::int64_t i = 0; i < n; ++i) {
    const double want = std::fabs(element(out, e.begin, i));
    if (std::isfinite(want)) largest = std::max(largest, want);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const double got = element(out, mine.data(), i), want = element(out, e.begin, i);
    if (got == want || (std::isnan(got) && std::isnan(want))) continue;
    if (std::fabs(got - want) <= tolerance_of(out.dtype) * largest) continue;
    return findings->add(std::string(op.name) + " in " + name_of(out.dtype) + ": output " + std::to_string(number) +
                         ", element " + std::to_string(i) + " of " + std::to_string(n) + ": " + std::to_string(got) +
                         ", not " + std::to_string(want));
  }
}

// Runs on the lane, in place of the kernel.
inline void both(const Op& op, const kernels::Call& c) {
  const auto launch = kernels::cuda::launch_of(op.id);
  // Columns as they lie are made for the CPU alone; on a device they are turned to rows first.
  static const std::set<std::string> along{"softmax", "log_softmax", "softmax_grad", "log_softmax_grad"};
  if (along.count(op.name) && c.attrs->i[kernels::apart_at]) return op.kernel(c);
  if (!launch) {
    findings->without.insert(op.name);
    return op.kernel(c);
  }
  static const std::set<std::string> updates{"axpy",      "scale", "copy", "increment", "adamw",        "sgd",
                                             "grad_clip", "fill",  "lion", "average",   "grad_unscale", "loss_scale"};
  std::vector<Extent> extents;
  std::vector<std::vector<std::byte>> before, mine;
  for (int k = 0; k < c.n_out; ++k) {
    extents.emplace_back(c.out[k]);
    before.push_back(extents.back().saved());
    bool read = updates.count(op.name) != 0;
    for (int i = 0; i < c.n_in; ++i) read = read || extents.back().meets(Extent(c.in[i]));
    if (!read) std::memset(extents.back().begin, 0xff, extents.back().bytes);
  }
  auto& launcher = findings->launcher;
  for (int i = 0; i < c.n_in; ++i) {
    const Extent e(c.in[i]);
    launcher.allow(e.begin, e.bytes, true);
  }
  for (const auto& e : extents) launcher.allow(e.begin, e.bytes, false);
  launcher.set_key(c.random.seed, c.random.step);
  std::array<char, kernels::Call::error_bytes> said{};
  kernels::Call call = c;
  call.error = said.data();
  call.lane = nullptr;
  launch(call, launcher);
  ++findings->calls;
  std::string error = launcher.take_error();
  if (said[0]) error = said.data();
  launcher.end_operation();
  for (const auto& e : extents) mine.push_back(e.saved());
  for (std::size_t k = 0; k < extents.size(); ++k)
    if (extents[k].bytes) std::memcpy(extents[k].begin, before[k].data(), extents[k].bytes);
  op.kernel(c);
  const std::string wanted = c.error ? c.error : "";
  if (error != wanted) return findings->add(std::string(op.name) + " says \"" + error + "\", not \"" + wanted + "\"");
  if (!error.empty()) return;
  for (int k = 0; k < c.n_out; ++k)
    if (extents[k].bytes) compare(op, c.out[k], k, mine[k]);
}

class Compared {
 public:
  explicit Compared(int architecture = 75)
      : found_{test::ShimLauncher(architecture), {}, {}, 0, {}}, graph(new_graph()) {
    findings = &found_;
    graph->impl().queue->instead = &both;
  }
  ~Compared() {
    get(graph->synchronize_blocking());
    graph->impl().queue->instead = nullptr;
    findings = nullptr;
  }
  void now(std::string what) {
    get(graph->synchronize_blocking());
    found_.now = std::move(what);
  }
  const std::set<std::string>& kernels() const { return found_.launcher.kernels; }
  void check() {
    get(graph->synchronize_blocking());
    for (const auto& w : found_.wrong) {
      INFO(w);
      CHECK(false);
    }
    CHECK(found_.calls > 0);
    if (std::getenv("RILLE_TELL")) {
      std::printf("%d calls, %d launches; without:", found_.calls, found_.launcher.launches);
      for (const auto& w : found_.without) std::printf(" %s", w.c_str());
      std::printf("\n");
    }
  }

 private:
  Findings found_;

 public:
  std::shared_ptr<Graph> graph;
};

}  // namespace rille::tensor
