-- Internal: the models that rille.estimate knows by name, and the model it assumes for params = "7B".
local native = require "rille.native"
local read = require "rille.estimate.read"
local words = require "rille.estimate.words"

-- kind, parameters, layers, width, heads, key-value heads, vocabulary, context length; tied: the output head is the
-- embedding table.
local function text_model(kind, params, layers, width, heads, kv_heads, vocab, context, tied)
  return { kind = kind, params = params, layers = layers, width = width, heads = heads, kv_heads = kv_heads,
    vocab = vocab, context = context, tied = tied }
end

-- parameters; FLOP of one forward pass over one image (a multiply-add counts as two); number of images and gigabytes
-- of the usual data set.
local function image_model(params, forward, images, data_gb)
  return { kind = "image", params = params, forward_flops = forward, samples = images, data_gb = data_gb }
end

local imagenet, coco = { 1281167, 150 }, { 118287, 20 }
local function resnet(params, forward) return image_model(params, forward, imagenet[1], imagenet[2]) end
local function yolo(params, forward) return image_model(params, forward, coco[1], coco[2]) end

-- Sources: the tables in the models' papers; torchvision for ResNet (which prints multiply-adds, each two FLOP);
-- Ultralytics for YOLO at 640 x 640 pixels.
local known = {
  ["gpt2"] = text_model("decoder", 124.4e6, 12, 768, 12, 12, 50257, 1024, true),
  ["gpt2-medium"] = text_model("decoder", 354.8e6, 24, 1024, 16, 16, 50257, 1024, true),
  ["gpt2-large"] = text_model("decoder", 774.0e6, 36, 1280, 20, 20, 50257, 1024, true),
  ["gpt2-xl"] = text_model("decoder", 1557.6e6, 48, 1600, 25, 25, 50257, 1024, true),
  ["gpt3"] = text_model("decoder", 174.6e9, 96, 12288, 96, 96, 50257, 2048, true),
  ["tinyllama"] = text_model("decoder", 1.10e9, 22, 2048, 32, 4, 32000, 2048, false),
  ["llama-7b"] = text_model("decoder", 6.738e9, 32, 4096, 32, 32, 32000, 4096, false),
  ["llama-13b"] = text_model("decoder", 13.016e9, 40, 5120, 40, 40, 32000, 4096, false),
  ["llama-70b"] = text_model("decoder", 68.977e9, 80, 8192, 64, 8, 32000, 4096, false),
  ["llama-3-8b"] = text_model("decoder", 8.030e9, 32, 4096, 32, 8, 128256, 8192, false),
  ["llama-3-70b"] = text_model("decoder", 70.554e9, 80, 8192, 64, 8, 128256, 8192, false),
  ["mistral-7b"] = text_model("decoder", 7.242e9, 32, 4096, 32, 8, 32000, 8192, false),
  ["bert-base"] = text_model("encoder", 110e6, 12, 768, 12, 12, 30522, 512, true),
  ["bert-large"] = text_model("encoder", 336e6, 24, 1024, 16, 16, 30522, 512, true),
  ["resnet18"] = resnet(11.7e6, 3.6e9), ["resnet34"] = resnet(21.8e6, 7.3e9), ["resnet50"] = resnet(25.6e6, 8.2e9),
  ["resnet101"] = resnet(44.5e6, 15.6e9), ["resnet152"] = resnet(60.2e6, 23.0e9),
  ["yolov5n"] = yolo(1.9e6, 4.5e9), ["yolov5s"] = yolo(7.2e6, 16.5e9), ["yolov5m"] = yolo(21.2e6, 49.0e9),
  ["yolov5l"] = yolo(46.5e6, 109.1e9), ["yolov5x"] = yolo(86.7e6, 205.7e9),
  ["yolov8n"] = yolo(3.2e6, 8.7e9), ["yolov8s"] = yolo(11.2e6, 28.6e9), ["yolov8m"] = yolo(25.9e6, 78.9e9),
  ["yolov8l"] = yolo(43.7e6, 165.2e9), ["yolov8x"] = yolo(68.2e6, 257.8e9),
  ["yolo11n"] = yolo(2.6e6, 6.5e9), ["yolo11s"] = yolo(9.4e6, 21.5e9), ["yolo11m"] = yolo(20.1e6, 68.0e9),
  ["yolo11l"] = yolo(25.3e6, 86.9e9), ["yolo11x"] = yolo(56.9e6, 194.9e9),
}

