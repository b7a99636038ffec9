-- Rates of single operations through Lua: matrix products in FLOP/s, elementwise work and reductions in bytes/s.
-- usage: rille run speed.lua [--device cuda:0 --dtype bf16 --matrix 8192 --elements 1e8 --rounds 5]
local rille = require "rille"
local native = require "rille.native"

local args = rille.args { device = "cpu", dtype = "f32", matrix = 768, elements = 4e6, rounds = 5 }
local bytes_each = { f32 = 4, bf16 = 2, f16 = 2 }

return rille.step("speed", { args = args }, function()
  local dev = rille.device(args.device)
  dev:seed(4)

  local function seconds(fn)                     -- median of the rounds, after one to warm up
    local times = {}
    for round = 0, args.rounds do
      dev:synchronize()
      local began = native.clock()
      local result = fn()
      dev:synchronize()
      times[round] = native.clock() - began
      result:free()
    end
    table.sort(times)                            -- [0] stays out: that was the warm-up
    return times[math.ceil(args.rounds / 2)]
  end

  local n, size = args.matrix, args.elements * bytes_each[args.dtype]
  local a, b = dev:randn { n, n, dtype = args.dtype }, dev:randn { n, n, dtype = args.dtype }
  local x, y = dev:randn { args.elements, dtype = args.dtype }, dev:randn { args.elements, dtype = args.dtype }
  local function product() local r = a:matmul(b) r:select(1, 1):select(1, 1):item() return r end
  local function sum() local r = x + y r:select(1, 1):item() return r end
  local function reduction() local r = x:sum() r:item() return r end
  return { figures = {
    { name = ("matmul %dx%d %s"):format(n, n, args.dtype), value = 2 * n ^ 3 / seconds(product) / 1e9,
      unit = "GFLOP/s" },
    { name = ("x + y, %.3g elements"):format(args.elements), value = 3 * size / seconds(sum) / 1e9, unit = "GB/s" },
    { name = ("sum, %.3g elements"):format(args.elements), value = size / seconds(reduction) / 1e9, unit = "GB/s" },
  } }
end)
