// Layer, root mean square and batch normalisation. Statistics and sums are f32 (f64 for f64 inputs).
#include "kernels/cuda/rows.h"

namespace rille::kernels::cuda {

// -- layer_norm: mean and variance in two passes; the second and third reading of a row come from the first-level cache
template <class T>
DEVICE void layer_norm(const T* in, const void* w, const void* b, int wide, T* out, Wide<T>* means, Wide<T>* rstds,
                       Long rows, Long n, int packed, double eps) {
  typedef Wide<T> C;
  constexpr int most = pack_of(sizeof(T));
  each_row(rows, [&](Long r) {
    const T* row = in + r * n;
    C sum = 0, squares = 0;
    each_column<most>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C x[V];
      load_wide<T, V>(row + j, x);
#pragma unroll
      for (int v = 0; v < V; ++v) sum += x[v];
    });
    const C mean = over_row<Plus>(sum) / C(n);
    each_column<most>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C x[V];
      load_wide<T, V>(row + j, x);
#pragma unroll
      for (int v = 0; v < V; ++v) squares += (x[v] - mean) * (x[v] - mean);
    });
    const C rstd = C(1) / sqrt(over_row<Plus>(squares) / C(n) + C(eps));
    each_column<most>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C x[V];
      load_wide<T, V>(row + j, x);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        x[v] = (x[v] - mean) * rstd;
        if (w) x[v] *= weight_at<T>(w, wide, j + v);
        if (b) x[v] += weight_at<T>(b, wide, j + v);
      }
      store_wide<T, V>(out + r * n + j, x);
    });
    if (threadIdx.x == 0) {
      means[r] = mean;
      rstds[r] = rstd;
    }
  });
}

// dx = rstd (gw - mean(gw) - xhat mean(gw xhat)), gw = g w. Without `means` it is rms_norm's gradient: xhat is x rstd,
// and mean(gw) is left out.
template <class T>
DEVICE void norm_grad(const T* g, const T* in, const void* w, int wide, const Wide<T>* means, const Wide<T>* rstds,
                      T* out,
                      Long rows, Long n, int packed) {
  typedef Wide<T> C;
  constexpr int most = pack_of(sizeof(T));
  each_row(rows, [&](Long r) {
    const C mean = means ? means[r] : C(0), rstd = rstds[r];
    C a = 0, b = 0;
    each_column<most>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C x[V], y[V];
      load_wide<T, V>(in + r * n + j, x);
      load_wide<T, V>(g + r * n + j, y);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const C gw = w ? y[v] * weight_at<T>(w, wide, j + v) : y[v];
        a += gw;
        b += gw * ((x[v] - mean) * rstd);
      }
    });
    a = means ? over_row<Plus>(a) / C(n) : C(0);
    b = over_row<Plus>(b) / C(n);
    each_column<most>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C x[V], y[V];
      load_wide<T, V>(in + r * n + j, x);
      load_wide<T, V>(g + r * n + j, y);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const C gw = w ? y[v] * weight_at<T>(w, wide, j + v) : y[v];
        x[v] = rstd * (gw - a - (x[v] - mean) * rstd * b);
      }
      store_wide<T, V>(out + r * n + j, x);
    });
  });
}

// Gradients of weight and bias. A block takes 64 columns and a share of the rows (blockIdx.y), 8 rows at once;
// norm_fold adds the parts [share][2][n].
template <class T>
DEVICE void norm_weights(const T* g, const T* in, const Wide<T>* means, const Wide<T>* rstds, Wide<T>* parts, Long rows,
                         Long n, Long each) {
  typedef Wide<T> C;
  __shared__ C dw[8][64];
  __shared__ C db[8][64];
  const Long j = Long(blockIdx.x) * 64 + threadIdx.x, first = blockIdx.y * each;
  const Long end = first + each < rows ? first + each : rows;
  C w = 0, b = 0;
  if (j < n) {
    for (Long r = first + threadIdx.y; r < end; r += 8) {
      const C y = widen(g[r * n + j]), x = widen(in[r * n + j]);
      w += y * ((x - (means ? means[r] : C(0))) * rstds[r]);
      b += y;
    }
  }
  dw[threadIdx.y][threadIdx.x] = w;
  db[threadIdx.y][threadIdx.x] = b;
  __syncthreads();
  if (threadIdx.y != 0 || j >= n) return;
#pragma unroll
  for (int k = 1; k < 8; ++k) {
    w += dw[k][threadIdx.x];
    b += db[k][threadIdx.x];
  }
  parts[(Long(blockIdx.y) * 2) * n + j] = w;
  parts[(Long(blockIdx.y) * 2 + 1) * n + j] = b;
}
template <class T> DEVICE void norm_fold(const Wide<T>* parts, void* w, void* b, int wide, Long shares, Long n) {
  const Long j = Long(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= n) return;
  Wide<T> dw = 0, db = 0;
  for (Long s = 0; s < shares; ++s) {
    dw += parts[(s * 2) * n + j];
    db += parts[(s * 2 + 1) * n + j];
  }
  if (w) put_weight<T>(w, wide, j, dw);
  if (b) put_weight<T>(b, wide, j, db);
}

