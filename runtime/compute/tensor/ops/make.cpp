// Creation of tensors: constants, ranges and host data.
#include "runtime/compute/tensor/ops/make.hpp"

#include <xxhash.h>

#include <cmath>
#include <cstring>

#include "runtime/compute/device/owner.hpp"
#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/notebook.hpp"

namespace rille::tensor {

Result<Tensor> make(Graph& g, OpId op, const kernels::Attrs& attrs, const Dims& shape, DType dtype) {
  RILLE_CHECK(check_dims(shape));
  Tensor t = make_tensor(g, dtype, shape);
  RILLE_CHECK(record(g, op, attrs, {}, {t}));
  return t;
}

Result<void> need_float_type(const char* op, DType dtype) {
  if (is_floating(dtype)) return success();
  return bad(fmt::format("{}: the type {} is not possible here: expected a floating type", op, name_of(dtype)));
}

kernels::Attrs fill_attrs(double value) {
  kernels::Attrs attrs;
  attrs.f[0] = value;
  attrs.i[0] = std::isfinite(value) ? std::int64_t(value) : 0;
  return attrs;
}

Result<Tensor> full(Graph& g, const Dims& shape, double value, DType dtype) {
  auto attrs = fill_attrs(value);
  if (dtype == DType::boolean) attrs.i[0] = value != 0;
  return make(g, OpId::fill, attrs, shape, dtype);
}
Result<Tensor> zeros(Graph& g, const Dims& shape, DType dtype) { return full(g, shape, 0, dtype); }
Result<Tensor> ones(Graph& g, const Dims& shape, DType dtype) { return full(g, shape, 1, dtype); }

Result<Tensor> arange(Graph& g, double start, double end, double step, DType dtype) {
  if (step == 0 || !std::isfinite(start) || !std::isfinite(end) || !std::isfinite(step)) {
    return bad(
        fmt::format("arange: from {} to {} by {}: expected finite numbers, and a step other than 0", start, end, step));
  }
  if (dtype == DType::boolean)
    return bad(fmt::format("arange: the type {} is not possible here: choose a number type", name_of(dtype)));
  const double n = std::ceil((end - start) / step);
  kernels::Attrs attrs;
  attrs.f[0] = start;
  attrs.f[1] = step;
  return make(g, OpId::arange, attrs, dims_of({n > 0 ? std::int64_t(std::min(n, 1e16)) : 0}), dtype);
}

Result<Tensor> linspace(Graph& g, double start, double end, std::int64_t count, DType dtype) {
  if (count < 0 || !std::isfinite(start) || !std::isfinite(end))
    return bad(fmt::format("linspace: {} numbers from {} to {}: expected a count of 0 or more and finite bounds", count,
                           start, end));
  RILLE_CHECK(need_float_type("linspace", dtype));
  kernels::Attrs attrs;
  attrs.f[0] = start;
  attrs.f[1] = count > 1 ? (end - start) / double(count - 1) : 0;
  return make(g, OpId::arange, attrs, dims_of({count}), dtype);
}

Result<Tensor> eye(Graph& g, std::int64_t rows, std::int64_t columns, DType dtype) {
  RILLE_TRY(const auto i, arange(g, 0, double(rows), 1, DType::i64));
  RILLE_TRY(const auto column, unsqueeze(i, 1));
  RILLE_TRY(const auto j, arange(g, 0, double(columns), 1, DType::i64));
  RILLE_TRY(const auto same, eq(column, j));
  return cast(same, dtype);
}

Result<Tensor> from_bytes(Graph& g, const Dims& shape, DType dtype, const void* data, std::size_t bytes) {
  RILLE_CHECK(check_dims(shape));
  Tensor t = make_tensor(g, dtype, shape);
  if (t.size_bytes() != bytes) {
    return bad(fmt::format("{} bytes are given for a tensor {}{}, which has {}", bytes, name_of(dtype),
                           to_string(shape), t.size_bytes()));
  }
  auto& storage = *t.impl()->storage;
  const device::OwnedBy owner(storage.owner ? storage.owner.load() : "data from the host");
  RILLE_TRY(storage.buffer, g.device()->allocate(bytes));
  RILLE_CHECK(g.device()->upload(storage.buffer, data, bytes));
  auto& impl = g.impl();
  if (impl.trace) {
    storage.constant = true;
    storage.trace = 0;  // the plan keeps the storage, which stays usable after the trace
  }
  if (impl.notebook) impl.notebook->seed_constant(t.impl()->storage, XXH3_64bits(data, bytes));
  return t;
}

Result<Tensor> from_memory(Graph& g, const Dims& shape, DType dtype, void* data, std::shared_ptr<void> keeper) {
  RILLE_CHECK(check_dims(shape));
  if (g.device()->kind() != device::Kind::cpu) return bad("memory of this program becomes a tensor of the CPU only");
  Tensor t = make_tensor(g, dtype, shape);
  auto& storage = *t.impl()->storage;
  storage.buffer = g.device()->adopt(data, t.size_bytes(), std::move(keeper));
  auto& impl = g.impl();
  if (impl.trace) {
    storage.constant = true;
    storage.trace = 0;  // as in from_bytes
  }
  if (impl.notebook) impl.notebook->seed_constant(t.impl()->storage, XXH3_64bits(data, t.size_bytes()));
  return t;
}

Result<Tensor> from_numbers(Graph& g, const Dims& shape, DType dtype, const std::vector<double>& numbers) {
  // f16 and bf16 are made as f32 and cast on the lane; other types are converted here.
  std::vector<std::byte> bytes(numbers.size() * size_bytes(dtype));
  const auto put = [&](auto zero) {
    auto* at = bytes.data();
    for (const double x : numbers) {
      zero = static_cast<decltype(zero)>(x);
      std::memcpy(at, &zero, sizeof zero);
      at += sizeof zero;
    }
  };
  switch (dtype) {
    case DType::boolean:
      for (std::size_t i = 0; i < numbers.size(); ++i) bytes[i] = std::byte(numbers[i] != 0);
      break;
    case DType::u8: put(std::uint8_t{}); break;
    case DType::i32: put(std::int32_t{}); break;
    case DType::i64: put(std::int64_t{}); break;
    case DType::f32: put(float{}); break;
    case DType::f64: put(double{}); break;
    case DType::i8: put(std::int8_t{}); break;
    case DType::f16:
    case DType::bf16: {
      RILLE_TRY(const auto wide, from_numbers(g, shape, DType::f32, numbers));
      return cast(wide, dtype);
    }
  }
  return from_bytes(g, shape, dtype, bytes.data(), bytes.size());
}

}  // namespace rille::tensor
