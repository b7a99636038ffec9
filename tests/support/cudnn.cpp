// libcudnn.so.9 for tests: convolutions by definition, run on the stand-in driver's stream. Its heuristic also offers
// unacceptable algorithms: one with nondeterministic results, one that rounds to half, one that needs too much memory;
// running one of these fails. Half types are summed in f32, on tensor cores or not at all.
#include <array>
#include <vector>

#include "library.hpp"
#include "runtime/compute/device/cuda/dnn.hpp"

namespace {

using namespace rille::device::cuda::dnn;
constexpr int good_algorithm = 5, declined = 3000, bad = 2000;
constexpr int large_algorithm = 6;
constexpr std::size_t work_bytes = 1 << 13, large_bytes = 40 << 20;

struct Tensor {
  int type = 0, size[4] = {}, step[4] = {};
};
struct Filter {
  int type = 0, format = 0, size[4] = {};
};
struct How {
  int pad[2] = {}, stride[2] = {}, dilation[2] = {}, mode = 0, compute = 0, groups = 1, math = 0;
};
struct Handle {
  void* stream = nullptr;
};

struct Geometry {
  Tensor x, y;
  Filter w;
  How how;
};

template <class D>
D& of(void* d) {
  return *static_cast<D*>(d);
}

// Calls each(index of x, of w, of y) for all index triples of the convolution.
template <class F>
void meet(const Geometry& g, const F& each) {
  const auto& w = g.w.size;
  const long long last = g.w.format == channels_last;
  const long long step[4] = {1LL * w[1] * w[2] * w[3], last ? 1 : 1LL * w[2] * w[3], last ? 1LL * w[3] * w[1] : w[3],
                             last ? w[1] : 1};
  const int outs = w[0] / g.how.groups;
  for (int n = 0; n < g.y.size[0]; ++n)
    for (int k = 0; k < w[0]; ++k)
      for (int i = 0; i < g.y.size[2]; ++i)
        for (int j = 0; j < g.y.size[3]; ++j)
          for (int c = 0; c < w[1]; ++c)
            for (int r = 0; r < w[2]; ++r)
              for (int s = 0; s < w[3]; ++s) {
                const int h = i * g.how.stride[0] - g.how.pad[0] + r * g.how.dilation[0];
                const int v = j * g.how.stride[1] - g.how.pad[1] + s * g.how.dilation[1];
                if (h < 0 || v < 0 || h >= g.x.size[2] || v >= g.x.size[3]) continue;
                const int channel = k / outs * w[1] + c;
                each(
                    1LL * n * g.x.step[0] + 1LL * channel * g.x.step[1] + 1LL * h * g.x.step[2] + 1LL * v * g.x.step[3],
                    k * step[0] + c * step[1] + r * step[2] + s * step[3],
                    1LL * n * g.y.step[0] + 1LL * k * g.y.step[1] + 1LL * i * g.y.step[2] + 1LL * j * g.y.step[3]);
              }
}

// The library reads the layout from the strides, and for dimensions of size one expects the strides of a packed tensor.
bool packed_ones(const Tensor& t) {
  for (const auto& order : {std::array{3, 2, 1, 0}, std::array{1, 3, 2, 0}}) {
    int step = 1;
    bool good = true;
    for (const int d : order) {
      good = good && (t.size[d] != 1 || t.step[d] == step);
      step *= t.size[d];
    }
    if (good) return true;
  }
  return false;
}

int geometry(void* x, void* w, void* how, void* y, Geometry& g) {
  g = {of<Tensor>(x), of<Tensor>(y), of<Filter>(w), of<How>(how)};
  const bool same = g.x.type == g.y.type && g.x.type == g.w.type && g.how.mode == correlation &&
                    g.x.size[1] == g.w.size[1] * g.how.groups && g.y.size[1] == g.w.size[0] &&
                    g.x.size[0] == g.y.size[0];
  if (!same || !packed_ones(g.x) || !packed_ones(g.y)) return bad;
  for (int k = 0; k < 2; ++k) {
    const int reach = (g.w.size[2 + k] - 1) * g.how.dilation[k] + 1;
    if (g.y.size[2 + k] != (g.x.size[2 + k] + 2 * g.how.pad[k] - reach) / g.how.stride[k] + 1) return bad;
  }
  if (g.x.type == real_f32 || g.x.type == real_f64) return 0;
  const bool half = (g.x.type == real_f16 || g.x.type == real_bf16) && g.how.compute == real_f32;
  return half && g.how.math == math_tensor && !rille::test::declines_half() ? 0 : declined;
}

int offer(void* x, void* w, void* how, void* y, int wanted, int* found, Choice* out) {
  Geometry g;
  if (const int no = geometry(x, w, how, y, g); no) return no;
  const int math = g.how.math;
  const char* const large = std::getenv("RILLE_TEST_LARGE_SCRATCH");  // of another good algorithm, offered first
  const Choice choices[] = {{large_algorithm, large ? 0 : 3000, -1, large ? large_bytes : 0, deterministic, math, {}},
                            {1, 3000, -1, 0, deterministic, math, {}},
                            {0, 0, -1, 0, 0, math, {}},
                            {2, 0, -1, 0, deterministic, math_converts, {}},
                            {3, 0, -1, std::size_t(1) << 40, deterministic, math, {}},
                            {good_algorithm, 0, -1, work_bytes, deterministic, math, {}}};
  for (*found = 0; *found < wanted && *found < 6; ++*found) out[*found] = choices[*found];
  return 0;
}

// `written`: the written operand among x, w, y; the other two are read. Sums in double, in the order of the loops.
template <class T>
void convolve(const Geometry& g, int written, const void* const (&operand)[3], void* to) {
  const bool rounds = g.x.type == real_f32 && g.how.math == math_default;
  const auto read = [&](int which, long long at) {
    const double value = double(static_cast<const T*>(operand[which])[at]);
    return rounds ? rille::test::to_tf32(value) : value;
  };
  std::vector<double> sums;
  std::vector<char> inside;
  const auto place = [&](long long at) -> double& {
    if (std::size_t(at) >= sums.size()) sums.resize(std::size_t(at) + 1), inside.resize(sums.size());
    inside[std::size_t(at)] = 1;
    return sums[std::size_t(at)];
  };
  if (written == 1) {
    for (long long i = 0; i < 1LL * g.w.size[0] * g.w.size[1] * g.w.size[2] * g.w.size[3]; ++i) place(i);
  } else {
    const Tensor& t = written == 0 ? g.x : g.y;
    for (int n = 0; n < t.size[0]; ++n)
      for (int c = 0; c < t.size[1]; ++c)
        for (int h = 0; h < t.size[2]; ++h)
          for (int w = 0; w < t.size[3]; ++w)
            place(1LL * n * t.step[0] + 1LL * c * t.step[1] + 1LL * h * t.step[2] + 1LL * w * t.step[3]);
  }
  meet(g, [&](long long x, long long w, long long y) {
    const long long at[3] = {x, w, y};
    const int a = written == 0 ? 1 : 0, b = written == 2 ? 1 : 2;
    place(at[written]) += read(a, at[a]) * read(b, at[b]);
  });
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (inside[i]) static_cast<T*>(to)[i] = T(sums[i]);
}

// Calls f(a number of that type).
template <class F>
void typed(int type, const F& f) {
  switch (type) {
    case real_f64: return f(double());
    case real_f16: return f(rille::test::Half());
    case real_bf16: return f(rille::test::Brain());
    default: return f(float());
  }
}

int run(void* handle, const Geometry& g, int written, std::array<const void*, 3> operand, void* to, int algorithm,
        void* scratch, std::size_t bytes) {
  const bool fits =
      (algorithm == good_algorithm && bytes == work_bytes) || (algorithm == large_algorithm && bytes == large_bytes);
  if (!fits || !scratch) return bad;
  const std::function<void()> work = [=] {
    std::memset(scratch, 0xff, bytes);
    const void* const list[3] = {operand[0], operand[1], operand[2]};
    typed(g.x.type, [&](auto type) { convolve<decltype(type)>(g, written, list, to); });
  };
  return rille::test::library_call()(of<Handle>(handle).stream, &work);
}

template <class D>
int make(void** d) {
  *d = new D;
  return 0;
}
template <class D>
int drop(void* d) {
  delete static_cast<D*>(d);
  return 0;
}

}  // namespace

