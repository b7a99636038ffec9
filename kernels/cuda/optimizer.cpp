// Updates of many tensors: each launch updates up to tensors_max of them.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

constexpr auto every = [](std::int64_t) { return true; };

// Calls go(table, pieces) with up to tensors_max of the `n` tensors at a time, if `wanted`. data(role, i) is the view
// of tensor i that has this role (parameter, gradient, moment).
template <class Data, class Go, class Wanted = decltype(every)>
void each_table(std::int64_t n, int roles, const Data& data, const Go& go, const Wanted& wanted = every) {
  for (std::int64_t first = 0; first < n;) {
    Tensors t{};
    std::int64_t pieces = 0;
    for (; first < n && t.count < tensors_max; ++first) {
      const View& main = data(0, first);
      const std::int64_t elements = main.count();
      if (elements == 0 || !wanted(first)) continue;
      bool packed = true;
      for (int role = 0; role < roles; ++role) {
        t.data[role][t.count] = data(role, first).data;
        packed = packed && aligned(data(role, first).data, 16);
      }
      t.packed |= std::uint64_t(packed) << t.count;
      t.elements[t.count] = elements;
      t.number[t.count] = unsigned(first);
      t.first_piece[t.count++] = unsigned(pieces);
      pieces += blocks_for(elements, tensor_piece);
    }
    if (pieces) go(t, pieces);
  }
}

const char* typed(DType t, const char* f32, const char* f64) { return t == DType::f64 ? f64 : f32; }

// The last input if attrs.i[2] is 1: a flag. If it is set, the kernel changes nothing. Null: no flag.
const float* skip_of(const Call& c) { return c.attrs->i[2] == 1 ? c.in[c.n_in - 1].ptr<const float>() : nullptr; }

}  // namespace

void increment(const Call& c, Launcher& l, const Names&) {
  launch(l, "increment", grid_for(l, c.out[0].count()), {threads}, 0, c.out[0].data, (long long)(c.out[0].count()),
         skip_of(c));
}

void adamw(const Call& c, Launcher& l, const Names&) {
  const std::int64_t n = c.attrs->i[0];
  const double* f = c.attrs->f;
  const Update how{f[0], f[1], f[2], f[3], c.attrs->i[1] != 0, 0, skip_of(c)};
  const auto view = [&](int role, std::int64_t i) -> const View& {
    return role == 3 ? c.in[2 + i] : c.out[role * n + i];
  };
  const DType own = c.out[0].dtype;
  for (const DType type : {own, DType::f16, DType::bf16}) {
    const char* const plain = typed(own, "adamw_f32", "adamw_f64");
    const char* const kernel = type == DType::f16 ? "adamw_f32_f16" : type == DType::bf16 ? "adamw_f32_bf16" : plain;
    const auto go = [&](const Tensors& t, std::int64_t pieces) {
      launch(l, kernel, {unsigned(pieces)}, {threads}, 0, t, c.in[0].data, c.in[1].data, how);
    };
    each_table(n, 4, view, go, [&](std::int64_t i) { return view(3, i).dtype == type; });
  }
}

namespace {

// Updates from parameters, gradients and momenta; the momenta come after the parameters in the outputs.
void updates(const Call& c, Launcher& l, const char* kernel, int roles, const Update& how) {
  const std::int64_t n = c.attrs->i[0];
  const auto view = [&](int role, std::int64_t i) -> const View& {
    return role == 0 ? c.out[i] : role == 1 ? c.in[1 + i] : c.out[n + i];
  };
  each_table(n, roles, view, [&](const Tensors& t, std::int64_t pieces) {
    launch(l, kernel, {unsigned(pieces)}, {threads}, 0, t, c.in[0].data, how);
  });
}

}  // namespace

void sgd(const Call& c, Launcher& l, const Names&) {
  const double* f = c.attrs->f;
  updates(c, l, typed(c.out[0].dtype, "sgd_f32", "sgd_f64"), f[0] != 0 ? 3 : 2,
          {f[0], 0, 0, f[1], c.attrs->i[3] != 1, c.attrs->i[1] == 1, skip_of(c)});
}

void lion(const Call& c, Launcher& l, const Names&) {
  const double* f = c.attrs->f;
  updates(c, l, typed(c.out[0].dtype, "lion_f32", "lion_f64"), 3, {f[0], f[1], 0, f[2], 0, 0, skip_of(c)});
}

void average(const Call& c, Launcher& l, const Names&) {
  const auto view = [&](int role, std::int64_t i) -> const View& { return role == 0 ? c.out[i] : c.in[1 + i]; };
  const Update how{c.attrs->f[0], 0, 0, 0, 0, 0, skip_of(c)};
  each_table(c.n_out, 2, view, [&](const Tensors& t, std::int64_t pieces) {
    launch(l, typed(c.out[0].dtype, "average_f32", "average_f64"), {unsigned(pieces)}, {threads}, 0, t, c.in[0].data,
           how);
  });
}

void grad_unscale(const Call& c, Launcher& l, const Names&) {
  l.fill(c.out[0].data, 0, sizeof(float));
  const auto view = [&](int, std::int64_t i) -> const View& { return c.out[1 + i]; };
  each_table(c.n_out - 1, 1, view, [&](const Tensors& t, std::int64_t pieces) {
    launch(l, typed(c.out[1].dtype, "unscale_f32", "unscale_f64"), {unsigned(pieces)}, {threads}, 0, t, c.in[0].data,
           c.out[0].data);
  });
}

void loss_scale(const Call& c, Launcher& l, const Names&) {
  launch(l, "loss_scale", {}, {32}, 0, c.in[0].data, c.out[0].data, c.out[1].data, (long long)(c.attrs->i[0]),
         c.attrs->f[0], c.attrs->f[1]);
}

void grad_norm(const Call& c, Launcher& l, const Names&) {
  std::int64_t all = 0, done = 0;
  const auto view = [&](int, std::int64_t i) -> const View& { return c.in[i]; };
  each_table(c.n_in, 1, view, [&](const Tensors&, std::int64_t pieces) { all += pieces; });
  auto* parts = static_cast<double*>(l.scratch(std::size_t(all + 1) * sizeof(double)));
  if (!parts) return c.fail("clip_grad_norm: no memory for %lld partial sums\n"
                            "work on smaller tensors or batches, or free tensors", (long long)all);
  const DType type = c.out[0].dtype;
  each_table(c.n_in, 1, view, [&](const Tensors& t, std::int64_t pieces) {
    launch(l, typed(type, "square_sums_f32", "square_sums_f64"), {unsigned(pieces)}, {threads}, 0, t, parts + done);
    done += pieces;
  });
  launch(l, typed(type, "norm_of_f32", "norm_of_f64"), {}, {1024}, 0, parts, (long long)(all), c.out[0].data);
}

void grad_clip(const Call& c, Launcher& l, const Names&) {
  const auto view = [&](int, std::int64_t i) -> const View& { return c.out[i]; };
  each_table(c.n_out, 1, view, [&](const Tensors& t, std::int64_t pieces) {
    launch(l, typed(c.out[0].dtype, "clip_f32", "clip_f64"), {unsigned(pieces)}, {threads}, 0, t, c.in[0].data,
           c.attrs->f[0]);
  });
}

}  // namespace rille::kernels::cuda
