#include "runtime/compute/device/cuda/dnn.hpp"

#include <algorithm>
#include <climits>

#include "runtime/compute/device/cuda/symbols.hpp"

namespace rille::device::cuda {

namespace {

using namespace dnn;
using Convolved = kernels::cuda::Launcher::Convolved;

struct Library {
#define RILLE_MEMBER(name, parameters) int(*name) parameters = nullptr;
  RILLE_DNN(RILLE_MEMBER)
#undef RILLE_MEMBER
  bool whole = false;

  Library() {
    Symbols found(CudaPart::cudnn);
#define RILLE_FIND(name, parameters) found.find(name, #name);
    RILLE_DNN(RILLE_FIND)
#undef RILLE_FIND
    whole = found.whole();
  }
};

const Library& library() {
  static const Library l;
  return l;
}

// cuDNN's descriptors of one convolution; the destructor destroys them.
struct Described {
  const Library& l = library();
  void *x = nullptr, *y = nullptr, *weight = nullptr, *how = nullptr, *bias = nullptr;
  bool good = false;

  Described(const DnnShape& s, int math) {
    const auto& w = s.weight;
    good = !l.cudnnCreateTensorDescriptor(&x) && !l.cudnnCreateTensorDescriptor(&y) &&
           !l.cudnnCreateTensorDescriptor(&bias) && !l.cudnnCreateFilterDescriptor(&weight) &&
           !l.cudnnCreateConvolutionDescriptor(&how) && tensor(x, s.type, s.x, s.x_step) &&
           tensor(y, s.type, s.y, s.y_step) &&
           !l.cudnnSetFilter4dDescriptor(weight, s.type, s.weight_format, w[0], w[1], w[2], w[3]) &&
           !l.cudnnSetConvolution2dDescriptor(how, s.padding[0], s.padding[1], s.stride[0], s.stride[1], s.dilation[0],
                                              s.dilation[1], correlation, s.type == real_f64 ? real_f64 : real_f32) &&
           !l.cudnnSetConvolutionGroupCount(how, s.groups) && !l.cudnnSetConvolutionMathType(how, math);
    const int size[4] = {1, s.y[1], 1, 1}, step[4] = {s.y[1], 1, 1, 1};
    good = good && tensor(bias, s.type, size, step);
  }
  ~Described() {
    for (void* t : {x, y, bias})
      if (t) l.cudnnDestroyTensorDescriptor(t);
    if (weight) l.cudnnDestroyFilterDescriptor(weight);
    if (how) l.cudnnDestroyConvolutionDescriptor(how);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  bool tensor(void* to, int type, const int (&size)[4], const int (&step)[4]) {
    return !l.cudnnSetTensor4dDescriptorEx(to, type, size[0], size[1], size[2], size[3], step[0], step[1], step[2],
                                           step[3]);
  }
};

int type_of(DType t) {
  switch (t) {
    case DType::f32: return real_f32;
    case DType::f64: return real_f64;
    case DType::f16: return real_f16;
    case DType::bf16: return real_bf16;
    default: return -1;
  }
}

// Reads sizes and strides. The stride of a dimension of size 1 has no meaning, but cuDNN infers the layout from it: we
// set it as in a packed tensor, with channels last if the other strides have them last.
bool numbers(const kernels::View& v, int (&size)[4], int (&step)[4]) {
  if (v.shape.n != 4) return false;
  std::int64_t reach = 0;
  for (int d = 0; d < 4; ++d) {
    reach += (v.shape[d] - 1) * v.strides[d];
    if (v.strides[d] <= 0 && v.shape[d] > 1) return false;
    size[d] = int(v.shape[d]);
    step[d] = int(v.strides[d]);
  }
  const bool last = size[1] > 1 && step[1] == 1 && (size[2] > 1 || size[3] > 1);
  std::int64_t packed = 1;
  for (const int d : {3, 2, 1, 0}) {
    const int dim = d == 0 || !last ? d : d == 3 ? 1 : d + 1;  // memory order N C H W, or N H W C if `last`
    if (size[dim] == 1) step[dim] = int(packed);
    packed *= size[dim];
  }
  return reach < INT_MAX && packed < INT_MAX;
}

// The tensor format: packed with channels first, or with channels last; -1: neither.
int format_of(const kernels::View& w) {
  const auto packed = [&](const int(&order)[4]) {
    std::int64_t step = 1;
    for (int i = 3; i >= 0; --i) {
      const int d = order[i];
      if (w.shape[d] > 1 && w.strides[d] != step) return false;
      step *= w.shape[d];
    }
    return true;
  };
  return packed({0, 1, 2, 3}) ? channels_first : packed({0, 2, 3, 1}) ? channels_last : -1;
}

int math_of(const DnnShape& s) {
  if (s.type == real_f16 || s.type == real_bf16) return math_tensor;
  return s.tf32 ? math_default : math_fma;
}

// Takes from the heuristic's list the algorithms that are deterministic and do not reduce precision unasked, and of
// these only those that need less scratch memory than the ones before.
void choose(const DnnShape& s, const Choice* choices, int count, std::size_t most, Dnn::Plan& plan) {
  for (int i = 0; i < count; ++i) {
    const auto& c = choices[i];
    const bool exact = c.math == math_fma || c.math == math_default;
    const bool allowed = math_of(s) == math_fma ? exact : c.math != math_converts;
    if (c.status != 0 || c.determinism != deterministic || !allowed || c.bytes > most) continue;
    if (!plan.ways.empty() && c.bytes >= plan.ways.back().scratch_bytes) continue;
    plan.ways.push_back({c.algorithm, math_of(s) == math_fma ? math_fma : c.math, c.bytes});
  }
  if (plan.ways.empty())
    plan.why = "of " + std::to_string(count) +
               " algorithms none gives the same bits each time, is exact enough, and "
               "wants at most " +
               std::to_string(most >> 20) + " MiB";
}

}  // namespace

bool dnn_shape(const Convolved& c, DnnShape& s) {
  s.what = c.what;
  s.type = type_of(c.x->dtype);
  s.weight_format = format_of(*c.weight);
  int ignored[4];
  if (s.type < 0 || s.weight_format < 0 || c.y->dtype != c.x->dtype || c.weight->dtype != c.x->dtype) return false;
  if (!numbers(*c.x, s.x, s.x_step) || !numbers(*c.y, s.y, s.y_step) || !numbers(*c.weight, s.weight, ignored))
    return false;
  if (c.bias && c.bias->data && (c.bias->dtype != c.y->dtype || (c.bias->shape[0] > 1 && c.bias->strides[0] != 1)))
    return false;
  for (int k = 0; k < 2; ++k) {
    s.stride[k] = int(c.how[k]);
    s.padding[k] = int(c.how[2 + k]);
    s.dilation[k] = int(c.how[4 + k]);
  }
  s.groups = int(c.how[6]);
  s.tf32 = c.tf32 && c.x->dtype == DType::f32;
  return true;
}

bool Dnn::ready(bool may_make) {
  why_ = "the variable RILLE_CUDA_WITHOUT excludes it";
  if (left_out(CudaPart::cudnn)) return false;
  if (!tried_ && may_make) {
    tried_ = true;
    if (!library().whole) {
      const auto& loaded = load_part(CudaPart::cudnn);
      why_not_ = loaded.handle ? "the library lacks a function that Rille needs" : loaded.why;
    } else if (const int said = library().cudnnCreate(&handle_)) {
      why_not_ = "cudnnCreate: status " + std::to_string(said);
      handle_ = nullptr;
    }
  }
  why_ = why_not_;
  return handle_ != nullptr;
}

std::size_t Dnn::scratch_most(std::size_t memory_bytes) { return std::max<std::size_t>(256u << 20, memory_bytes / 32); }

bool Dnn::take_less(Plan& plan) {
  const std::size_t wanted = plan.ways[0].scratch_bytes;
  plan.ways.erase(plan.ways.begin());
  why_ = "there is no memory for the " + std::to_string(wanted >> 20) + " MiB that an algorithm works with";
  if (plan.ways.empty()) plan.why = why_;
  else why_ += ": another algorithm that needs less is used";
  return !plan.ways.empty();
}

Dnn::~Dnn() {
  if (handle_) library().cudnnDestroy(handle_);
}

Dnn::Plan* Dnn::plan(const DnnShape& s, bool may_make) {
  if (!ready(may_make)) return nullptr;
  std::string key;
  const auto add = [&](const auto& numbers) { key.append(reinterpret_cast<const char*>(&numbers), sizeof numbers); };
  const int single[] = {int(s.what), s.type, s.weight_format, s.groups, s.tf32};
  add(single), add(s.x), add(s.x_step), add(s.y), add(s.y_step), add(s.weight);
  add(s.stride), add(s.padding), add(s.dilation);
  if (const auto found = plans_.find(key); found != plans_.end()) {
    why_ = found->second.why;
    return found->second.ways.empty() ? nullptr : &found->second;
  }
  why_ = "its first use came during the capture of a CUDA graph";
  if (!may_make) return nullptr;
  Plan& plan = plans_[key];
  Described d(s, math_of(s));
  Choice choices[algorithms_max] = {};
  int count = 0;
  const Library& l = d.l;
  const int said =
      !d.good                           ? 1
      : s.what == Convolved::forward    ? l.cudnnGetConvolutionForwardAlgorithm_v7(handle_, d.x, d.weight, d.how, d.y,
                                                                                   algorithms_max, &count, choices)
      : s.what == Convolved::input_grad ? l.cudnnGetConvolutionBackwardDataAlgorithm_v7(
                                              handle_, d.weight, d.y, d.how, d.x, algorithms_max, &count, choices)
                                        : l.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                                              handle_, d.x, d.y, d.how, d.weight, algorithms_max, &count, choices);
  if (said) plan.why = "no algorithm: status " + std::to_string(said);
  else choose(s, choices, count, scratch_most_, plan);
  why_ = plan.why;
  return plan.ways.empty() ? nullptr : &plan;
}

bool Dnn::run(const DnnShape& s, const Plan& plan, const Convolved& c, void* scratch, CUstream stream) {
  const Way& way = plan.ways[0];
  Described d(s, way.math);
  const Library& l = d.l;
  why_ = "its descriptors could not be created";
  if (!d.good || l.cudnnSetStream(handle_, stream) != 0) return false;
  const auto ran = [&](const char* what, int said) {
    if (said) why_ = std::string(what) + ": status " + std::to_string(said);
    return said == 0;
  };
  const float one = 1, none = 0;
  const double one_wide = 1, none_wide = 0;
  const bool wide = s.type == real_f64;
  const void* alpha = wide ? static_cast<const void*>(&one_wide) : &one;
  const void* beta = wide ? static_cast<const void*>(&none_wide) : &none;
  const std::size_t bytes = way.scratch_bytes;
  switch (s.what) {
    case Convolved::forward:
      if (!ran("cudnnConvolutionForward",
               l.cudnnConvolutionForward(handle_, alpha, d.x, c.x->data, d.weight, c.weight->data, d.how, way.algorithm,
                                         scratch, bytes, beta, d.y, c.y->data)))
        return false;
      return !c.bias || !c.bias->data ||
             ran("cudnnAddTensor", l.cudnnAddTensor(handle_, alpha, d.bias, c.bias->data, alpha, d.y, c.y->data));
    case Convolved::input_grad:
      return ran("cudnnConvolutionBackwardData",
                 l.cudnnConvolutionBackwardData(handle_, alpha, d.weight, c.weight->data, d.y, c.y->data, d.how,
                                                way.algorithm, scratch, bytes, beta, d.x, c.x->data));
    default:
      return ran("cudnnConvolutionBackwardFilter",
                 l.cudnnConvolutionBackwardFilter(handle_, alpha, d.x, c.x->data, d.y, c.y->data, d.how, way.algorithm,
                                                  scratch, bytes, beta, d.weight, c.weight->data));
  }
}

}  // namespace rille::device::cuda
