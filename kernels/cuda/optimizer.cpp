// Updates of many tensors: a few launches for all of them.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

// go(table, pieces) for `n` tensors, up to tensors_max at a time. data(role, i): the view that has the role.
template <class Data, class Go>
void each_table(std::int64_t n, int roles, const Data& data, const Go& go) {
  for (std::int64_t first = 0; first < n;) {
    Tensors t{};
    std::int64_t pieces = 0;
    for (; first < n && t.count < tensors_max; ++first) {
      const View& main = data(0, first);
      const std::int64_t elements = main.count();
      if (elements == 0) continue;
      bool packed = true;
      for (int role = 0; role < roles; ++role) {
        t.data[role][t.count] = data(role, first).data;
        packed = packed && aligned(data(role, first).data, 16);
      }
      t.packed |= std::uint64_t(packed) << t.count;
      t.elements[t.count] = elements;
      t.first_piece[t.count++] = unsigned(pieces);
      pieces += blocks_for(elements, tensor_piece);
    }
    if (pieces) go(t, pieces);
  }
}

const char* typed(DType t, const char* f32, const char* f64) { return t == DType::f64 ? f64 : f32; }

}  // namespace

void increments(const Call& c, Launcher& l, const Names&) { launch(l, "increment", {}, {32}, 0, c.out[0].data); }

void adamws(const Call& c, Launcher& l, const Names&) {
  const std::int64_t n = c.attrs->i[0];
  const AdamW how{c.attrs->f[0], c.attrs->f[1], c.attrs->f[2], c.attrs->f[3]};
  const auto view = [&](int role, std::int64_t i) -> const View& {
    return role == 3 ? c.in[2 + i] : c.out[role * n + i];
  };
  each_table(n, 4, view, [&](const Tensors& t, std::int64_t pieces) {
    launch(l, typed(c.out[0].dtype, "adamw_f32", "adamw_f64"), {unsigned(pieces)}, {threads}, 0, t, c.in[0].data,
           c.in[1].data, how);
  });
}

void sgds(const Call& c, Launcher& l, const Names&) {
  const std::int64_t n = c.attrs->i[0];
  const double momentum = c.attrs->f[0];
  const auto view = [&](int role, std::int64_t i) -> const View& {
    return role == 0 ? c.out[i] : role == 1 ? c.in[1 + i] : c.out[n + i];
  };
  each_table(n, momentum != 0 ? 3 : 2, view, [&](const Tensors& t, std::int64_t pieces) {
    launch(l, typed(c.out[0].dtype, "sgd_f32", "sgd_f64"), {unsigned(pieces)}, {threads}, 0, t, c.in[0].data, momentum,
           c.attrs->f[1], int(c.attrs->i[1] == 1));
  });
}

void grad_norms(const Call& c, Launcher& l, const Names&) {
  std::int64_t all = 0, done = 0;
  const auto view = [&](int, std::int64_t i) -> const View& { return c.in[i]; };
  each_table(c.n_in, 1, view, [&](const Tensors&, std::int64_t pieces) { all += pieces; });
  auto* parts = static_cast<double*>(l.scratch(std::size_t(all + 1) * sizeof(double)));
  if (!parts) return c.fail("clip_grad_norm: no memory for %lld partial sums", (long long)all);
  const DType type = c.out[0].dtype;
  each_table(c.n_in, 1, view, [&](const Tensors& t, std::int64_t pieces) {
    launch(l, typed(type, "square_sums_f32", "square_sums_f64"), {unsigned(pieces)}, {threads}, 0, t, parts + done);
    done += pieces;
  });
  launch(l, typed(type, "norm_of_f32", "norm_of_f64"), {}, {1024}, 0, parts, (long long)(all), c.out[0].data);
}

void grad_clips(const Call& c, Launcher& l, const Names&) {
  const auto view = [&](int, std::int64_t i) -> const View& { return c.out[i]; };
  each_table(c.n_out, 1, view, [&](const Tensors& t, std::int64_t pieces) {
    launch(l, typed(c.out[0].dtype, "clip_f32", "clip_f64"), {unsigned(pieces)}, {threads}, 0, t, c.in[0].data,
           c.attrs->f[0]);
  });
}

}  // namespace rille::kernels::cuda
