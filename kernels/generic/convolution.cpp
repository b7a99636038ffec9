// Convolution of [n, c, h, w] with [o, c/groups, kh, kw]. f32 and, on processors with bf16 instructions, bf16 run by
// oneDNN; f16 runs through f32; f64 (tests only) runs in plain loops. attrs.i: stride (h, w), padding (h, w), dilation
// (h, w), groups. Inputs may be strided; outputs are contiguous. oneDNN chooses the memory layout in which it computes;
// an operand with another layout is copied into scratch memory. Primitives are cached on the lane by geometry.
#include <cstring>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/nest.hpp"
#include "kernels/onednn.hpp"

namespace rille::kernels {

namespace {

using Desc = dnnl::memory::desc;

enum class Pass { forward, input, weight };

// One operand: in the layout of the tensor (given) and in the layout of the primitive (inner).
struct Operand {
  dnnl::memory given, inner;
  dnnl::primitive reorder;  // converts between the layouts; empty: they are equal
  std::unordered_map<int, dnnl::memory> reorder_arguments;
  std::size_t inner_bytes = 0;
};

struct Convolution {
  dnnl::primitive primitive;
  std::vector<Operand> inputs, outputs;
  dnnl::memory scratchpad;
  std::size_t scratchpad_bytes = 0, scratch_bytes = 0;
  std::unordered_map<int, dnnl::memory> arguments;
};

struct Cache : LaneState::Prepared {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  onednn::Kept<Convolution> made;
};

Cache& cache_of(const Call& c) {
  auto*& slot = c.lane->prepared(LaneState::Library::convolution);
  if (!slot) slot = new Cache;
  return static_cast<Cache&>(*slot);
}

Desc any_desc(const View& v) {
  const Desc given = onednn::describe(v);
  return {given.dims(), given.data_type(), dnnl::memory::format_tag::any};
}

// Views [o, c/g, kh, kw] as [g, o/g, c/g, kh, kw].
View grouped(const View& w, std::int64_t groups) {
  if (groups == 1) return w;
  View v = w;
  v.shape.n = v.strides.n = 5;
  for (int d = 4; d > 1; --d) {
    v.shape[d] = w.shape[d - 1];
    v.strides[d] = w.strides[d - 1];
  }
  v.shape[0] = groups;
  v.shape[1] = w.shape[0] / groups;
  v.strides[0] = v.shape[1] * w.strides[0];
  v.strides[1] = w.strides[0];
  return v;
}

struct Geometry {
  dnnl::memory::dims strides, dilations, before, after;
};

Geometry geometry_of(const Attrs& a, const View& x, const View& w, const View& y) {
  Geometry g;
  for (int k = 0; k < 2; ++k) {
    const std::int64_t stride = a.i[k], padding = a.i[2 + k], dilation = a.i[4 + k];
    g.strides.push_back(stride);
    g.dilations.push_back(dilation - 1);
    g.before.push_back(padding);
    g.after.push_back((y.shape[2 + k] - 1) * stride + (w.shape[2 + k] - 1) * dilation + 1 - x.shape[2 + k] - padding);
  }
  return g;
}

Operand operand(Cache& cache, const View& v, const Desc& wanted, bool output) {
  Operand o;
  const Desc given = onednn::describe(v);
  o.given = dnnl::memory(given, cache.engine, DNNL_MEMORY_NONE);
  if (given == wanted) {
    o.inner = o.given;
    return o;
  }
  o.inner = dnnl::memory(wanted, cache.engine, DNNL_MEMORY_NONE);
  o.inner_bytes = (wanted.get_size() + 63) / 64 * 64;
  auto &from = output ? o.inner : o.given, &to = output ? o.given : o.inner;
  o.reorder = dnnl::reorder(from, to);
  o.reorder_arguments = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  return o;
}

// The operands x, w and y of any pass of a convolution, and the bias or its gradient.
struct Parts {
  View x, w, y;
  const View* bias = nullptr;
};

Parts parts_of(const Call& c, Pass pass) {
  const std::int64_t groups = c.attrs->i[6];
  switch (pass) {
    case Pass::forward: return {c.in[0], grouped(c.in[1], groups), c.out[0], c.n_in == 3 ? &c.in[2] : nullptr};
    case Pass::input: return {c.out[0], grouped(c.in[1], groups), c.in[0]};
    default: return {c.in[0], grouped(c.out[0], groups), c.in[1], c.n_out == 2 && c.out[1].data ? &c.out[1] : nullptr};
  }
}

void finish(Cache& cache, Convolution& m, const Desc& scratchpad) {
  m.scratchpad = dnnl::memory(scratchpad, cache.engine, DNNL_MEMORY_NONE);
  m.arguments.emplace(DNNL_ARG_SCRATCHPAD, m.scratchpad);
  m.scratchpad_bytes = m.scratch_bytes = (scratchpad.get_size() + 63) / 64 * 64;
  for (const auto* list : {&m.inputs, &m.outputs})
    for (const auto& o : *list) m.scratch_bytes += o.inner_bytes;
}

std::unique_ptr<Convolution> make(Cache& cache, const Call& c, Pass pass, const Parts& p) {
  using namespace dnnl;
  auto m = std::make_unique<Convolution>();
  const View w4 = pass == Pass::weight ? c.out[0] : c.in[1];
  const auto g = geometry_of(*c.attrs, p.x, w4, p.y);
  const auto kind = pass == Pass::forward ? prop_kind::forward_inference : prop_kind::forward_training;
  const auto algorithm = algorithm::convolution_direct;
  const Desc x = any_desc(p.x), w = any_desc(p.w), y = any_desc(p.y), b = p.bias ? onednn::describe(*p.bias) : Desc();
  primitive_attr attr;
  attr.set_scratchpad_mode(scratchpad_mode::user);
  const bool biased = p.bias && pass == Pass::forward;
  const auto forward =
      biased ? convolution_forward::desc(kind, algorithm, x, w, b, y, g.strides, g.dilations, g.before, g.after)
             : convolution_forward::desc(kind, algorithm, x, w, y, g.strides, g.dilations, g.before, g.after);
  const convolution_forward::primitive_desc hint(forward, attr, cache.engine);
  if (pass == Pass::forward) {
    m->primitive = convolution_forward(hint);
    m->inputs = {operand(cache, p.x, hint.src_desc(), false), operand(cache, p.w, hint.weights_desc(), false)};
    m->outputs = {operand(cache, p.y, hint.dst_desc(), true)};
    m->arguments = {{DNNL_ARG_SRC, m->inputs[0].inner},
                    {DNNL_ARG_WEIGHTS, m->inputs[1].inner},
                    {DNNL_ARG_DST, m->outputs[0].inner}};
    if (biased) {
      m->inputs.push_back(operand(cache, *p.bias, b, false));
      m->arguments.emplace(DNNL_ARG_BIAS, m->inputs[2].inner);
    }
    finish(cache, *m, hint.scratchpad_desc());
  } else if (pass == Pass::input) {
    const convolution_backward_data::primitive_desc pd({algorithm, x, w, y, g.strides, g.dilations, g.before, g.after},
                                                       attr, cache.engine, hint);
    m->primitive = convolution_backward_data(pd);
    m->inputs = {operand(cache, p.y, pd.diff_dst_desc(), false), operand(cache, p.w, pd.weights_desc(), false)};
    m->outputs = {operand(cache, p.x, pd.diff_src_desc(), true)};
    m->arguments = {{DNNL_ARG_DIFF_DST, m->inputs[0].inner},
                    {DNNL_ARG_WEIGHTS, m->inputs[1].inner},
                    {DNNL_ARG_DIFF_SRC, m->outputs[0].inner}};
    finish(cache, *m, pd.scratchpad_desc());
  } else {
    const auto desc =
        p.bias ? convolution_backward_weights::desc(algorithm, x, w, b, y, g.strides, g.dilations, g.before, g.after)
               : convolution_backward_weights::desc(algorithm, x, w, y, g.strides, g.dilations, g.before, g.after);
    const convolution_backward_weights::primitive_desc pd(desc, attr, cache.engine, hint);
    m->primitive = convolution_backward_weights(pd);
    m->inputs = {operand(cache, p.x, pd.src_desc(), false), operand(cache, p.y, pd.diff_dst_desc(), false)};
    m->outputs = {operand(cache, p.w, pd.diff_weights_desc(), true)};
    m->arguments = {{DNNL_ARG_SRC, m->inputs[0].inner},
                    {DNNL_ARG_DIFF_DST, m->inputs[1].inner},
                    {DNNL_ARG_DIFF_WEIGHTS, m->outputs[0].inner}};
    if (p.bias) {
      m->outputs.push_back(operand(cache, *p.bias, b, true));
      m->arguments.emplace(DNNL_ARG_DIFF_BIAS, m->outputs[1].inner);
    }
    finish(cache, *m, pd.scratchpad_desc());
  }
  return m;
}

Convolution& prepared(Cache& cache, const Call& c, Pass pass, const Parts& p) {
  onednn::Key key(int(pass) * 4 + (p.x.dtype == DType::bf16) * 2 + (p.bias != nullptr), {&p.x, &p.w, &p.y});
  for (int k = 0; k < 7; ++k) key.add(c.attrs->i[k]);
  return cache.made.get(key, [&] { return make(cache, c, pass, p); });
}

void run_at_once(const Call& c, Pass pass) {
  const Parts p = parts_of(c, pass);
  // oneDNN throws on failure; the exception becomes the error of this call.
  try {
    Cache& cache = cache_of(c);
    Convolution& m = prepared(cache, c, pass, p);
    char* memory = static_cast<char*>(c.lane->scratch(m.scratch_bytes));
    if (!memory && m.scratch_bytes)
      return c.fail(
          "convolution: no memory for %zu bytes of scratch\nwork on smaller tensors or batches, or free tensors",
          m.scratch_bytes);
    m.scratchpad.set_data_handle(memory);
    memory += m.scratchpad_bytes;
    const auto place = [&](Operand& o, const View& v) {
      o.given.set_data_handle(v.data);
      if (!o.reorder) return;
      o.inner.set_data_handle(memory);
      memory += o.inner_bytes;
    };
    for (std::size_t i = 0; i < m.inputs.size(); ++i) {
      place(m.inputs[i], c.in[i]);
      if (m.inputs[i].reorder) m.inputs[i].reorder.execute(cache.stream, m.inputs[i].reorder_arguments);
    }
    for (std::size_t i = 0; i < m.outputs.size(); ++i) place(m.outputs[i], c.out[i]);
    m.primitive.execute(cache.stream, m.arguments);
    for (auto& o : m.outputs)
      if (o.reorder) o.reorder.execute(cache.stream, o.reorder_arguments);
    cache.stream.wait();
  } catch (const std::exception& e) { c.fail("convolution: oneDNN: %s", e.what()); }
}

View half_of(const View& v, int dim, bool second) {
  const std::int64_t middle = v.shape[dim] / 2;
  View half = v;
  half.shape[dim] = second ? v.shape[dim] - middle : middle;
  if (second) half.data = v.ptr<char>() + middle * v.strides[dim] * std::int64_t(size_bytes(v.dtype));
  return half;
}

// Larger convolutions are computed in parts: along the batch, or for the weight's gradient along the output channels.
void run(const Call& c, Pass pass) {
  const View& y = pass == Pass::forward ? c.out[0] : c.in[pass == Pass::input ? 0 : 1];
  const View& w = pass == Pass::weight ? c.out[0] : c.in[1];
  const int dim = pass == Pass::weight ? 1 : 0;
  const double work = double(y.count()) * double(w.shape[1] * w.shape[2] * w.shape[3]);
  const double most = c.lane->parts_above();
  if (most == 0 || work <= most * omp_get_max_threads() || y.shape[dim] < 2 || (dim == 1 && c.attrs->i[6] != 1))
    return run_at_once(c, pass);
  for (const bool second : {false, true}) {
    if (c.stopped()) return;
    View in[3] = {c.in[0], c.in[1], c.n_in == 3 ? c.in[2] : View{}}, out[2] = {c.out[0], View{}};
    View& cut = in[pass == Pass::weight ? 1 : 0];
    cut = half_of(cut, dim, second);
    out[0] = half_of(c.out[0], 0, second);
    if (c.n_out == 2) out[1] = c.out[1].data ? half_of(c.out[1], 0, second) : c.out[1];
    Call part = c;
    part.in = in;
    part.out = out;
    run(part, pass);
  }
}

// -- f64, for tests. Calls each(y position, x position, w position) for every product of elements.
template <class F>
void each_product(const Call& c, const View& x, const View& w, const View& y, const F& each) {
  const auto& a = c.attrs->i;
  const std::int64_t groups = a[6], out_each = w.shape[0] / groups;
  const auto at = [](const View& v, std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l) {
    return i * v.strides[0] + j * v.strides[1] + k * v.strides[2] + l * v.strides[3];
  };
  for (std::int64_t n = 0; n < y.shape[0]; ++n)
    for (std::int64_t o = 0; o < y.shape[1]; ++o)
      for (std::int64_t i = 0; i < y.shape[2]; ++i)
        for (std::int64_t j = 0; j < y.shape[3] && !c.stopped(); ++j)
          for (std::int64_t k = 0; k < w.shape[1]; ++k)
            for (std::int64_t p = 0; p < w.shape[2]; ++p)
              for (std::int64_t q = 0; q < w.shape[3]; ++q) {
                const std::int64_t h = i * a[0] - a[2] + p * a[4], v = j * a[1] - a[3] + q * a[5];
                if (h < 0 || v < 0 || h >= x.shape[2] || v >= x.shape[3]) continue;
                each(at(y, n, o, i, j), at(x, n, o / out_each * w.shape[1] + k, h, v), at(w, o, k, p, q));
              }
}

void zero(const View& v) {
  if (v.data) std::memset(v.data, 0, std::size_t(v.count()) * size_bytes(v.dtype));
}

// For types that are computed through f32: runs `kernel` so and returns true.
bool other_type(const Call& c, Kernel kernel) {
  const DType type = c.out[0].dtype;
  if (type == DType::f16 || (type == DType::bf16 && !native_bf16())) {
    widened(c, kernel);
    return true;
  }
  return false;
}

}  // namespace

// in: x, weight, bias or null; out: y
void convolution(const Call& c) {
  if (c.out[0].count() == 0 || other_type(c, &convolution)) return;
  if (c.out[0].dtype != DType::f64) return run(c, Pass::forward);
  double* y = c.out[0].ptr<double>();
  const View& v = c.out[0];
  for (std::int64_t i = 0; i < v.count(); ++i)
    y[i] = c.n_in == 3 ? c.in[2].ptr<double>()[i / v.strides[1] % v.shape[1] * c.in[2].strides[0]] : 0;
  each_product(c, c.in[0], c.in[1], v, [&](std::int64_t o, std::int64_t x, std::int64_t w) {
    y[o] += c.in[0].ptr<double>()[x] * c.in[1].ptr<double>()[w];
  });
}

// in: gradient of y, weight; out: gradient of x
void convolution_grad_input(const Call& c) {
  if (other_type(c, &convolution_grad_input)) return;
  if (c.out[0].dtype != DType::f64 && c.in[0].count() && c.out[0].count()) return run(c, Pass::input);
  zero(c.out[0]);
  if (c.out[0].dtype != DType::f64) return;
  each_product(c, c.out[0], c.in[1], c.in[0], [&](std::int64_t o, std::int64_t x, std::int64_t w) {
    c.out[0].ptr<double>()[x] += c.in[0].ptr<double>()[o] * c.in[1].ptr<double>()[w];
  });
}

// in: x, gradient of y; out: gradients of weight and bias
void convolution_grad_weight(const Call& c) {
  if (other_type(c, &convolution_grad_weight)) return;
  if (c.out[0].dtype != DType::f64 && c.in[1].count() && c.in[0].count()) return run(c, Pass::weight);
  zero(c.out[0]);
  if (c.n_out == 2) zero(c.out[1]);
  if (c.out[0].dtype != DType::f64) return;
  each_product(c, c.in[0], c.out[0], c.in[1], [&](std::int64_t o, std::int64_t x, std::int64_t w) {
    c.out[0].ptr<double>()[w] += c.in[1].ptr<double>()[o] * c.in[0].ptr<double>()[x];
  });
  if (c.n_out < 2 || !c.out[1].data) return;
  const View& g = c.in[1];
  for (std::int64_t i = 0; i < g.count(); ++i) {
    const std::int64_t w = i % g.shape[3], h = i / g.shape[3] % g.shape[2], rest = i / g.shape[3] / g.shape[2];
    const std::int64_t o = rest % g.shape[1], n = rest / g.shape[1];
    c.out[1].ptr<double>()[o] +=
        g.ptr<double>()[n * g.strides[0] + o * g.strides[1] + h * g.strides[2] + w * g.strides[3]];
  }
}

}  // namespace rille::kernels
