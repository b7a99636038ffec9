// Convolutions by cuDNN 9, loaded at run time and declared here as in its headers: the functions of cuDNN 7, which
// cuDNN 9 still exports. If cuDNN is missing or has no deterministic algorithm, Rille's own kernels convolve.
//
// We use the first deterministic algorithm that the heuristic lists. Nothing is timed, so another process with the same
// library version chooses the same algorithm. f32 is computed in f32, or in TF32 if the operation allows it; half types
// are summed in f32. One Dnn per card; used on the lane.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/cuda/launcher.hpp"
#include "runtime/compute/device/cuda/driver.hpp"

namespace rille::device::cuda {

namespace dnn {
constexpr int real_f32 = 0, real_f64 = 1, real_f16 = 2, real_bf16 = 9;             // cudnnDataType_t
constexpr int math_default = 0, math_tensor = 1, math_converts = 2, math_fma = 3;  // cudnnMathType_t
constexpr int channels_first = 0, channels_last = 1, correlation = 1, deterministic = 1;
constexpr int algorithms_max = 10;
struct Choice {  // cudnnConvolution..AlgoPerf_t
  int algorithm, status;
  float time;
  std::size_t bytes;
  int determinism, math, reserved[3];
};

#define RILLE_DNN(X)                                                                                                  \
  X(cudnnCreate, (void** handle))                                                                                     \
  X(cudnnDestroy, (void* handle))                                                                                     \
  X(cudnnSetStream, (void* handle, CUstream))                                                                         \
  X(cudnnCreateTensorDescriptor, (void**))                                                                            \
  X(cudnnDestroyTensorDescriptor, (void*))                                                                            \
  X(cudnnSetTensor4dDescriptorEx,                                                                                     \
    (void*, int type, int n, int c, int h, int w, int n_step, int c_step, int h_step, int w_step))                    \
  X(cudnnCreateFilterDescriptor, (void**))                                                                            \
  X(cudnnDestroyFilterDescriptor, (void*))                                                                            \
  X(cudnnSetFilter4dDescriptor, (void*, int type, int format, int k, int c, int h, int w))                            \
  X(cudnnCreateConvolutionDescriptor, (void**))                                                                       \
  X(cudnnDestroyConvolutionDescriptor, (void*))                                                                       \
  X(cudnnSetConvolution2dDescriptor,                                                                                  \
    (void*, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int mode, int compute)) \
  X(cudnnSetConvolutionGroupCount, (void*, int groups))                                                               \
  X(cudnnSetConvolutionMathType, (void*, int math))                                                                   \
  X(cudnnGetConvolutionForwardAlgorithm_v7,                                                                           \
    (void* handle, void* x, void* w, void* how, void* y, int wanted, int* found, Choice*))                            \
  X(cudnnGetConvolutionBackwardDataAlgorithm_v7,                                                                      \
    (void* handle, void* w, void* dy, void* how, void* dx, int wanted, int* found, Choice*))                          \
  X(cudnnGetConvolutionBackwardFilterAlgorithm_v7,                                                                    \
    (void* handle, void* x, void* dy, void* how, void* dw, int wanted, int* found, Choice*))                          \
  X(cudnnConvolutionForward,                                                                                          \
    (void* handle, const void* alpha, void* x_desc, const void* x, void* w_desc, const void* w, void* how,            \
     int algorithm, void* scratch, std::size_t bytes, const void* beta, void* y_desc, void* y))                       \
  X(cudnnConvolutionBackwardData,                                                                                     \
    (void* handle, const void* alpha, void* w_desc, const void* w, void* dy_desc, const void* dy, void* how,          \
     int algorithm, void* scratch, std::size_t bytes, const void* beta, void* dx_desc, void* dx))                     \
  X(cudnnConvolutionBackwardFilter,                                                                                   \
    (void* handle, const void* alpha, void* x_desc, const void* x, void* dy_desc, const void* dy, void* how,          \
     int algorithm, void* scratch, std::size_t bytes, const void* beta, void* dw_desc, void* dw))                     \
  X(cudnnAddTensor,                                                                                                   \
    (void* handle, const void* alpha, void* a_desc, const void* a, const void* beta, void* c_desc, void* c))
}  // namespace dnn

// A convolution in cuDNN's terms.
struct DnnShape {
  kernels::cuda::Launcher::Convolved::What what{};
  int type = 0, weight_format = 0;
  int x[4] = {}, x_step[4] = {}, y[4] = {}, y_step[4] = {}, weight[4] = {};
  int stride[2] = {}, padding[2] = {}, dilation[2] = {}, groups = 1;
  bool tf32 = false;
};
// Converts to cuDNN's terms; false: cuDNN does not support these layouts or types.
bool dnn_shape(const kernels::cuda::Launcher::Convolved& c, DnnShape& shape);

class Dnn {
 public:
  ~Dnn();
  struct Way {
    int algorithm = 0, math = 0;
    std::size_t scratch_bytes = 0;
  };
  struct Plan {
    std::vector<Way> ways;  // the first one is used; each later one needs less memory
    std::string why;        // the reason if `ways` is empty
  };
  // The most scratch memory that one convolution may use; more on large GPUs. f16 and bf16 tensors are channels-first,
  // and cuDNN makes channels-last copies of them in scratch memory: 0.6 GB for ResNet-50 at batch size 256.
  static std::size_t scratch_most(std::size_t memory_bytes);

  explicit Dnn(std::size_t memory_bytes) : scratch_most_(scratch_most(memory_bytes)) {}
  // Finds an algorithm; null: cuDNN is missing or has no algorithm for this shape, see why(). `may_make`: a first use,
  // which allocates memory, is allowed. The card's context must be current.
  Plan* plan(const DnnShape& shape, bool may_make);
  // Call it if there is no memory for the first way: drops that way. false: no way is left.
  bool take_less(Plan& plan);
  bool run(const DnnShape& shape, const Plan& plan, const kernels::cuda::Launcher::Convolved& c, void* scratch,
           CUstream stream);
  const char* why() const { return why_.c_str(); }  // reason of the latest failure

 private:
  bool ready(bool may_make);
  std::string why_, why_not_;  // why_not_: why cuDNN is not available
  void* handle_ = nullptr;
  bool tried_ = false;
  std::size_t scratch_most_;
  std::unordered_map<std::string, Plan> plans_;
};

}  // namespace rille::device::cuda