template <class T>
DEVICE void rms_norm(const T* in, const void* w, int wide, T* out, Wide<T>* roots, Long rows, Long n, int packed,
                     double eps) {
  typedef Wide<T> C;
  constexpr int most = pack_of(sizeof(T));
  each_row(rows, [&](Long r) {
    C squares = 0;
    each_column<most>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C x[V];
      load_wide<T, V>(in + r * n + j, x);
#pragma unroll
      for (int v = 0; v < V; ++v) squares += x[v] * x[v];
    });
    const C root = C(1) / sqrt(over_row<Plus>(squares) / C(n) + C(eps));
    each_column<most>(n, packed, [&](auto count, Long j) {
      constexpr int V = decltype(count)::value;
      C x[V];
      load_wide<T, V>(in + r * n + j, x);
#pragma unroll
      for (int v = 0; v < V; ++v) x[v] = x[v] * root * (w ? weight_at<T>(w, wide, j + v) : C(1));
      store_wide<T, V>(out + r * n + j, x);
    });
    if (threadIdx.x == 0) roots[r] = root;
  });
}

// -- batch_norm of [batch, channels, s]: blockIdx.x is the channel, blockIdx.y a share of its batch * s elements
template <class Body> DEVICE void each_of_channel(const Plane& p, const Body& body) {
  const Long first = blockIdx.y * p.each, end = first + p.each < p.count ? first + p.each : p.count;
  for (Long e = first + threadIdx.x; e < end; e += blockDim.x) {
    const Long image = p.by_s.divisor ? Long(divide(unsigned(e), p.by_s)) : e / p.s;
    body((image * p.channels + blockIdx.x) * p.s + (e - image * p.s));
  }
}
// Sums of x - first and of its square. `first` is the channel's first element: like any sample it is near the mean.
template <class T> DEVICE void batch_sums(const T* in, Wide<T>* parts, const Plane& p) {
  typedef Wide<T> C;
  const C first = widen(in[blockIdx.x * p.s]);
  C sum = 0, squares = 0;
  each_of_channel(p, [&](Long at) {
    const C x = widen(in[at]) - first;
    sum += x;
    squares += x * x;
  });
  sum = over_row<Plus>(sum);
  squares = over_row<Plus>(squares);
  if (threadIdx.x) return;
  parts[(Long(blockIdx.y) * p.channels + blockIdx.x) * 2] = sum;
  parts[(Long(blockIdx.y) * p.channels + blockIdx.x) * 2 + 1] = squares;
}
template <class C> DEVICE void fold_channel(const C* parts, const Plane& p, double& a, double& b) {
  a = b = 0;
  for (unsigned s = 0; s < gridDim.y; ++s) {
    a += double(parts[(Long(s) * p.channels + blockIdx.x) * 2]);
    b += double(parts[(Long(s) * p.channels + blockIdx.x) * 2 + 1]);
  }
}
template <class T>
DEVICE void batch_norm(const T* in, const Wide<T>* parts, const void* w, const void* b, int wide, T* out,
                       Wide<T>* means,
                       Wide<T>* variances, const Plane& p, double eps) {
  typedef Wide<T> C;
  double sum, squares;
  fold_channel(parts, p, sum, squares);
  const double n = double(p.count);
  const C mean = C(double(widen(in[blockIdx.x * p.s])) + sum / n);
  const double spread = (squares - sum * sum / n) / n;
  const C variance = C(spread > 0 ? spread : spread != spread ? spread : 0.0), rstd = C(1) / sqrt(variance + C(eps));
  const C scale = w ? weight_at<T>(w, wide, blockIdx.x) * rstd : rstd;
  const C shift = b ? weight_at<T>(b, wide, blockIdx.x) : C(0);
  each_of_channel(p, [&](Long at) { out[at] = narrow<T>((widen(in[at]) - mean) * scale + shift); });
  if (threadIdx.x || blockIdx.y) return;
  means[blockIdx.x] = mean;
  variances[blockIdx.x] = variance;
}
template <class T>
DEVICE void batch_grad_sums(const T* g, const T* in, const Wide<T>* means, Wide<T>* parts, const Plane& p) {
  typedef Wide<T> C;
  const C mean = means[blockIdx.x];
  C sum = 0, product = 0;
  each_of_channel(p, [&](Long at) {
    const C y = widen(g[at]);
    sum += y;
    product += y * (widen(in[at]) - mean);
  });
  sum = over_row<Plus>(sum);
  product = over_row<Plus>(product);
  if (threadIdx.x) return;
  parts[(Long(blockIdx.y) * p.channels + blockIdx.x) * 2] = sum;
  parts[(Long(blockIdx.y) * p.channels + blockIdx.x) * 2 + 1] = product;
}
// dx = w rstd (g - mean(g) - (x - mean) rstd^2 mean(g (x - mean)))
template <class T>
DEVICE void batch_norm_grad(const T* g, const T* in, const Wide<T>* parts, const void* w, int wide,
                            const Wide<T>* means,
                            const Wide<T>* variances, T* dx, void* dw, void* db, const Plane& p, double eps) {
  typedef Wide<T> C;
  double sum, product;
  fold_channel(parts, p, sum, product);
  const C mean = means[blockIdx.x], rstd = C(1) / sqrt(variances[blockIdx.x] + C(eps));
  const C scale = w ? weight_at<T>(w, wide, blockIdx.x) * rstd : rstd;
  const C g_mean = C(sum / double(p.count)), slope = C(product / double(p.count)) * rstd * rstd;
  each_of_channel(p, [&](Long at) {
    dx[at] = narrow<T>(scale * (widen(g[at]) - g_mean - (widen(in[at]) - mean) * slope));
  });
  if (threadIdx.x || blockIdx.y) return;
  if (dw) put_weight<T>(dw, wide, blockIdx.x, C(product * double(rstd)));
  if (db) put_weight<T>(db, wide, blockIdx.x, C(sum));
}

