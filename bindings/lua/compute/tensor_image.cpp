// Tensor methods for images and sequences: convolution, pooling, normalization over channels, Fourier transforms.
#include <array>
#include <cmath>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

namespace {

using tensor::Pair2;

// Reads the option `key` = n or {height, width}; returns `otherwise` if the script did not give the option.
Pair2 option_pair(lua_State* L, int index, const char* key, Pair2 otherwise) {
  if (!lua_istable(L, index)) return otherwise;
  lua_getfield(L, index, key);
  Pair2 pair = otherwise;
  if (lua_istable(L, -1)) {
    if (lua_objlen(L, -1) != 2) raise_invalid(L, fmt::format("{}: expected a number or {{height, width}}", key));
    for (int k = 0; k < 2; ++k) {
      lua_rawgeti(L, -1, k + 1);
      pair[static_cast<std::size_t>(k)] = check_integer(L, -1, key);
      lua_pop(L, 1);
    }
  } else if (!lua_isnil(L, -1)) {
    pair[0] = pair[1] = check_integer(L, -1, key);
  }
  lua_pop(L, 1);
  return pair;
}

// Reads the option scale = n or {height, width}; returns zeros if the script did not give it.
std::array<double, 2> option_scale(lua_State* L, int index) {
  std::array<double, 2> scale{0, 0};
  lua_getfield(L, index, "scale");
  if (lua_istable(L, -1)) {
    for (int k = 0; k < 2; ++k) {
      lua_rawgeti(L, -1, k + 1);
      scale[static_cast<std::size_t>(k)] = check_number(L, -1, "scale");
      lua_pop(L, 1);
    }
  } else if (!lua_isnil(L, -1)) {
    scale[0] = scale[1] = check_number(L, -1, "scale");
  }
  const bool given = !lua_isnil(L, -1);
  lua_pop(L, 1);
  for (const double s : scale)
    if (given && !(s > 0 && s < 1e9))
      raise_invalid(L, fmt::format("interpolate: scale = {}: expected a positive number ({})", s, script_position(L)),
                    "a positive number");
  return scale;
}

struct Conv {
  const char* name;
  Result<Tensor> (*fn)(const Tensor&, const Tensor&, const Tensor&, const tensor::Convolution&);
};
constexpr Conv conv1d_{"conv1d", tensor::conv1d}, conv2d_{"conv2d", tensor::conv2d};

template <const Conv& C>
Result<int> convolution(lua_State* L) {  // x:conv2d(weight, bias, {stride =, padding =, dilation =, groups =})
  Tensor& x = check_self(L, C.name, 4);
  tensor_state(L);
  Tensor &weight = check_tensor(L, 2, C.name), bias = optional_tensor(L, 3, C.name);
  check_options(L, 4, C.name, {"stride", "padding", "dilation", "groups"});
  tensor::Convolution how{option_pair(L, 4, "stride", {1, 1}), option_pair(L, 4, "padding", {0, 0}),
                          option_pair(L, 4, "dilation", {1, 1}),
                          static_cast<std::int64_t>(option_number(L, 4, "groups").value_or(1))};
  return give(L, C.fn(x, weight, bias, how));
}

// x:conv_transpose2d(weight, bias, {stride =, padding =, output_padding =, dilation =, groups =})
Result<int> conv_transpose2d(lua_State* L) {
  const char* const name = "conv_transpose2d";
  Tensor& x = check_self(L, name, 4);
  tensor_state(L);
  Tensor &weight = check_tensor(L, 2, name), bias = optional_tensor(L, 3, name);
  check_options(L, 4, name, {"stride", "padding", "output_padding", "dilation", "groups"});
  tensor::Convolution how{option_pair(L, 4, "stride", {1, 1}), option_pair(L, 4, "padding", {0, 0}),
                          option_pair(L, 4, "dilation", {1, 1}),
                          static_cast<std::int64_t>(option_number(L, 4, "groups").value_or(1))};
  return give(L, tensor::conv_transpose2d(x, weight, bias, how, option_pair(L, 4, "output_padding", {0, 0})));
}

// x:interpolate({size = or scale =, mode = "nearest" or "bilinear", align_corners =})
Result<int> interpolate(lua_State* L) {
  const char* const name = "interpolate";
  Tensor& x = check_self(L, name, 2);
  tensor_state(L);
  check_table(L, 2, name);
  check_options(L, 2, name, {"size", "scale", "mode", "align_corners"});
  const std::string mode = option_text(L, 2, "mode").value_or("nearest");
  if (mode != "nearest" && mode != "bilinear")
    raise_invalid(L, fmt::format("interpolate: there is no mode '{}' ({})", mode, script_position(L)),
                  "use \"nearest\" or \"bilinear\"");
  tensor::Interpolation how;
  how.linear = mode == "bilinear";
  how.align_corners = option_bool(L, 2, "align_corners", false);
  if (how.align_corners && !how.linear)
    raise_invalid(L, fmt::format("interpolate: align_corners can be used only with mode = \"bilinear\" ({})",
                                 script_position(L)));
  how.size = option_pair(L, 2, "size", {0, 0});
  const std::array<double, 2> scale = option_scale(L, 2);
  if ((how.size[0] == 0) == (scale[0] == 0))
    raise_invalid(L, fmt::format("interpolate: expected a size or a scale ({})", script_position(L)),
                  "x:interpolate { size = { 32, 48 } }, x:interpolate { scale = 2 }");
  for (int k = 0; scale[0] != 0 && x.rank() == 4 && k < 2; ++k) {
    const std::size_t axis = static_cast<std::size_t>(k);
    how.size[axis] = static_cast<std::int64_t>(std::floor(static_cast<double>(x.size(2 + k)) * scale[axis]));
    how.step[axis] = 1 / scale[axis];
  }
  return give(L, tensor::interpolate(x, how));
}

// Reads (window, {stride =, padding =, ...}) of a pooling method; stride defaults to the window size.
tensor::Pooling pooling(lua_State* L, const char* name) {
  lua_createtable(L, 0, 1);
  lua_pushvalue(L, 2);
  lua_setfield(L, -2, "window");
  const int wrapped = lua_gettop(L);
  Pair2 window = option_pair(L, wrapped, "window", {0, 0});
  if (window[0] < 1) raise_invalid(L, fmt::format("{}: the window's size is missing ({})", name, script_position(L)));
  return {window, option_pair(L, 3, "stride", window), option_pair(L, 3, "padding", {0, 0}),
          option_pair(L, 3, "dilation", {1, 1}), lua_istable(L, 3) && option_bool(L, 3, "ceil_mode", false)};
}

struct MaxPool {
  const char* name;
  Result<Tensor> (*fn)(const Tensor&, const tensor::Pooling&);
};
constexpr MaxPool max_pool2d_{"max_pool2d", tensor::max_pool2d}, max_pool1d_{"max_pool1d", tensor::max_pool1d};

template <const MaxPool& F>
Result<int> max_pool(lua_State* L) {
  Tensor& x = check_self(L, F.name, 3);
  tensor_state(L);
  check_options(L, 3, F.name, {"stride", "padding", "dilation", "ceil_mode"});
  return give(L, F.fn(x, pooling(L, F.name)));
}

struct AvgPool {
  const char* name;
  Result<Tensor> (*fn)(const Tensor&, const tensor::Pooling&, bool);
};
constexpr AvgPool avg_pool2d_{"avg_pool2d", tensor::avg_pool2d}, avg_pool1d_{"avg_pool1d", tensor::avg_pool1d};

template <const AvgPool& F>
Result<int> avg_pool(lua_State* L) {
  Tensor& x = check_self(L, F.name, 3);
  tensor_state(L);
  check_options(L, 3, F.name, {"stride", "padding", "count_include_pad", "ceil_mode"});
  const bool counted = !lua_istable(L, 3) || option_bool(L, 3, "count_include_pad", true);
  return give(L, F.fn(x, pooling(L, F.name), counted));
}

struct ToPlane {
  const char* name;
  Result<Tensor> (*fn)(const Tensor&, std::int64_t, std::int64_t);
};
constexpr ToPlane adaptive_avg2_{"adaptive_avg_pool2d", tensor::adaptive_avg_pool2d},
    adaptive_max2_{"adaptive_max_pool2d", tensor::adaptive_max_pool2d};

template <const ToPlane& F>
Result<int> to_plane(lua_State* L) {  // x:adaptive_avg_pool2d(height, width)
  Tensor& x = check_self(L, F.name, 3);
  tensor_state(L);
  const std::int64_t height = check_integer(L, 2, F.name);
  return give(L, F.fn(x, height, lua_isnoneornil(L, 3) ? height : check_integer(L, 3, F.name)));
}

struct ToRow {
  const char* name;
  Result<Tensor> (*fn)(const Tensor&, std::int64_t);
};
constexpr ToRow adaptive_avg1_{"adaptive_avg_pool1d", tensor::adaptive_avg_pool1d},
    adaptive_max1_{"adaptive_max_pool1d", tensor::adaptive_max_pool1d};

template <const ToRow& F>
Result<int> to_row(lua_State* L) {  // x:adaptive_avg_pool1d(length)
  Tensor& x = check_self(L, F.name, 2);
  tensor_state(L);
  return give(L, F.fn(x, check_integer(L, 2, F.name)));
}

Result<int> batch_norm(lua_State* L) {  // x:batch_norm(weight, bias, {running_mean =, running_var =, training =, ...})
  Tensor& x = check_self(L, "batch_norm", 4);
  tensor_state(L);
  tensor::BatchNorm how;
  how.weight = optional_tensor(L, 2, "batch_norm's weight");
  how.bias = optional_tensor(L, 3, "batch_norm's bias");
  check_options(L, 4, "batch_norm", {"running_mean", "running_var", "training", "momentum", "eps"});
  how.running_mean = option_tensor(L, 4, "running_mean");
  how.running_var = option_tensor(L, 4, "running_var");
  how.training = !lua_istable(L, 4) || option_bool(L, 4, "training", true);
  how.momentum = option_number(L, 4, "momentum").value_or(how.momentum);
  how.eps = option_number(L, 4, "eps").value_or(how.eps);
  return give(L, tensor::batch_norm(x, how));
}

Result<int> group_norm(lua_State* L) {  // x:group_norm(groups, weight, bias, eps)
  Tensor& x = check_self(L, "group_norm", 5);
  tensor_state(L);
  std::int64_t groups = check_integer(L, 2, "group_norm's groups");
  Tensor weight = optional_tensor(L, 3, "group_norm's weight"), bias = optional_tensor(L, 4, "group_norm's bias");
  return give(L, tensor::group_norm(x, groups, weight, bias,
                                    lua_isnoneornil(L, 5) ? 1e-5 : check_number(L, 5, "group_norm's eps")));
}

struct Transform {
  const char* name;
  Result<Tensor> (*fn)(const Tensor&, tensor::Norm);
};
struct SizedTransform {
  const char* name;
  Result<Tensor> (*fn)(const Tensor&, std::int64_t, tensor::Norm);
};
constexpr Transform fft_{"fft", tensor::fft}, ifft_{"ifft", tensor::ifft}, fft2_{"fft2", tensor::fft2},
    ifft2_{"ifft2", tensor::ifft2}, rfft2_{"rfft2", tensor::rfft2};
constexpr SizedTransform rfft_{"rfft", tensor::rfft}, irfft_{"irfft", tensor::irfft}, irfft2_{"irfft2", tensor::irfft2};

tensor::Norm option_norm(lua_State* L, int index, const char* what) {
  check_options(L, index, what, {"norm"});
  const std::string norm = option_text(L, index, "norm").value_or("backward");
  if (norm == "backward") return tensor::Norm::backward;
  if (norm == "ortho") return tensor::Norm::ortho;
  if (norm == "forward") return tensor::Norm::forward;
  raise_invalid(L, fmt::format("{}: norm = '{}' ({})", what, norm, script_position(L)),
                "\"backward\", \"ortho\" or \"forward\"");
}

template <const Transform& T>
Result<int> transform(lua_State* L) {  // x:fft {norm =}
  Tensor& x = check_self(L, T.name, 2);
  tensor_state(L);
  return give(L, T.fn(x, option_norm(L, 2, T.name)));
}

template <const SizedTransform& T>
Result<int> sized_transform(lua_State* L) {  // x:irfft(n, {norm =})
  Tensor& x = check_self(L, T.name, 3);
  tensor_state(L);
  options_may_stand_first(L, 2, T.name);
  const std::int64_t n = lua_isnoneornil(L, 2) ? 0 : check_integer(L, 2, T.name);
  if (n < 1 && !lua_isnoneornil(L, 2))
    raise_invalid(
        L, fmt::format("{}: a transform of {} numbers: expected one or more ({})", T.name, n, script_position(L)),
        "one or more");
  return give(L, T.fn(x, n, option_norm(L, 3, T.name)));
}

}  // namespace

