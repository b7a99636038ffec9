-- run: ephemeral
local rille = require "rille"
local tap = require "tap"
local dev = rille.device()

tap.test("a device says what it is", function()
  tap.equal(dev.name, "cpu")
  tap.ok(dev == rille.device("cpu") and dev == rille.devices()[1])
  tap.ok(tostring(dev):find("^Device cpu: "))
  tap.ok(dev.threads >= 1)
  tap.raises("device", "no device 'cuda:0'", rille.device, "cuda:0")
  tap.raises("invalid", "did you mean 'randn'", function() return dev:rand_n { 2 } end)
end)

tap.test("making tensors", function()
  tap.equal(dev:zeros { 2, 3 }:totable(), { { 0, 0, 0 }, { 0, 0, 0 } })
  tap.equal(dev:full { 2, value = 7, dtype = "i64" }:totable(), { 7, 7 })
  tap.equal(dev:arange { 4 }:totable(), { 0, 1, 2, 3 })
  tap.equal(dev:arange { 1, 2, 0.5 }:totable(), { 1, 1.5 })
  tap.equal(dev:tensor({ { 1, 2 }, { 3, 4 } }):totable(), { { 1, 2 }, { 3, 4 } })
  tap.equal(dev:tensor({ true, false }).dtype, "bool")
  tap.equal(dev:tensor(3):item(), 3)
  tap.equal(dev:randn { 2, 3, dtype = "f64" }.dtype, "f64")
  tap.equal(dev:randn({ 2, 3 }):shape(), { 2, 3 })
  tap.raises("invalid", "did you mean 'dtype'", function() return dev:randn { 2, dtpye = "f32" } end)
  tap.raises("invalid", "f16x", function() return dev:randn { 2, dtype = "f16x" } end)
  tap.raises("invalid", "differ in length", function() return dev:tensor { { 1, 2 }, { 3 } } end)
end)

tap.test("the same seed gives the same numbers", function()
  dev:seed(7)
  local a, state = dev:randn { 4 }:totable(), dev:random_state()
  local b = dev:randn { 4 }:totable()
  dev:set_random_state(state)
  tap.equal(dev:randn { 4 }:totable(), b)
  dev:seed(7)
  tap.equal(dev:randn { 4 }:totable(), a)
end)