#define NORMS(op, name, T)                                                                                            \
  ENTRY(layer_norm_##name, 512, const T* in, const void* w, const void* b, int wide, T* out, Wide<T>* means,         \
        Wide<T>* rstds, Long rows, Long n, int packed, double eps) {                                                  \
    layer_norm<T>(in, w, b, wide, out, means, rstds, rows, n, packed, eps);                                           \
  }                                                                                                                   \
  ENTRY(norm_grad_##name, 512, const T* g, const T* in, const void* w, int wide, const Wide<T>* means,               \
        const Wide<T>* rstds, T* out, Long rows, Long n, int packed) {                                                \
    norm_grad<T>(g, in, w, wide, means, rstds, out, rows, n, packed);                                                 \
  }                                                                                                                   \
  ENTRY(norm_weights_##name, 512, const T* g, const T* in, const Wide<T>* means, const Wide<T>* rstds,                \
        Wide<T>* parts, Long rows, Long n, Long each) {                                                               \
    norm_weights<T>(g, in, means, rstds, parts, rows, n, each);                                                       \
  }                                                                                                                   \
  ENTRY(norm_fold_##name, 256, const Wide<T>* parts, void* w, void* b, int wide, Long shares, Long n) {               \
    norm_fold<T>(parts, w, b, wide, shares, n);                                                                       \
  }                                                                                                                   \
  ENTRY(rms_norm_##name, 512, const T* in, const void* w, int wide, T* out, Wide<T>* roots, Long rows, Long n,       \
        int packed, double eps) {                                                                                     \
    rms_norm<T>(in, w, wide, out, roots, rows, n, packed, eps);                                                       \
  }                                                                                                                   \
  ENTRY(batch_sums_##name, 256, const T* in, Wide<T>* parts, GIVEN Plane p) { batch_sums<T>(in, parts, p); }          \
  ENTRY(batch_norm_##name, 256, const T* in, const Wide<T>* parts, const void* w, const void* b, int wide, T* out,    \
        Wide<T>* means, Wide<T>* variances, GIVEN Plane p, double eps) {                                              \
    batch_norm<T>(in, parts, w, b, wide, out, means, variances, p, eps);                                              \
  }                                                                                                                   \
  ENTRY(batch_grad_sums_##name, 256, const T* g, const T* in, const Wide<T>* means, Wide<T>* parts, GIVEN Plane p) {  \
    batch_grad_sums<T>(g, in, means, parts, p);                                                                       \
  }                                                                                                                   \
  ENTRY(batch_norm_grad_##name, 256, const T* g, const T* in, const Wide<T>* parts, const void* w, int wide,          \
        const Wide<T>* means, const Wide<T>* variances, T* dx, void* dw, void* db, GIVEN Plane p, double eps) {       \
    batch_norm_grad<T>(g, in, parts, w, wide, means, variances, dx, dw, db, p, eps);                                  \
  }
FOR_FLOATS(NORMS, norms)

}  // namespace rille::kernels::cuda
