-- The first use of each library of NVIDIA's on a device, by one small call: what loading it takes, and the second call.
-- A call that fails is reported by name. usage: rille run libraries.lua [--device cuda:0]
local rille = require "rille"
local native = require "rille.native"

local args = rille.args { device = "cpu" }

local source = 'extern "C" __global__ void one(float* y) { y[0] = 1.0f; }'
local function message(e) return (type(e) == "table" and e.message or tostring(e)):gsub("\n", " ") end

return rille.step("libraries", { args = args }, function()
  local began = native.clock()
  local dev = rille.device(args.device)
  dev:seed(1)
  local x = dev:ones { 64, 64 }
  dev:synchronize()
  local figures, wrong = {}, {}
  local function say(name, value, unit)
    figures[#figures + 1] = { name = name, value = value, unit = unit }
    io.stderr:write(("%s: %.3g %s\n"):format(name, value, unit))   -- at once: the next one may hang
  end
  say("opening the device", native.clock() - began, "s")
  local kernel, image = nil, dev:ones { 1, 8, 16, 16 }
  local calls = {
    { "a product (cuBLASLt)", function() return x:matmul(x):sum():item(), 64 * 64 * 64 end },
    { "a convolution (cuDNN)", function() return image:conv2d(dev:ones { 4, 8, 3, 3 }):mean():item(), 72 end },
    { "a Fourier transform (cuFFT)", function() return dev:ones({ 128, 2 }):fft():sum():item(), 256 end },
    { "a kernel from source (NVRTC)", function()
      local y = dev:zeros { 1 }
      kernel = kernel or dev:kernel(source)
      kernel:launch({ grid = 1, block = 1 }, y)
      return y:item(), 1
    end, "device" },
    { "a profile (CUPTI)", function()
      local value
      dev:profile(function() value = x:sum():item() end)
      return value, 64 * 64
    end },
  }
  for _, call in ipairs(calls) do
    local name, fn, may_lack = call[1], call[2], call[3]
    for turn, which in ipairs { "first", "second" } do
      local before = native.clock()
      local ok, got, want = pcall(fn)
      if ok and got ~= want then ok, got = false, ("it gave %s, not %s"):format(got, want) end
      if not ok and may_lack and type(got) == "table" and got.kind == may_lack then
        if turn == 1 then say(name .. " cannot be had", 1, message(got)) end
      elseif not ok then
        wrong[#wrong + 1] = ("%s, %s call: %s"):format(name, which, message(got))
      else
        say(("%s, %s call"):format(name, which), native.clock() - before, "s")
      end
    end
  end
  if #wrong > 0 then error(table.concat(wrong, "; ")) end
  return { figures = figures, fallbacks = native.fallbacks(dev) }
end)
