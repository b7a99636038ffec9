#include "runtime/compute/tensor/odd_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rille::tensor {

namespace {

// The memory from the first to the last element of a window, copied to the host; HostData decodes the types.
struct Span {
  std::int64_t elements = 0;
  HostData data;
};

Result<Span> span_of(device::Device& device, const kernels::View& view) {
  Span span;
  span.data.dtype = view.dtype;
  span.elements = 1;
  for (int d = 0; d < view.shape.n; ++d) span.elements += (view.shape[d] - 1) * view.strides[d];
  span.data.bytes.resize(std::size_t(span.elements) * size_bytes(view.dtype));
  RILLE_CHECK(device.download(span.data.bytes.data(), view.data, span.data.bytes.size()));
  return span;
}

std::string of(const kernels::View& view) { return fmt::format("{}{}", name_of(view.dtype), to_string(view.shape)); }

// Whether `op` is fill, which a script may use to make infinity on purpose.
bool constant(const Op& op) { return !op.in_place && !op.grad && op.id == OpId::fill; }

}  // namespace

Result<Odd> odd_in(device::Device& device, const kernels::View& view) {
  Odd odd;
  if (!view.data || !is_floating(view.dtype) || view.count() == 0) return odd;
  RILLE_TRY(const auto span, span_of(device, view));
  odd.count = view.count();
  odd.low = std::numeric_limits<double>::infinity();
  odd.high = -odd.low;
  const auto take = [&odd](double v) {
    if (std::isnan(v)) ++odd.nans;
    else if (std::isinf(v)) ++odd.infinite;
    else odd.low = std::min(odd.low, v), odd.high = std::max(odd.high, v);
  };
  if (view.dtype == DType::f32 && span.elements == odd.count) {
    const auto* values = reinterpret_cast<const float*>(span.data.bytes.data());
    for (std::int64_t i = 0; i < odd.count; ++i) take(double(values[i]));
    return odd;
  }
  std::int64_t index[kernels::max_rank] = {}, at = 0;
  for (std::int64_t i = 0; i < odd.count; ++i) {
    take(span.data.number(at));
    for (int d = view.shape.n - 1; d >= 0; --d) {
      at += view.strides[d];
      if (++index[d] < view.shape[d]) break;
      at -= index[d] * view.strides[d];
      index[d] = 0;
    }
  }
  return odd;
}

Result<void> check_numbers(const Node& node, const kernels::Call& call, device::Device& device,
                           std::string& first_infinity) {
  std::int64_t nans = 0, infinite = 0, count = 0;
  std::string made;
  for (int i = 0; i < call.n_out; ++i) {
    RILLE_TRY(const Odd odd, odd_in(device, call.out[i]));
    if (odd.nans && made.empty()) made = of(call.out[i]), nans = odd.nans, count = odd.count;
    infinite += odd.infinite;
  }
  if (!nans && !infinite) return success();
  std::string inputs, odd_input;
  bool infinite_input = false;
  for (int i = 0; i < call.n_in; ++i) {
    RILLE_TRY(const Odd odd, odd_in(device, call.in[i]));
    if (odd.nans && odd_input.empty()) odd_input = of(call.in[i]);
    infinite_input = infinite_input || odd.infinite;
    if (!odd.count) continue;
    inputs += inputs.empty() ? "it was given " : ", ";
    inputs += odd.count == odd.nans + odd.infinite
                  ? of(call.in[i])
                  : fmt::format("{} from {:.4g} to {:.4g}", of(call.in[i]), odd.low, odd.high);
    if (odd.infinite) inputs += fmt::format(", {} infinite", odd.infinite);
  }
  if (infinite && !infinite_input && first_infinity.empty() && !constant(*node.op))
    first_infinity = fmt::format("{} ({})", node.op->name, node.where);
  if (!nans) return success();
  Error error = make_error(
      ErrorKind::state,
      odd_input.empty()
          ? fmt::format("{} makes {} NaN of {} values, {} ({})", node.op->name, nans, count, made, node.where)
          : fmt::format("{} is given NaN, in {} that came from outside ({})", node.op->name, odd_input, node.where),
      inputs + (first_infinity.empty() ? "" : "; the first infinity came from " + first_infinity));
  error.code = "not_a_number";
  return error;
}

}  // namespace rille::tensor
