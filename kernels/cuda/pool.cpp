// Launches of pooling: one thread for each output, or for gradients for each input.
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

// Whether the number of pixels of a plane, and an axis with its padding, fit into 31 bits.
bool plane_fits(const Call& c, const View& image, const View& pooled) {
  bool fits = image.shape[2] * image.shape[3] < int_end && pooled.shape[2] * pooled.shape[3] < int_end;
  for (int k = 0; k < 2; ++k) fits = fits && image.shape[2 + k] + 2 * c.attrs->i[4 + k] < int_end;
  if (!fits) c.fail("pooling: a CUDA device takes planes of up to 2^31 pixels, with padding");
  return fits;
}

Pooling pooling_of(const Call& c, const View& image, const View& pooled) {
  Pooling p{};
  p.planes = image.shape[0] * image.shape[1];
  for (int k = 0; k < 2; ++k) {
    p.size[k] = int(image.shape[2 + k]);
    p.outputs[k] = int(pooled.shape[2 + k]);
    p.window[k] = int(c.attrs->i[k]);
    p.stride[k] = int(c.attrs->i[2 + k]);
    p.padding[k] = int(c.attrs->i[4 + k]);
    p.dilation[k] = int(c.attrs->i[6 + k]);
  }
  p.padding_counts = c.attrs->f[0] == 1;
  p.adaptive = c.attrs->f[1] == 1;
  return p;
}

}  // namespace

void max_pool(const Call& c, Launcher& l, const Names& names) {
  if (c.out[0].count() == 0 || !plane_fits(c, c.in[0], c.out[0])) return;
  launch(l, name_in(names, c.in[0].dtype), grid_for(l, c.out[0].count()), {threads}, 0, c.in[0].data, c.out[0].data,
         c.out[1].data, pooling_of(c, c.in[0], c.out[0]));
}
void max_pool_grad(const Call& c, Launcher& l, const Names& names) {
  if (c.out[0].count() == 0 || !plane_fits(c, c.out[0], c.in[0])) return;
  launch(l, name_in(names, c.out[0].dtype), grid_for(l, c.out[0].count()), {threads}, 0, c.in[0].data, c.in[1].data,
         c.out[0].data, pooling_of(c, c.out[0], c.in[0]));
}
void avg_pool(const Call& c, Launcher& l, const Names& names) {
  if (c.out[0].count() == 0 || !plane_fits(c, c.in[0], c.out[0])) return;
  launch(l, name_in(names, c.in[0].dtype), grid_for(l, c.out[0].count()), {threads}, 0, c.in[0].data, c.out[0].data,
         pooling_of(c, c.in[0], c.out[0]));
}
void avg_pool_grad(const Call& c, Launcher& l, const Names& names) {
  if (c.out[0].count() == 0 || !plane_fits(c, c.out[0], c.in[0])) return;
  launch(l, name_in(names, c.out[0].dtype), grid_for(l, c.out[0].count()), {threads}, 0, c.in[0].data, c.out[0].data,
         pooling_of(c, c.out[0], c.in[0]));
}

}  // namespace rille::kernels::cuda