local other_names = { gpt2small = "gpt2", gpt2124m = "gpt2", gpt2355m = "gpt2-medium", gpt2774m = "gpt2-large",
  gpt21558m = "gpt2-xl", gpt3175b = "gpt3", llama27b = "llama-7b", llama213b = "llama-13b", llama270b = "llama-70b",
  bert = "bert-base", resnet = "resnet50", yolo = "yolov8m", yolov8 = "yolov8m", yolov5 = "yolov5s",
  yolo11 = "yolo11m" }

local names, by_letters = {}, {}
for name in pairs(known) do
  names[#names + 1] = name
  by_letters[(name:gsub("[^%w]", ""))] = name
end
table.sort(names)

local function by_name(asked)
  if type(asked) ~= "string" then
    read.invalid(("model = %s; a name is needed, such as \"gpt2\" or \"resnet50\""):format(tostring(asked)))
  end
  local letters = asked:lower():gsub("[^%w]", "")
  local name = by_letters[letters] or other_names[letters]
  if name then return known[name], name end
  local near = native.did_you_mean(asked:lower(), names)
  read.invalid(("no model '%s' is known"):format(asked), (near ~= "" and near .. " " or "") ..
    "params = \"7B\" estimates any transformer; known are " .. table.concat(names, ", "))
end

-- Guesses a transformer with n parameters in the usual proportions: the width is 128 times the number of layers.
local function by_params(n)
  local width = math.max(64, math.floor((n * 128 / 12) ^ (1 / 3) / 64 + 0.5) * 64)
  local heads = math.max(1, math.floor(width / 128))
  local layers = math.max(1, math.floor(n / (12 * width * width) + 0.5))
  return text_model("decoder", n, layers, width, heads, heads, 50257, 2048, true)
end

local models = { names = names }

-- Returns the model that the options describe, as a new table { kind, name, params, .. }.
function models.find(o)
  local model, found, name = {}, nil, nil
  local params = read.count("params", o.params)
  if o.model ~= nil then found, name = by_name(o.model)
  elseif o.params == nil then
    read.invalid("which model? model or params is missing", "model = \"gpt2\", or params = \"7B\"")
  elseif o.flops_per_sample then found = image_model(params, 0)
  else found = by_params(params) end
  for key, value in pairs(found) do model[key] = value end
  model.name = name or words.many(params) .. " parameters"
  model.params = params or model.params
  model.guessed = o.model == nil and model.kind ~= "image" and not (o.layers and o.width) or nil
  for _, key in ipairs { "layers", "width", "heads", "kv_heads", "vocab", "context" } do
    if o[key] ~= nil then
      if model.kind == "image" then read.invalid(("%s has no %s"):format(model.name, key)) end
      model[key] = read.count(key, o[key])
      if key == "heads" and o.kv_heads == nil and not name then model.kv_heads = model.heads end
    end
  end
  model.forward_flops = read.count("flops_per_sample", o.flops_per_sample) or model.forward_flops
  model.active_params = read.count("active_params", o.active_params) or model.params
  return model
end

-- FLOP of the forward pass over one token or image: two per parameter in a matrix product, plus the attention scores.
function models.forward_flops(model, context)
  if model.kind == "image" then return model.forward_flops end
  local table_lookup = model.tied and 0 or model.vocab * model.width
  return 2 * (model.active_params - table_lookup) + 4 * model.layers * model.width * context
end

return models
