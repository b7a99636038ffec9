// Declarations: convolution, pooling, and normalisation over channels.
#include <algorithm>

#include "operation.hpp"

namespace rille::tensor::declared {

namespace {

struct Sizes {
  int n, c, h, w, o, kh, kw;
};

int windows(int size, int window, int stride, int padding, int dilation) {
  return (size + 2 * padding - (window - 1) * dilation - 1) / stride + 1;
}

Numbers convolved(const std::vector<Numbers>& in, Sizes z, const Convolution& how) {
  const int per = z.c / int(how.groups), out_per = z.o / int(how.groups);
  const auto s = [&](const Pair2& p, int k) { return int(p[k]); };
  const int oh = windows(z.h, z.kh, s(how.stride, 0), s(how.padding, 0), s(how.dilation, 0));
  const int ow = windows(z.w, z.kw, s(how.stride, 1), s(how.padding, 1), s(how.dilation, 1));
  Numbers out;
  for (int n = 0; n < z.n; ++n)
    for (int o = 0; o < z.o; ++o)
      for (int i = 0; i < oh; ++i)
        for (int j = 0; j < ow; ++j) {
          double sum = in.size() == 3 ? in[2][o] : 0;
          for (int c = 0; c < per; ++c)
            for (int p = 0; p < z.kh; ++p)
              for (int q = 0; q < z.kw; ++q) {
                const int y = i * s(how.stride, 0) - s(how.padding, 0) + p * s(how.dilation, 0);
                const int x = j * s(how.stride, 1) - s(how.padding, 1) + q * s(how.dilation, 1);
                if (y < 0 || x < 0 || y >= z.h || x >= z.w) continue;
                sum += in[0][((n * z.c + o / out_per * per + c) * z.h + y) * z.w + x] *
                       in[1][((o * per + c) * z.kh + p) * z.kw + q];
              }
          out.push_back(sum);
        }
  return out;
}

Operation convolution(const char* name, Sizes z, Convolution how, bool bias) {
  std::vector<Argument> arguments{{dims({z.n, z.c, z.h, z.w})}, {dims({z.o, z.c / how.groups, z.kh, z.kw})}};
  if (bias) arguments.push_back({dims({z.o})});
  return {name, arguments, [=](auto& t) { return conv2d(t[0], t[1], bias ? t[2] : Tensor{}, how); },
          [=](auto& in) { return convolved(in, z, how); }};
}

// f(the numbers of a window that lie inside, how many it has in all)
template <class F>
Numbers pooled(const Numbers& x, int planes, int h, int w, const Pooling& how, F f) {
  Numbers out;
  const auto s = [](const Pair2& p, int k) { return int(p[k]); };
  const int oh = windows(h, s(how.window, 0), s(how.stride, 0), s(how.padding, 0), s(how.dilation, 0));
  const int ow = windows(w, s(how.window, 1), s(how.stride, 1), s(how.padding, 1), s(how.dilation, 1));
  for (int p = 0; p < planes; ++p)
    for (int i = 0; i < oh; ++i)
      for (int j = 0; j < ow; ++j) {
        Numbers inside;
        for (int a = 0; a < how.window[0]; ++a)
          for (int b = 0; b < how.window[1]; ++b) {
            const int y = i * s(how.stride, 0) - s(how.padding, 0) + a * s(how.dilation, 0);
            const int v = j * s(how.stride, 1) - s(how.padding, 1) + b * s(how.dilation, 1);
            if (y >= 0 && v >= 0 && y < h && v < w) inside.push_back(x[(p * h + y) * w + v]);
          }
        out.push_back(f(inside, double(how.window[0] * how.window[1])));
      }
  return out;
}

double total(const Numbers& x) {
  double s = 0;
  for (double v : x) s += v;
  return s;
}

// Over [2, c, 6] with c channels in groups of `per`, with weight and bias.
Numbers normalised(const std::vector<Numbers>& in, int channels, int per, bool whole_batch) {
  Numbers out(in[0].size());
  const int s = 6, batch = 2;
  const auto at = [=](int n, int c, int i) { return std::size_t((n * channels + c) * s + i); };
  for (int n = 0; n < (whole_batch ? 1 : batch); ++n)
    for (int g = 0; g < channels / per; ++g) {
      const auto each = [&](auto f) {
        for (int m = n; m < (whole_batch ? batch : n + 1); ++m)
          for (int c = g * per; c < (g + 1) * per; ++c)
            for (int i = 0; i < s; ++i) f(at(m, c, i), c);
      };
      double count = 0, mean = 0, var = 0;
      each([&](auto k, int) { mean += in[0][k], ++count; });
      mean /= count;
      each([&](auto k, int) { var += (in[0][k] - mean) * (in[0][k] - mean); });
      var /= count;
      each([&](auto k, int c) { out[k] = (in[0][k] - mean) / std::sqrt(var + 1e-5) * in[1][c] + in[2][c]; });
    }
  return out;
}

}  // namespace

// Each pixel of x is spread by the window.
Numbers spread_out(const std::vector<Numbers>& in, Sizes z, const Convolution& how, int oh, int ow) {
  const int per = z.c / int(how.groups), out_per = z.o / int(how.groups);
  const auto s = [&](const Pair2& p, int k) { return int(p[k]); };
  Numbers out(std::size_t(z.n * z.o * oh * ow));
  for (std::size_t i = 0; i < out.size(); ++i)
    if (in.size() == 3) out[i] = in[2][i / std::size_t(oh * ow) % std::size_t(z.o)];
  for (int n = 0; n < z.n; ++n)
    for (int c = 0; c < z.c; ++c)
      for (int i = 0; i < z.h; ++i)
        for (int j = 0; j < z.w; ++j)
          for (int o = 0; o < out_per; ++o)
            for (int p = 0; p < z.kh; ++p)
              for (int q = 0; q < z.kw; ++q) {
                const int y = i * s(how.stride, 0) - s(how.padding, 0) + p * s(how.dilation, 0);
                const int x = j * s(how.stride, 1) - s(how.padding, 1) + q * s(how.dilation, 1);
                if (y < 0 || x < 0 || y >= oh || x >= ow) continue;
                out[((n * z.o + c / per * out_per + o) * oh + y) * ow + x] +=
                    in[0][((n * z.c + c) * z.h + i) * z.w + j] * in[1][((c * out_per + o) * z.kh + p) * z.kw + q];
              }
  return out;
}

Operation transposed(const char* name, Sizes z, Convolution how, Pair2 more, bool bias, int oh, int ow) {
  std::vector<Argument> arguments{{dims({z.n, z.c, z.h, z.w})}, {dims({z.c, z.o / how.groups, z.kh, z.kw})}};
  if (bias) arguments.push_back({dims({z.o})});
  return {name,
          arguments,
          [=](auto& t) { return conv_transpose2d(t[0], t[1], bias ? t[2] : Tensor{}, how, more); },
          [=](auto& in) { return spread_out(in, z, how, oh, ow); },
          true,
          floats,
          bias ? 2.0 : 1.0};
}

// [2, 2, 5, 4] as `rows` x `columns` pixels that are where `at` says: on the axis of n pixels, the i-th of m.
template <class At>
Numbers resized(const Numbers& x, int rows, int columns, At at) {
  Numbers out;
  const auto part = [](double place, int pixel) { return std::max(0.0, 1 - std::fabs(place - pixel)); };
  for (int p = 0; p < 4; ++p)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        const double y = std::min(at(i, 5, rows), 4.0), v = std::min(at(j, 4, columns), 3.0);
        double sum = 0;
        for (int a = 0; a < 5; ++a)
          for (int b = 0; b < 4; ++b) sum += part(y, a) * part(v, b) * x[std::size_t((p * 5 + a) * 4 + b)];
        out.push_back(sum);
      }
  return out;
}