tap.test("arithmetic, with numbers on either side", function()
  local a, b = dev:tensor { 1, 2, 4 }, dev:tensor { 2, 2, 2 }
  tap.equal((a + b):totable(), { 3, 4, 6 })
  tap.equal((a - 1):totable(), { 0, 1, 3 })
  tap.equal((1 - a):totable(), { 0, -1, -3 })
  tap.equal((2 * a / b):totable(), { 1, 2, 4 })
  tap.equal((8 / a):totable(), { 8, 4, 2 })
  tap.equal((a ^ 2):totable(), { 1, 4, 16 })
  tap.equal((-a):totable(), { -1, -2, -4 })
  tap.equal(a:lt(b):totable(), { true, false, false })
  tap.equal(a:lt(b):where(a, b):totable(), { 1, 2, 2 })
  tap.equal(#a, 3)
end)

tap.test("comparison is identity; < and .. say what to do instead", function()
  local a, b = dev:ones { 2 }, dev:ones { 2 }
  tap.ok(a == a and a ~= b)
  tap.raises("invalid", "a:lt(b)", function() return a < b end)
  tap.raises("invalid", "t:item()", function() return "x" .. a end)
end)

tap.test("dimensions and positions count from 1, values from 0", function()
  local t = dev:tensor { { 1, 5, 3 }, { 9, 7, 8 } }
  tap.equal(t:sum(1):totable(), { 10, 12, 11 })
  tap.equal(t:sum(-1, true):shape(), { 2, 1 })
  tap.equal(t:mean():item(), 5.5)
  tap.equal(t:argmax(2):totable(), { 1, 0 })
  tap.equal(t:select(1, 2):totable(), { 9, 7, 8 })
  tap.equal(t:select(2, -1):totable(), { 3, 8 })
  tap.equal(t:narrow(2, 2, 2):totable(), { { 5, 3 }, { 7, 8 } })
  tap.equal(t:transpose():shape(), { 3, 2 })
  tap.equal(t:transpose(1, 2):totable(), { { 1, 9 }, { 5, 7 }, { 3, 8 } })
  tap.equal(t:permute(2, 1):shape(), { 3, 2 })
  tap.equal(t:unsqueeze(1):shape(), { 1, 2, 3 })
  tap.equal(t:reshape(3, -1):shape(), { 3, 2 })
  tap.equal(t:cat({ t }, 2):shape(), { 2, 6 })
  tap.equal({ select("#", t:chunk(3, 2)), (t:chunk(3, 2)):shape() }, { 3, { 2, 1 } })
  tap.equal(t:size(-1), 3)
  tap.raises("invalid", "dimensions count from 1", function() return t:sum(0) end)
  tap.raises("invalid", "positions count from 1", function() return t:select(1, 3) end)
end)

tap.test("a wrong shape names both shapes and the line of the script", function()
  local a, b = dev:ones { 2, 3 }, dev:ones { 4, 5 }
  local err = tap.raises("invalid", "[2, 3]", function() local c = a:matmul(b) return c end)
  tap.ok(err.message:find("[4, 5]", 1, true), err.message)
  tap.ok(err.message:find("tensor_test.lua:%d+"), err.message)
  tap.raises("invalid", "tensor_test.lua", function() local v = a:item() return v end)
end)

tap.test("tostring does not compute; print shows values", function()
  local t = dev:ones { 2, 2 } * 3
  tap.ok(tostring(t):find("f32[2, 2] cpu", 1, true), tostring(t))
  tap.ok(tostring(t):find("pending", 1, true), tostring(t))
  tap.ok(t:text():find("[[3, 3],\n [3, 3]]", 1, true), t:text())
  print("# " .. dev:arange { 20 }:text())
end)

tap.test("gradients", function()
  local w = dev:tensor({ 1, 2 }, { requires_grad = true })
  tap.equal(w.grad, nil)
  local loss = (w * w):sum()
  loss:backward()
  tap.equal(w.grad:totable(), { 2, 4 })
  tap.raises("state", "", function() loss:backward() end)
  local y = rille.no_grad(function() return (w * 2):sum() end)
  tap.raises("state", "", function() y:backward() end)
  tap.ok(not y.requires_grad and w.requires_grad)
  tap.raises("io", "mine", rille.no_grad, function() rille.error { kind = "io", message = "mine" } end)
  tap.ok((w * 2).requires_grad, "no_grad ends with an error, too")
end)

tap.test("a freed tensor says so", function()
  local t = dev:ones { 2 }
  t:free()
  tap.raises("state", "freed", function() return t + 1 end)
  tap.equal(tostring(t), "Tensor (freed)")
end)

tap.test("reading waits only for the own fiber, also in a coroutine and in pcall", function()
  local seen = rille.all {
    function() return dev:ones { 3 }:sum():item() end,
    function() return coroutine.wrap(function() return dev:ones { 4 }:sum():item() end)() end,
    function() return select(2, pcall(function() return dev:ones { 5 }:sum():item() end)) end,
  }
  tap.equal(seen, { 3, 4, 5 })
end)

tap.test("memory is counted and limited", function()
  local m = dev:memory()
  tap.ok(m.live >= 0 and type(m.summary) == "string")
  dev:limit_memory(64e6)
  tap.raises("memory", "", function() return dev:ones { 64, 1024, 1024 }:sum():item() end)
  dev:limit_memory(0)
  tap.equal(dev:ones { 4 }:sum():item(), 4)
end)

tap.done()