extern "C" {
#define API __attribute__((visibility("default"))) int

API cudnnCreate(void** handle) { return rille::test::library_call() ? make<Handle>(handle) : 1001; }
API cudnnDestroy(void* handle) { return drop<Handle>(handle); }
API cudnnSetStream(void* handle, void* stream) {
  of<Handle>(handle).stream = stream;
  return 0;
}
API cudnnCreateTensorDescriptor(void** d) { return make<Tensor>(d); }
API cudnnDestroyTensorDescriptor(void* d) { return drop<Tensor>(d); }
API cudnnSetTensor4dDescriptorEx(void* d, int type, int n, int c, int h, int w, int ns, int cs, int hs, int ws) {
  of<Tensor>(d) = {type, {n, c, h, w}, {ns, cs, hs, ws}};
  return n > 0 && c > 0 && h > 0 && w > 0 ? 0 : bad;
}
API cudnnCreateFilterDescriptor(void** d) { return make<Filter>(d); }
API cudnnDestroyFilterDescriptor(void* d) { return drop<Filter>(d); }
API cudnnSetFilter4dDescriptor(void* d, int type, int format, int k, int c, int h, int w) {
  of<Filter>(d) = {type, format, {k, c, h, w}};
  return 0;
}
API cudnnCreateConvolutionDescriptor(void** d) { return make<How>(d); }
API cudnnDestroyConvolutionDescriptor(void* d) { return drop<How>(d); }
API cudnnSetConvolution2dDescriptor(void* d, int ph, int pw, int sh, int sw, int dh, int dw, int mode, int compute) {
  of<How>(d) = {{ph, pw}, {sh, sw}, {dh, dw}, mode, compute, 1, math_default};
  return 0;
}
API cudnnSetConvolutionGroupCount(void* d, int groups) {
  of<How>(d).groups = groups;
  return 0;
}
API cudnnSetConvolutionMathType(void* d, int math) {
  of<How>(d).math = math;
  return 0;
}
API cudnnGetConvolutionForwardAlgorithm_v7(void*, void* x, void* w, void* how, void* y, int wanted, int* found,
                                           Choice* out) {
  return offer(x, w, how, y, wanted, found, out);
}
API cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, void* w, void* dy, void* how, void* dx, int wanted, int* found,
                                                Choice* out) {
  return offer(dx, w, how, dy, wanted, found, out);
}
API cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, void* x, void* dy, void* how, void* dw, int wanted, int* found,
                                                  Choice* out) {
  return offer(x, dw, how, dy, wanted, found, out);
}
API cudnnConvolutionForward(void* handle, const void*, void* xd, const void* x, void* wd, const void* w, void* how,
                            int algorithm, void* scratch, std::size_t bytes, const void*, void* yd, void* y) {
  Geometry g;
  if (const int no = geometry(xd, wd, how, yd, g); no) return no;
  return run(handle, g, 2, {x, w, nullptr}, y, algorithm, scratch, bytes);
}
API cudnnConvolutionBackwardData(void* handle, const void*, void* wd, const void* w, void* dyd, const void* dy,
                                 void* how, int algorithm, void* scratch, std::size_t bytes, const void*, void* dxd,
                                 void* dx) {
  Geometry g;
  if (const int no = geometry(dxd, wd, how, dyd, g); no) return no;
  return run(handle, g, 0, {nullptr, w, dy}, dx, algorithm, scratch, bytes);
}
API cudnnConvolutionBackwardFilter(void* handle, const void*, void* xd, const void* x, void* dyd, const void* dy,
                                   void* how, int algorithm, void* scratch, std::size_t bytes, const void*, void* dwd,
                                   void* dw) {
  Geometry g;
  if (const int no = geometry(xd, dwd, how, dyd, g); no) return no;
  return run(handle, g, 1, {x, nullptr, dy}, dw, algorithm, scratch, bytes);
}
// Adds a row of channels to each pixel.
API cudnnAddTensor(void* handle, const void*, void* ad, const void* a, const void*, void* cd, void* c) {
  const Tensor bias = of<Tensor>(ad), to = of<Tensor>(cd);
  if (bias.size[1] != to.size[1] || bias.size[0] * bias.size[2] * bias.size[3] != 1) return bad;
  const std::function<void()> work = [=] {
    for (int n = 0; n < to.size[0]; ++n)
      for (int k = 0; k < to.size[1]; ++k)
        for (int h = 0; h < to.size[2]; ++h)
          for (int w = 0; w < to.size[3]; ++w) {
            const long long at =
                1LL * n * to.step[0] + 1LL * k * to.step[1] + 1LL * h * to.step[2] + 1LL * w * to.step[3];
            typed(to.type, [&](auto type) {
              typedef decltype(type) T;
              T& sum = static_cast<T*>(c)[at];
              sum = T(double(sum) + double(static_cast<const T*>(a)[k]));
            });
          }
  };
  return rille::test::library_call()(of<Handle>(handle).stream, &work);
}

}  // extern "C"
