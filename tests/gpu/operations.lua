-- Each operation on a device beside the same one on the CPU, from the same numbers: values and gradients. Floating
-- types are held against float64 on the CPU, whole numbers and random ones against the CPU in the same type; and where
-- the device is the CPU, float64's gradients against finite differences. What is off, or raises an error, fails by
-- name; operation_cases.lua declares the cases.
-- usage: rille run operations.lua [--device cuda:0] [--dtypes f32,f64,i64] [--only attention] [--differences false]
--   [--seconds 20]: later cases are not run, and are listed
local rille = require "rille"
local native = require "rille.native"
local cases = require "operation_cases"

local args = rille.args { device = "cpu", dtypes = "f32,bf16,f16,f64,i64,i32,i8,u8", only = "",
  tolerance = 1,                                 -- what all bounds are multiplied by
  seconds = 1e9,
  differences = true }

-- Largest relative L2; a single element may be off by `peak` times that, of its own size and the mean one together.
local bounds = { f32 = 1e-5, f64 = 1e-12, bf16 = 1.6e-2, f16 = 2e-3 }
local peak, of_gradients = 8, 2
local slope_bound = 1e-7                         -- of the gradient's length times the way's
local whole = { i64 = true, i32 = true, i8 = true, u8 = true, bool = true }