Operation resizing(const char* name, Interpolation how, double (*at)(int i, int n, int m)) {
  return {name,
          {{dims({2, 2, 5, 4})}},
          [=](auto& t) { return interpolate(t[0], how); },
          [=](auto& in) { return resized(in[0], int(how.size[0]), int(how.size[1]), at); }};
}

std::vector<Operation> images() {
  std::vector<Operation> r;
  r.push_back(convolution("conv2d", {2, 3, 5, 4, 2, 3, 2}, {}, true));
  r.push_back(convolution("conv2d without bias", {1, 2, 4, 4, 3, 1, 1}, {}, false));
  r.push_back(convolution("conv2d, all options", {2, 4, 7, 6, 6, 3, 2}, {{2, 1}, {1, 2}, {2, 1}, 2}, true));
  r.push_back(convolution("conv2d of each channel", {1, 3, 5, 5, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 3}, true));
  r.push_back({"conv1d",
               {{dims({2, 3, 7})}, {dims({4, 3, 3})}, {dims({4})}},
               [](auto& t) {
                 return conv1d(t[0], t[1], t[2], {{1, 2}, {0, 1}});
               },
               [](auto& in) {
                 return convolved(in, {2, 3, 1, 7, 4, 1, 3}, {{1, 2}, {0, 1}});
               }});
  r.push_back(transposed("conv_transpose2d", {2, 3, 4, 3, 2, 3, 2}, {}, {0, 0}, true, 6, 4));
  r.push_back(transposed("conv_transpose2d without bias", {1, 2, 3, 3, 3, 2, 2}, {{2, 2}}, {0, 0}, false, 6, 6));
  r.push_back(transposed("conv_transpose2d, all options", {2, 4, 3, 4, 6, 3, 2}, {{2, 3}, {1, 2}, {2, 1}, 2}, {1, 2},
                         true, 8, 9));
  const auto nearest = [](int i, int n, int m) { return double(i * n / m); };
  r.push_back(resizing("interpolate nearest", {{8, 7}}, nearest));
  r.push_back(resizing("interpolate nearest, smaller", {{2, 3}}, nearest));
  r.push_back(resizing("interpolate bilinear", {{9, 6}, true},
                       [](int i, int n, int m) { return std::max(0.0, (i + 0.5) * n / m - 0.5); }));
  r.push_back(resizing("interpolate bilinear, smaller", {{3, 2}, true},
                       [](int i, int n, int m) { return std::max(0.0, (i + 0.5) * n / m - 0.5); }));
  r.push_back(resizing("interpolate between corners", {{7, 1}, true, true},
                       [](int i, int n, int m) { return m > 1 ? double(i) * (n - 1) / (m - 1) : 0.0; }));
  r.push_back(resizing("interpolate by a scale", {{12, 10}, true, false, {1 / 2.5, 1 / 2.5}},
                       [](int i, int, int) { return std::max(0.0, (i + 0.5) / 2.5 - 0.5); }));
  const Pooling plain{{2, 2}, {2, 2}}, odd{{3, 2}, {2, 1}, {1, 1}}, apart{{2, 2}, {1, 1}, {0, 0}, {2, 1}};
  const Argument image{dims({2, 2, 5, 4})};
  for (const auto& [name, how] :
       {std::pair{"max_pool2d", plain}, {"max_pool2d with padding", odd}, {"max_pool2d, apart", apart}}) {
    const Pooling h = how;
    r.push_back({name,
                 {image},
                 [h](auto& t) { return max_pool2d(t[0], h); },
                 [h](auto& in) {
                   return pooled(in[0], 4, 5, 4, h,
                                 [](auto x, double) { return *std::max_element(x.begin(), x.end()); });
                 }});
  }
  r.push_back(
      {"avg_pool2d",
       {image},
       [=](auto& t) { return avg_pool2d(t[0], odd); },
       [=](auto& in) { return pooled(in[0], 4, 5, 4, odd, [](auto x, double all) { return total(x) / all; }); }});
  r.push_back({"avg_pool2d without padding's zeros",
               {image},
               [=](auto& t) { return avg_pool2d(t[0], odd, false); },
               [=](auto& in) {
                 return pooled(in[0], 4, 5, 4, odd, [](auto x, double) { return total(x) / double(x.size()); });
               }});
  r.push_back({"adaptive_avg_pool2d",
               {image},
               [](auto& t) { return adaptive_avg_pool2d(t[0], 3, 2); },
               [](auto& in) {
                 Numbers out;
                 const int from[] = {0, 1, 3}, to[] = {2, 4, 5};
                 for (int p = 0; p < 4; ++p)
                   for (int i = 0; i < 3; ++i)
                     for (int j = 0; j < 2; ++j) {
                       Numbers inside;
                       for (int y = from[i]; y < to[i]; ++y)
                         for (int x = 2 * j; x < 2 * j + 2; ++x) inside.push_back(in[0][(p * 5 + y) * 4 + x]);
                       out.push_back(total(inside) / double(inside.size()));
                     }
                 return out;
               }});
  const std::vector<Argument> affine{{dims({2, 4, 6})}, {dims({4})}, {dims({4})}};
  r.push_back({"batch_norm", affine,
               [](auto& t) {
                 return batch_norm(t[0], {t[1], t[2], {}, {}});
               },
               [](auto& in) { return normalised(in, 4, 1, true); }, true, floats, 3});
  r.push_back({"batch_norm, evaluated",
               {affine[0], affine[1], affine[2], {dims({4}), -1, 1, false}, {dims({4}), 0.5, 2, false}},
               [](auto& t) {
                 return batch_norm(t[0], {t[1], t[2], t[3], t[4], false});
               },
               [](auto& in) {
                 Numbers out;
                 for (std::size_t i = 0; i < in[0].size(); ++i) {
                   const auto c = i / 6 % 4;
                   out.push_back((in[0][i] - in[3][c]) / std::sqrt(in[4][c] + 1e-5) * in[1][c] + in[2][c]);
                 }
                 return out;
               },
               true,
               floats,
               3});
  r.push_back({"group_norm", affine, [](auto& t) { return group_norm(t[0], 2, t[1], t[2]); },
               [](auto& in) { return normalised(in, 4, 2, false); }, true, floats, 3});
  return r;
}

}  // namespace rille::tensor::declared
