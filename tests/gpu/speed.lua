-- The speed of each operation that operation_cases.lua declares, on its large shapes: time, rate, and the time as a
-- multiple of its floor: its bytes at the rate of a triad, or its FLOPs at that of a product. These rates are measured
-- here, by `x + y` and a square product, unless they are given.
-- usage: rille run speed.lua [--device cuda:0] [--types f32,bf16,i64] [--only matmul] [--rounds 3]
--   [--size tiny|cpu|gpu] [--triad BYTES_PER_S] [--f32 FLOP_PER_S] [--bf16 FLOP_PER_S] [--seconds 20]: what is later is
--   not measured
-- tests/bench/operations measures turn by turn with PyTorch: --list true lists the cases; --turns true reads lines
-- "CASE TYPE" (CASE: its number in the list) and answers "SECONDS BYTES FLOPS SHAPE" or "error MESSAGE".
local rille = require "rille"
local native = require "rille.native"
local cases = require "operation_cases"

local args = rille.args { device = "cpu", types = "f32,bf16,i64", only = "", rounds = 3, size = "", triad = 0,
  f32 = 0, bf16 = 0, seconds = 1e9, list = false, turns = false }
local size = args.size ~= "" and args.size or args.device == "cpu" and "cpu" or "gpu"
local bytes_each = { f64 = 8, i64 = 8, f32 = 4, i32 = 4, bf16 = 2, f16 = 2, i8 = 1, u8 = 1, bool = 1 }

local function picked(n) return type(n) == "table" and n[size] or n end

-- The large shape of an input, and the bound of its ids.
local function large(input)
  local shape = {}
  for i, n in ipairs(input.large) do shape[i] = picked(n) end
  return shape, picked(input.large.ids or input.ids)
end

local function bytes_of(x) return x:numel() * bytes_each[x.dtype] end

-- { seconds = the best of the rounds, bytes, flops, shape = of the result }
local function measure(dev, case, dtype)
  local o, given, shapes, bytes = case.options, {}, {}, 0
  for i, input in ipairs(case.inputs) do
    local shape, ids = large(input)
    given[i] = cases.draw(dev, input, shape, dtype, ids)
    shapes[i], bytes = given[i]:shape(), bytes + bytes_of(given[i])
  end
  if not given[1] then given = { dev, dtype, picked(o.count) } end
  local result
  local function once()
    local calls = args.device == "cpu" and 1 or 4  -- a GPU's lane is kept busy
    local made = {}                              -- a tensor without a handle is not computed
    dev:synchronize()
    local began = native.clock()
    for i = 1, calls do made[i] = { case.fn(unpack(given)) } end
    dev:synchronize()
    local seconds = (native.clock() - began) / calls
    result = { shape = made[1][1]:shape(), of = 0, bytes = 0 }
    for _, x in ipairs(made[1]) do result.bytes = result.bytes + bytes_of(x) end
    result.of = made[1][1]:numel()
    for _, each in ipairs(made) do for _, x in ipairs(each) do x:free() end end
    return seconds
  end
  once()                                         -- to warm up
  local best = math.huge
  for _ = 1, args.rounds do best = math.min(best, once()) end
  for _, x in ipairs(case.inputs[1] and given or {}) do x:free() end
  if o.moved == "result" then bytes = result.bytes end
  return { seconds = best, bytes = (o.moved == "written" and 0 or bytes) + result.bytes,
    flops = o.terms and o.terms(unpack(shapes)) * result.of or 0, shape = result.shape }
end

local function chosen()
  local asked, list = {}, {}
  for dtype in args.types:gmatch "%w+" do asked[dtype] = true end
  for i, case in ipairs(cases.list) do
    for _, dtype in ipairs(cases.types[case.options.types or "float"]) do
      if asked[dtype] and case.name:find(args.only, 1, true) then
        list[#list + 1] = { number = i, name = case.name, type = dtype, case = case }
      end
    end
  end
  if #list == 0 then error("no case has such a name and type") end
  return list
end

local function listed()
  local out = {}
  for i, one in ipairs(chosen()) do
    local inputs = {}
    for k, input in ipairs(one.case.inputs) do
      local shape, ids = large(input)
      inputs[k] = { shape = shape, ids = ids, from = input.from, low = input.low, high = input.high,
        chance = input.chance, distinct = input.distinct ~= nil, places = input.distinct == "places" }
    end
    out[i] = { number = one.number, name = one.name, type = one.type, torch = one.case.options.torch, inputs = inputs,
      count = picked(one.case.options.count), moved = one.case.options.moved }
  end
  return out
end

local function message(e) return (type(e) == "table" and e.message or tostring(e)):gsub("\n", " ") end

local function turns(dev)
  for line in io.lines() do
    local number, dtype = line:match "^(%d+) (%w+)$"
    local ok, m = pcall(measure, dev, cases.list[tonumber(number)], dtype)
    local shape = ok and (m.shape[1] and table.concat(m.shape, "x") or "number")
    io.write(ok and ("%.9f %.0f %.0f %s\n"):format(m.seconds, m.bytes, m.flops, shape)
      or "error " .. message(m) .. "\n")
    io.flush()
  end
end

-- Bytes per second, and FLOP/s by type.
local function rates(dev)
  local by_name, out = {}, { bytes = args.triad, product = {} }
  for _, case in ipairs(cases.list) do by_name[case.name] = case end
  for _, dtype in ipairs { "f32", "bf16" } do
    out.product[dtype] = args[dtype]
    if args[dtype] == 0 then
      local m = measure(dev, by_name.matmul, dtype)
      out.product[dtype] = m.flops / m.seconds
    end
  end
  if out.bytes == 0 then
    local m = measure(dev, by_name.add, "f32")
    out.bytes = m.bytes / m.seconds
  end
  return out
end

return rille.step("speed", { args = args }, function()
  if args.list then return listed() end
  local dev = rille.device(args.device)
  dev:seed(4)
  if args.turns then return turns(dev) end
  local began, figures, wrong, left = native.clock(), {}, {}, 0
  local rate = rates(dev)
  local function say(name, value, unit, more)
    local figure = more or {}
    figure.name, figure.value, figure.unit = name, value, unit
    figures[#figures + 1] = figure
  end
  say("rate of a triad", rate.bytes / 1e9, "GB/s")
  for _, dtype in ipairs { "f32", "bf16" } do
    say("rate of a product, " .. dtype, rate.product[dtype] / 1e9, "GFLOP/s")
  end
  for _, one in ipairs(chosen()) do
    local name = one.name .. " " .. one.type
    if native.clock() - began > args.seconds then
      left = left + 1
    else
      io.stderr:write(name, "\n")                 -- shows the current case, in case the program hangs
      local ok, m = pcall(measure, dev, one.case, one.type)
      if ok then
        local floor = m.flops > 0 and m.flops / rate.product[one.type] or m.bytes / rate.bytes
        local value = (m.flops > 0 and m.flops or m.bytes) / m.seconds / 1e9
        local ratio = m.seconds / floor
        say(name, value, ("%s (%.4g ms, %.2f of its floor)"):format(m.flops > 0 and "GFLOP/s" or "GB/s",
          m.seconds * 1e3, ratio), { seconds = m.seconds, of_floor = ratio })
      else
        wrong[#wrong + 1] = name .. ": " .. message(m)
      end
    end
  end
  if #wrong > 0 then error(table.concat(wrong, "; ")) end
  say("operations and types not measured, for time was over", left, "")
  return { figures = figures, fallbacks = native.fallbacks(dev) }
end)
