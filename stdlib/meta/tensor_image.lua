---@meta tensor_image
--- Tensor methods for images and sequences: convolution, pooling, normalisation over channels; and Fourier transforms.
--- Complex numbers are a last dimension of 2: real part, imaginary part.

---@class Tensor
local Tensor = {}

--- Convolution of [n, c, h, w].
---@param weight Tensor [o, c/groups, kh, kw]
---@param bias? Tensor [o]
---@param options? table stride 1, padding 0, dilation 1 (numbers or { height, width }), groups 1
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:conv2d(weight, bias, options) end

--- Transposed convolution of [n, c, h, w]: each pixel is spread by the window. Its result has (h - 1) stride -
--- 2 padding + dilation (kh - 1) + output_padding + 1 rows.
---@param weight Tensor [c, o/groups, kh, kw]
---@param bias? Tensor [o]
---@param options? table stride 1, padding 0, output_padding 0, dilation 1 (numbers or { height, width }), groups 1
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:conv_transpose2d(weight, bias, options) end

--- Resizes images [n, c, h, w]: each pixel is the nearest one ("nearest"), or interpolated from the four around its
--- position ("bilinear"). As PyTorch's `F.interpolate`, without its `antialias`.
---@param options table size or scale (numbers or { height, width }), mode "nearest", align_corners false
---@return Tensor result
---@mark ephemeral
---@error invalid neither a size nor a scale, or both; not of shape [n, c, h, w]
function Tensor:interpolate(options) end

--- Convolution of [n, c, l].
---@param weight Tensor [o, c/groups, k]
---@param bias? Tensor [o]
---@param options? table stride 1, padding 0, dilation 1, groups 1
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:conv1d(weight, bias, options) end

--- The maximum of each window of [n, c, h, w]; with `ceil_mode` also of a last window that reaches past the end.
---@param window number|table a size, or { height, width }
---@param options? table stride (the window's), padding 0, dilation 1: numbers or { height, width }; ceil_mode false
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:max_pool2d(window, options) end

--- The mean of each window of [n, c, h, w].
---@param window number|table a size, or { height, width }
---@param options? table stride (the window's), padding 0, count_include_pad true, ceil_mode false
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:avg_pool2d(window, options) end

--- The means of the given number of windows of [n, c, h, w].
---@param height number rows of the result
---@param width? number columns; the same
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:adaptive_avg_pool2d(height, width) end

--- The maxima of the given number of windows of [n, c, h, w].
---@param height number rows of the result
---@param width? number columns; the same
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:adaptive_max_pool2d(height, width) end

--- The maximum of each window of [n, c, l].
---@param window number a size
---@param options? table stride (the window's), padding 0, dilation 1, ceil_mode false
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:max_pool1d(window, options) end

--- The mean of each window of [n, c, l].
---@param window number a size
---@param options? table stride (the window's), padding 0, count_include_pad true, ceil_mode false
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:avg_pool1d(window, options) end

--- The means of the given number of windows of [n, c, l].
---@param length number of the result
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:adaptive_avg_pool1d(length) end

--- The maxima of the given number of windows of [n, c, l].
---@param length number of the result
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:adaptive_max_pool1d(length) end

--- Normalises the channels of [n, c, ..]: by the statistics of this batch, or by running ones.
--- Training updates the running ones in place.
---@param weight? Tensor one number for each channel
---@param bias? Tensor one number for each channel
---@param options? table running_mean, running_var: Tensor; training true, momentum 0.1, eps 1e-5
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:batch_norm(weight, bias, options) end

--- Normalises groups of channels of [n, c, ..].
---@param groups number how many
---@param weight? Tensor one number for each channel
---@param bias? Tensor one number for each channel
---@param eps? number 1e-5
---@return Tensor result
---@mark ephemeral
---@error invalid shapes or types that do not go together; the message has both and the line
function Tensor:group_norm(groups, weight, bias, eps) end

--- Fourier transform of complex numbers [.., n, 2].
---@param options? { norm: string } "backward": the inverse divides by the size; "ortho": both by its root; "forward"
---@return Tensor result
---@mark ephemeral
---@error invalid the last dimension is not 2
function Tensor:fft(options) end

--- The inverse of fft.
---@param options? { norm: string } "backward": the inverse divides by the size; "ortho": both by its root; "forward"
---@return Tensor result
---@mark ephemeral
---@error invalid the last dimension is not 2
function Tensor:ifft(options) end

--- Fourier transform of the last two dimensions of complex numbers [.., m, n, 2].
---@param options? { norm: string } "backward": the inverse divides by the size; "ortho": both by its root; "forward"
---@return Tensor result
---@mark ephemeral
---@error invalid the last dimension is not 2
function Tensor:fft2(options) end

--- The inverse of fft2.
---@param options? { norm: string } "backward": the inverse divides by the size; "ortho": both by its root; "forward"
---@return Tensor result
---@mark ephemeral
---@error invalid the last dimension is not 2
function Tensor:ifft2(options) end

--- Fourier transform of real numbers: half the spectrum, [.., n/2 + 1, 2].
---@param n? number length of the input: cut to it, or padded with zeros
---@param options? { norm: string } "backward": the inverse divides by the size; "ortho": both by its root; "forward"
---@return Tensor result
---@mark ephemeral
function Tensor:rfft(n, options) end

--- Real numbers from half their spectrum.
---@param n? number length of the output; 2 bins - 2
---@param options? { norm: string } "backward": the inverse divides by the size; "ortho": both by its root; "forward"
---@return Tensor result
---@mark ephemeral
---@error invalid the number of bins does not match n
function Tensor:irfft(n, options) end

--- Fourier transform of the last two dimensions of real numbers: [.., m, n/2 + 1, 2].
---@param options? { norm: string } "backward": the inverse divides by the size; "ortho": both by its root; "forward"
---@return Tensor result
---@mark ephemeral
function Tensor:rfft2(options) end

--- Real numbers from half their spectrum, in two dimensions.
---@param n? number columns of the output; 2 bins - 2
---@param options? { norm: string } "backward": the inverse divides by the size; "ortho": both by its root; "forward"
---@return Tensor result
---@mark ephemeral
---@error invalid the number of bins does not match n
function Tensor:irfft2(n, options) end
