-- rille.nn.resnet: residual networks for images (He et al. 2015), as torchvision's: the stride is in the 3x3
-- convolution.
local nn = require "rille.nn"
local rille = require "rille"
local tools = require "rille.nn.tools"

local function conv(inputs, outputs, size, stride)
  return nn.conv2d(inputs, outputs, size, { stride = stride, padding = (size - 1) / 2, bias = false,
    deviation = math.sqrt(2 / (outputs * size * size)) })
end

local Block = nn.class("ResidualBlock", {
  init = function(self, inputs, width, stride, expansion, zero)
    local outputs = width * expansion
    if expansion == 1 then
      self.conv1, self.conv2 = conv(inputs, width, 3, stride), conv(width, width, 3, 1)
    else
      self.conv1, self.conv2, self.conv3 = conv(inputs, width, 1, 1), conv(width, width, 3, stride),
        conv(width, outputs, 1, 1)
      self.bn3 = nn.batch_norm(outputs)
    end
    self.bn1, self.bn2 = nn.batch_norm(width), nn.batch_norm(width)
    if stride ~= 1 or inputs ~= outputs then
      self.downsample = { conv(inputs, outputs, 1, stride), nn.batch_norm(outputs) }
    end
    if zero then rille.no_grad(function() (rawget(self, "bn3") or self.bn2).weight:zero_() end) end
  end,
  forward = function(self, x)
    local down, last = rawget(self, "downsample"), rawget(self, "conv3")
    local y = self.bn2(self.conv2(self.bn1(self.conv1(x)):relu()))
    if last then y = self.bn3(last(y:relu())) end
    return (y + (down and down[2](down[1](x)) or x)):relu()
  end,
})

local depths = { [18] = { 2, 2, 2, 2 }, [34] = { 3, 4, 6, 3 }, [50] = { 3, 4, 6, 3 }, [101] = { 3, 4, 23, 3 },
  [152] = { 3, 8, 36, 3 } }

local Resnet = nn.class("Resnet", {
  init = function(self, o)
    local width, expansion, inputs = o.width, o.depth < 50 and 1 or 4, o.width
    self.conv1, self.bn1 = conv(o.channels, width, 7, 2), nn.batch_norm(width)
    self.layers = {}
    for stage, blocks in ipairs(depths[o.depth]) do
      local list = {}
      for i = 1, blocks do
        list[i] = Block(inputs, width, i == 1 and stage > 1 and 2 or 1, expansion, o.zero_init_residual)
        inputs = width * expansion
      end
      self.layers[stage], width = list, width * 2
    end
    self.fc = nn.linear(inputs, o.classes)
  end,
  forward = function(self, x)
    x = self.bn1(self.conv1(x)):relu():max_pool2d(3, { stride = 2, padding = 1 })
    for _, stage in ipairs(self.layers) do
      for _, block in ipairs(stage) do x = block(x) end
    end
    return self.fc(x:adaptive_avg_pool2d(1):reshape(x:size(1), -1))
  end,
})

-- Returns torchvision's name of a parameter; torchvision counts from 0.
local function theirs(name)
  local stage, block, rest = name:match("^layers%.(%d+)%.(%d+)%.(.+)$")
  if not stage then return name end
  rest = rest:gsub("^downsample%.(%d)", function(n) return "downsample." .. (n - 1) end)
  return ("layer%d.%d.%s"):format(stage, block - 1, rest)
end

---A residual network. Called with images [n, channels, height, width], it returns logits [n, classes]. `weights` loads
---torchvision's safetensors file by name.
---@param options? { depth: integer, classes: integer, channels: integer, width: integer, weights: string,
---seed: integer, zero_init_residual: boolean } depth: 18, 34, 50 (the default), 101, 152; classes: 1000; channels: 3;
---width of the first stage: 64; seed: 0; zero_init_residual: false; true makes each block start as the identity, with
---the scale of its last norm at 0 (Goyal et al. 2017): more stable training, no effect with `weights`
---@return Module
---@mark ephemeral
---@error state the file has other names or shapes, or is of a model with more layers or more in a layer
---@error denied without a grant to read `weights`
local function resnet(options)
  local o = tools.options("rille.nn.resnet", options, { depth = 50, classes = 1000, channels = 3, width = 64,
    weights = false, seed = 0, zero_init_residual = false }, { "depth", "classes", "channels", "width" })
  if not depths[o.depth] then
    tools.invalid(("rille.nn.resnet: there is no depth %d"):format(o.depth), "it comes as 18, 34, 50, 101 and 152")
  end
  local model = nn.with_seed(o.seed, function() return Resnet(o) end)
  if o.weights then tools.adopt(model, "rille.nn.resnet", o.weights, theirs) end
  return model
end

return resnet
