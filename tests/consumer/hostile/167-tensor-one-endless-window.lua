-- pooling and convolution with a window of a hundred million pixels at each of a million places
-- expect: error
local rille = require "rille"
local dev = rille.device("cpu")
local image = dev:ones { 1, 1, 1, 1 }:expand(1, 1, 11000, 11000)
print(pcall(function() return image:max_pool2d(10000, { stride = 1 }):sum():item() end))
return image:conv2d(dev:ones { 1, 1, 1, 1 }:expand(1, 1, 10000, 10000)):sum():item()