std::vector<Function> image_methods() {
  return {{"conv1d", bind<convolution<conv1d_>>},
          {"conv2d", bind<convolution<conv2d_>>},
          {"conv_transpose2d", bind<conv_transpose2d>},
          {"interpolate", bind<interpolate>},
          {"max_pool2d", bind<max_pool<max_pool2d_>>},
          {"avg_pool2d", bind<avg_pool<avg_pool2d_>>},
          {"max_pool1d", bind<max_pool<max_pool1d_>>},
          {"avg_pool1d", bind<avg_pool<avg_pool1d_>>},
          {"adaptive_avg_pool2d", bind<to_plane<adaptive_avg2_>>},
          {"adaptive_max_pool2d", bind<to_plane<adaptive_max2_>>},
          {"adaptive_avg_pool1d", bind<to_row<adaptive_avg1_>>},
          {"adaptive_max_pool1d", bind<to_row<adaptive_max1_>>},
          {"batch_norm", bind<batch_norm>},
          {"group_norm", bind<group_norm>},
          {"fft", bind<transform<fft_>>},
          {"ifft", bind<transform<ifft_>>},
          {"fft2", bind<transform<fft2_>>},
          {"ifft2", bind<transform<ifft2_>>},
          {"rfft", bind<sized_transform<rfft_>>},
          {"rfft2", bind<transform<rfft2_>>},
          {"irfft", bind<sized_transform<irfft_>>},
          {"irfft2", bind<sized_transform<irfft2_>>}};
}

}  // namespace rille::lua
