-- Each operation on a device beside the same one in float64 on the CPU, from the same numbers. An error that is larger
-- than the declared one fails and names the operation.  usage: rille run operations.lua [--device cuda:0] [--size 64]
local rille = require "rille"

local args = rille.args { device = "cpu", size = 64, dtype = "f32" }

-- The method of that name: with the other operand of two, else with these constants.
local function call(name, ...)
  local constants = { ... }
  return function(x, y)
    if y then return x[name](x, y) end
    return x[name](x, unpack(constants))
  end
end

-- name, function, number of operands, where they are drawn from {low, high}, largest relative error (in float32)
local operations = {
  { "add", call "add", 2 }, { "sub", call "sub", 2 }, { "mul", call "mul", 2 },
  { "div", call "div", 2, { 0.5, 2 } }, { "pow", call "pow", 2, { 0.5, 2 } }, { "atan2", call "atan2", 2 },
  { "maximum", call "maximum", 2 }, { "minimum", call "minimum", 2 },
  { "neg", call "neg" }, { "abs", call "abs" }, { "exp", call "exp" }, { "expm1", call "expm1" },
  { "log", call "log", 1, { 0.1, 4 } }, { "log1p", call "log1p", 1, { 0.1, 4 } },
  { "sqrt", call "sqrt", 1, { 0, 4 } }, { "rsqrt", call "rsqrt", 1, { 0.1, 4 } }, { "square", call "square" },
  { "reciprocal", call "reciprocal", 1, { 0.5, 2 } }, { "sin", call "sin" }, { "cos", call "cos" },
  { "tanh", call "tanh" }, { "erf", call "erf" }, { "sigmoid", call "sigmoid" }, { "relu", call "relu" },
  { "gelu", call "gelu" }, { "silu", call "silu" }, { "softplus", call "softplus" },
  { "clamp", call("clamp", -0.5, 0.5) },
  { "sum", call "sum" }, { "sum of rows", call("sum", 2) }, { "sum of columns", call("sum", 1) },
  { "mean", call("mean", 2) }, { "max", call("max", 2) }, { "min", call("min", 1) }, { "var", call("var", 2) },
  { "norm", call "norm" }, { "logsumexp", call("logsumexp", 2) }, { "cumsum", call("cumsum", 2) },
  { "softmax", call("softmax", 2) }, { "log_softmax", call("log_softmax", 2) },
  { "matmul", call "matmul", 2 },
  { "matmul, transposed", function(a, b) return a:transpose(1, 2):matmul(b:transpose(1, 2)) end, 2 },
  { "layer_norm", call "layer_norm" },
  { "permute", function(x) return x:permute(2, 1):contiguous() end },
  { "narrow", function(x) return x:narrow(1, 3, 5):contiguous() end },
  { "cat", function(a, b) return a:cat({ b }, 1) end, 2 },
}

local function relative_error(got, want)
  local difference, size = (got:to("f64") - want):square():sum(), want:square():sum()
  return math.sqrt(difference:item()) / math.max(math.sqrt(size:item()), 1e-30)
end

return rille.step("operations", { args = args }, function()
  local cpu, dev = rille.device "cpu", rille.device(args.device)
  cpu:seed(1)
  local n = args.size
  local bound = args.dtype == "f32" and 1e-5 or 2e-2
  local worst, worst_name, wrong = 0, "", {}
  for _, o in ipairs(operations) do
    local name, fn, count, range = o[1], o[2], o[3] or 1, o[4] or { -2, 2 }
    local there, reference = {}, {}
    for i = 1, count do
      local x = cpu:rand { n, n } * (range[2] - range[1]) + range[1]
      x = x:to(args.dtype)                      -- both begin with the same numbers, rounded once
      there[i], reference[i] = args.device == "cpu" and x or x:to(dev), x:to "f64"
    end
    local got = fn(unpack(there))
    local err = relative_error(args.device == "cpu" and got or got:to(cpu), fn(unpack(reference)))
    if err > worst then worst, worst_name = err, name end
    if not (err <= bound) then wrong[#wrong + 1] = ("%s %.2g"):format(name, err) end
  end
  if #wrong > 0 then
    error(("%d of %d operations are off by more than %g: %s"):format(#wrong, #operations, bound,
      table.concat(wrong, ", ")))
  end
  return { figures = {
    { name = "operations", value = #operations, unit = "" },
    { name = "largest relative error (" .. worst_name .. ")", value = worst, unit = "" },
  } }
end)
