#include "kernels/cuda/group.hpp"

#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

// Two numbers per step; a step that needs none ignores them.
struct Numbers {
  double at[2 * Fused::most_steps];
  explicit Numbers(const Fused& group) : at() {
    for (int k = 0; k < group.n_steps; ++k) std::memcpy(at + 2 * k, group.steps[k].answer.numbers, 2 * sizeof(double));
  }
};

template <int N> void as_one(const Call& c, Launcher& l, const Fused& group) {
  const View* views[N];
  for (int k = 0; k < N; ++k) views[k] = k < c.n_in ? &c.in[k] : &c.out[k - c.n_in];
  Numbers numbers(group);
  each_windows<N>(l, views, c, group_pack(c), -1, [&](Windows<N> w) {
    void* arguments[] = {&w, &numbers};
    l.launch_loaded(group.function, grid_for(l, std::max(w.units, w.tail)), {threads}, arguments);
  });
}

// Runs the operations one after another. Values between operations get scratch memory for this call.
void one_by_one(const Call& c, Launcher& l, const Fused& group) {
  const Dims& shape = c.out[0].shape;
  View places[Fused::most_operands + Fused::most_pieces];
  const int outside = c.n_in + c.n_out;
  for (int k = 0; k < outside; ++k) places[k] = k < c.n_in ? c.in[k] : c.out[k - c.n_in];
  for (int k = 0; k < group.n_pieces; ++k) {
    View& piece = places[outside + k];
    piece.shape = piece.strides = shape;
    std::int64_t step = 1;
    for (int d = shape.n - 1; d >= 0; step *= shape[d--]) piece.strides[d] = step;
    piece.data = l.scratch(std::size_t(shape.count()) * 8);
    if (!piece.data) return;
  }
  for (int k = 0; k < group.n_steps; ++k) {
    const Fused::Step& step = group.steps[k];
    const RowAnswer& a = step.answer;
    Attrs attrs;
    std::memcpy(attrs.f, a.numbers, sizeof attrs.f);
    attrs.i[0] = step.place[0] < 0;                // 1: the number is the left operand
    View in[3];
    int n_in = 0;
    for (int j = 0; j < a.operands - 1; ++j) {
      if (step.place[j] < 0) continue;
      in[n_in] = places[step.place[j]];
      in[n_in++].dtype = step.dtype[j];
    }
    View out = places[step.place[a.operands - 1]];
    out.dtype = step.dtype[a.operands - 1];
    const Call call{in, n_in, &out, 1, &attrs, {}, c.lane, c.error};
    launch_of(step.op)(call, l);
  }
}

}  // namespace

void fused(const Call& c, Launcher& l, const Names&) {
  const auto& group = *static_cast<const Fused*>(c.payload);
  if (!group.function) return one_by_one(c, l, group);
  switch (c.n_in + c.n_out) {
#define RILLE_GROUP_OF(n) case n: return as_one<n>(c, l, group);
    RILLE_GROUP_OF(2) RILLE_GROUP_OF(3) RILLE_GROUP_OF(4) RILLE_GROUP_OF(5) RILLE_GROUP_OF(6) RILLE_GROUP_OF(7)
    RILLE_GROUP_OF(8) RILLE_GROUP_OF(9) RILLE_GROUP_OF(10) RILLE_GROUP_OF(11) RILLE_GROUP_OF(12)
#undef RILLE_GROUP_OF
    default: return one_by_one(c, l, group);
  }
}

}  // namespace rille::kernels::cuda