-- The results of a case on one device: values, then the gradients of its floating operands.
local function results(case, dev, dtype, inputs, seeds)
  local given = {}
  for i, x in ipairs(inputs) do
    local float = not whole[x.dtype]
    if dev.name ~= "cpu" then x = x:to(dev) end
    given[i] = float and x:to(dtype):detach():clone():detach():requires_grad_(not case.options.plain) or x
  end
  dev:seed(7)
  local values
  if #given == 0 then values = { case.fn(dev, dtype) } else values = { case.fn(unpack(given)) } end
  if case.options.plain then return values, {} end
  local first, gradients = values[1], {}
  local cpu = rille.device "cpu"
  cpu:seed(9)                                    -- not the operands' numbers: a gradient may vanish for those
  seeds.of = seeds.of or cpu:rand(first:shape()):to(first.dtype)
  first:backward(seeds.of:to(first.dtype):to(dev))
  for i, x in ipairs(given) do
    if not whole[x.dtype] then gradients[#gradients + 1] = assert(x.grad, ("operand %d has no gradient"):format(i)) end
  end
  for i, value in ipairs(values) do values[i] = value:detach() end
  return values, gradients
end

-- Relative L2, and the largest difference of an element by its size and the mean one.
local function distance(got, want)
  got, want = got:to(rille.device "cpu"):to "f64", want:to "f64"
  local a, b = table.concat(got:shape(), ","), table.concat(want:shape(), ",")
  if a ~= b then error(("its shape is {%s}, not {%s}"):format(a, b)) end
  local difference, size = (got - want):abs(), want:square():mean():sqrt():item()
  local l2 = math.sqrt(difference:square():mean():item())
  if size == 0 then size = 1 end
  return l2 / size, (difference / (want:abs() + size)):max():item()
end

local function draw(cpu, case, dtype, inputs)
  cpu:seed(1)
  for i, input in ipairs(case.inputs) do
    local shape = {}
    for k = 1, #input do shape[k] = input[k] end
    inputs[i] = cases.draw(cpu, input, shape, dtype)
  end
end

-- Float64's gradients beside the slopes of a weighted sum of the results, each operand moved in some direction: what is
-- wrong, or nil. An element that is off by a thousandth of the mean one is nearly always seen.
local function wrong_slope(case)
  local cpu, inputs, seeds = rille.device "cpu", {}, {}
  draw(cpu, case, "f64", inputs)
  for i, input in ipairs(case.inputs) do         -- rows of distinct numbers are alike: no two shall be equal
    if input.distinct == true then inputs[i] = inputs[i] + cpu:rand(inputs[i]:shape()):to "f64" * 0.5 end
  end
  local _, gradients = results(case, cpu, "f64", inputs, seeds)
  local function weighted(k, moved)
    local given = {}
    for i, x in ipairs(inputs) do given[i] = i == k and moved or x end
    cpu:seed(7)
    return ((case.fn(unpack(given))) * seeds.of:to "f64"):sum():item()
  end
  local of, step = 0, 1e-6
  for k, x in ipairs(inputs) do
    if not whole[x.dtype] then
      of = of + 1
      local way = cpu:rand(x:shape()):to "f64" - 0.5
      local slope = (weighted(k, x + way * step) - weighted(k, x - way * step)) / (2 * step)
      local g = gradients[of]:to "f64"
      local off = math.abs(slope - (g * way):sum():item())
      local most = slope_bound * args.tolerance * math.max(g:norm():item(), 1) * way:norm():item()
      if not (off <= most) then
        return ("gradient %d is off finite differences by %.2g, at most %.2g"):format(of, off, most)
      end
    end
  end
end

-- The largest error of a case in one type, by the bound; and what is wrong, or nil.
local function run(case, dev, dtype)
  local cpu, o, inputs, seeds = rille.device "cpu", case.options, {}, {}
  draw(cpu, case, dtype, inputs)
  local float = not whole[dtype]
  local same = o.drawn or not float or o.exact
  local values, gradients = results(case, dev, dtype, inputs, seeds)
  local want, want_gradients = results(case, cpu, same and dtype or "f64", inputs, seeds)
  local bound, worst = (bounds[dtype] or bounds.f32) * (o.loose or 1) * args.tolerance, 0
  local function hold(what, got, wanted, most)
    if whole[got.dtype] or o.exact then most = 0 end
    local l2, element = distance(got, wanted)
    if most > 0 then worst = math.max(worst, l2 / most) end
    if l2 <= most and element <= most * peak then return nil end
    return ("%s off by %.2g, an element by %.2g, at most %.2g"):format(what, l2, element, most)
  end
  for i, value in ipairs(values) do
    local wrong = hold("values", value, want[i], bound)
    if wrong then return worst, wrong end
  end
  for i, gradient in ipairs(gradients) do
    local wrong = hold(("gradient %d"):format(i), gradient, want_gradients[i], bound * of_gradients)
    if wrong then return worst, wrong end
  end
  return worst, nil
end

local function message(e) return type(e) == "table" and e.message or tostring(e) end

return rille.step("operations", { args = args }, function()
  local dev, asked = rille.device(args.device), {}
  for dtype in args.dtypes:gmatch "%w+" do asked[dtype] = true end
  local count, with_gradients, slopes, worst, worst_name, wrong = 0, 0, 0, 0, "none", {}
  local began, late = native.clock(), {}
  local function in_time() return native.clock() - began < args.seconds end
  for _, case in ipairs(cases.list) do
    if args.device == "cpu" and args.differences and not case.options.plain and case.name:find(args.only, 1, true)
      and in_time() then
      local ok, off = pcall(wrong_slope, case)
      off, slopes = ok and off or not ok and message(off), slopes + 1
      if off then wrong[#wrong + 1] = case.name .. ": " .. off end
    end
    for _, dtype in ipairs(cases.types[case.options.types or "float"]) do
      local name = case.name .. " " .. dtype
      local chosen = asked[dtype] and case.name:find(args.only, 1, true)
      if chosen and not in_time() then
        late[#late + 1] = name
      elseif chosen then
        io.stderr:write(name, "\n")               -- shows the current case, in case the program hangs
        local ok, far, off = pcall(run, case, dev, dtype)
        count, with_gradients = count + 1, with_gradients + (case.options.plain and 0 or 1)
        if not ok then far, off = 0, message(far) end
        if off then wrong[#wrong + 1] = name .. ": " .. off end
        if far > worst then worst, worst_name = far, name end
      end
    end
  end
  if count + #late == 0 then error("no case has such a name and type") end
  local left = #late > 0 and ("; not reached, for time was over: %s"):format(table.concat(late, ", ")) or ""
  if #wrong > 0 then error(("%d of %d are wrong: %s%s"):format(#wrong, count, table.concat(wrong, "; "), left)) end
  return { figures = {
    { name = "cases (operation and type)", value = count, unit = "" },
    { name = "of them with gradients", value = with_gradients, unit = "" },
    { name = "operations whose gradients agree with finite differences", value = slopes, unit = "" },
    { name = "cases not reached, for time was over", value = #late,
      unit = late[1] and ("(from %s on)"):format(late[1]) or "", cases = late },
    { name = "largest error, of what is allowed (" .. worst_name .. ")", value = worst, unit = "" },
  }, fallbacks = native.fallbacks(dev) }
end)
