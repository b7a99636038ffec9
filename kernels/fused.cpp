// Runs a group of element-wise operations. payload: a Fused. All operands have one shape; an output may alias an input
// that no later step reads.
#include "kernels/fused.hpp"

#include "kernels/walk.hpp"

namespace rille::kernels::RILLE_ISA {

static void step_row(const Fused::Step& step, char* const* place, const int64_t* stride, int64_t n) {
  const RowAnswer& a = step.answer;
  char* p[4];
  int64_t s[4];
  double number = a.number;
  bool half = false;
  for (int k = 0; k < a.operands; ++k) {
    const int at = step.place[k];
    p[k] = at < 0 ? reinterpret_cast<char*>(&number) : place[at];
    s[k] = at < 0 ? 0 : stride[at];
    half = half || (!a.raw && is_half(step.dtype[k]));
  }
  const Row row = reinterpret_cast<Row>(a.row);
  if (!half) row(p, s, n, a.numbers);
  else half_rows(step.dtype, a.operands, p, s, n, row, a.numbers);
}

void fused(const Call& c) {
  constexpr int most = Fused::most_operands;
  const auto& program = *static_cast<const Fused*>(c.payload);
  const int outside = c.n_in + c.n_out;
  const View* views[most] = {};
  for (int k = 0; k < outside; ++k) views[k] = k < c.n_in ? &c.in[k] : &c.out[k - c.n_in];
  const auto nest = make_nest<most>(views, outside);
  for_rows(
      c, nest,
      [&](const int64_t* at, int64_t n) {
        alignas(64) char memory[Fused::most_pieces][Fused::piece * 8];
        char* place[most + Fused::most_pieces];
        int64_t stride[most + Fused::most_pieces];
        for (int k = 0; k < program.n_pieces; ++k) {
          place[outside + k] = memory[k];
          stride[outside + k] = 1;
        }
        for (int k = 0; k < outside; ++k) stride[k] = nest.inner_stride[k];
        for (int64_t first = 0; first < n; first += Fused::piece) {
          const int64_t m = n - first < Fused::piece ? n - first : Fused::piece;
          for (int k = 0; k < outside; ++k)
            place[k] =
                views[k]->template ptr<char>() + (at[k] + first * stride[k]) * int64_t(size_bytes(views[k]->dtype));
          for (int k = 0; k < program.n_steps; ++k) step_row(program.steps[k], place, stride, m);
        }
      },
      outside);
}

}  // namespace rille::kernels::RILLE_ISA
