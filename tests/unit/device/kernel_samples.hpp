// The six sample kernels: their sources, run on the CPU against plain loops and compiled by NVRTC.
#pragma once

namespace rille::device::samples {

constexpr const char* saxpy = R"(
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
)";

constexpr const char* block_sum = R"(
template <typename T>
__global__ void block_sum(int n, const T* x, T* sums) {
  __shared__ T part[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? x[i] : T(0);
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d) part[t] += part[t + d];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = part[0];
}
)";

constexpr const char* tiled_matmul = R"(
#define TILE 16
__global__ void matmul(int m, int n, int k, const float* __restrict__ a, const float* __restrict__ b,
                       float* __restrict__ c) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int at = 0; at < k; at += TILE) {
    as[threadIdx.y][threadIdx.x] = row < m && at + threadIdx.x < k ? a[row * k + at + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = column < n && at + threadIdx.y < k ? b[(at + threadIdx.y) * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
)";

constexpr const char* histogram = R"(
__global__ void histogram(int n, const unsigned char* data, unsigned* counts) {
  extern __shared__ unsigned mine[];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&counts[i], mine[i]);
}
)";

constexpr const char* warp_scan = R"(
__device__ int scan_warp(int v) {
  for (int d = 1; d < 32; d *= 2) {
    int other = __shfl_up_sync(0xffffffffu, v, d);
    if ((threadIdx.x & 31) >= d) v += other;
  }
  return v;
}
__global__ void scan(const int* x, int* sums) {
  __shared__ int of_warp[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  int v = scan_warp(x[blockIdx.x * blockDim.x + threadIdx.x]);
  if (lane == 31) of_warp[warp] = v;
  __syncthreads();
  if (warp == 0) of_warp[lane] = scan_warp(lane < blockDim.x / 32 ? of_warp[lane] : 0);
  __syncthreads();
  sums[blockIdx.x * blockDim.x + threadIdx.x] = v + (warp ? of_warp[warp - 1] : 0);
}
)";

constexpr const char* stencil = R"(
__constant__ float weight[3];
__global__ void stencil(int width, int height, const float* in, float* out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float left = x > 0 ? in[y * width + x - 1] : 0.0f, right = x < width - 1 ? in[y * width + x + 1] : 0.0f;
  float up = y > 0 ? in[(y - 1) * width + x] : 0.0f, down = y < height - 1 ? in[(y + 1) * width + x] : 0.0f;
  out[y * width + x] = weight[0] * in[y * width + x] + weight[1] * (left + right) + weight[2] * (up + down);
}
)";

}  // namespace rille::device::samples
