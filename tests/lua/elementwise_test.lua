-- dev:elementwise, dev:reduction and rille.gradcheck.
local rille = require "rille"
local tap = require "tap"
local dev = rille.device("cpu")

local function list(t) return table.concat(t:flatten():totable(), " ") end

tap.test("an expression becomes a function of tensors and numbers", function()
  local f = dev:elementwise("z = x * y + a")
  tap.equal(list(f(dev:tensor { 1, 2 }, dev:tensor { 3, 4 }, 10)), "13 18")
  tap.equal(list(f { a = 1, y = dev:tensor { 3, 4 }, x = 2 }), "7 9")
  tap.equal(list(dev:elementwise("y = x > 0 ? x : slope * x")(dev:tensor { -2, 3 }, 0.5)), "-1 3")
  tap.equal(list(dev:elementwise("y = sqrtf(x) + 1.5e0f")(dev:tensor { 4 })), "3.5")
end)

tap.test("tensors are broadcast, and types meet at the strongest", function()
  local f = dev:elementwise("z = x + y")
  local sum = f(dev:tensor({ { 1 }, { 2 } }), dev:tensor { 10, 20, 30 })
  tap.equal(list(sum), "11 21 31 12 22 32")
  tap.equal(table.concat(sum:shape(), ","), "2,3")
  tap.equal(f(dev:tensor({ 1 }, { dtype = "i32" }), dev:tensor({ 2 }, { dtype = "i64" })).dtype, "i64")
  tap.equal(f(dev:tensor({ 1 }, { dtype = "f64" }), dev:tensor { 2 }).dtype, "f64")
  tap.equal(list(f(dev:zeros { 0 }, dev:zeros { 0 })), "")
  tap.raises("invalid", "which does not fit the other tensors", function() f(dev:zeros { 2 }, dev:zeros { 3 }) end)
end)

tap.test("several results", function()
  local both = dev:elementwise("low = x < y ? x : y; high = x < y ? y : x")
  local low, high = both(dev:tensor { 1, 5 }, dev:tensor { 3, 2 })
  tap.equal(list(low), "1 2")
  tap.equal(list(high), "3 5")
  tap.equal(dev:elementwise("b = x > 1", { dtype = "bool" })(dev:tensor { 1, 2 }).dtype, "bool")
end)

tap.test("mistakes are named", function()
  tap.raises("invalid", "sets nothing", function() dev:elementwise("x + 1") end)
  tap.raises("invalid", "expected a table of options, got max", function() dev:reduction("x", "max") end)
  tap.raises("invalid", "expected a table of options, got T z", function() dev:elementwise("T x", "T z", "z = x") end)
  tap.raises("invalid", "expected an expression", function() dev:elementwise(1) end)
  tap.raises("invalid", "y is nil; a tensor or a number is needed",
    function() dev:elementwise("z = x + y")(dev:zeros { 1 }) end)
  tap.raises("invalid", "no argument is a tensor", function() dev:elementwise("z = x")(1) end)
  tap.raises("invalid", "dtype = f8", function() dev:elementwise("z = x", { dtype = "f8" }) end)
  tap.raises("invalid", "cast it with x:to('f32')",
    function() dev:elementwise("z = x")(dev:zeros { 1, dtype = "bf16" }) end)
  tap.raises("invalid", "", function() dev:elementwise("z = nothing_like_it(x)")(dev:zeros { 1 }) end)
end)

tap.test("a reduction folds the values of an expression", function()
  local x, y = dev:tensor { { 1, 2 }, { 3, 4 } }, dev:tensor { 1, 1 }
  tap.equal(dev:reduction("(x - y) * (x - y)")(x, y):item(), 14)
  tap.equal(list(dev:reduction("x * y", { by = "max", dims = 2 })(x, y)), "2 4")
  tap.equal(dev:reduction("x", { by = "mean" })(x):item(), 2.5)
  tap.raises("invalid", "by = average", function() dev:reduction("x", { by = "average" }) end)
end)

tap.test("gradcheck passes what is right", function()
  local x, y = dev:rand { 2, 3, dtype = "f64" }, dev:rand { 3, 2, dtype = "f64" }
  tap.equal(rille.gradcheck(function(a, b) return a:matmul(b):tanh() end, { x, y }), true)
  tap.equal(rille.gradcheck(function(a, n) return a * n end, { dev:rand { 3 }, 4 }), true)
end)

tap.test("gradcheck names the argument and the place of a wrong derivative", function()
  local wrong = rille.custom_grad {
    forward = function(kept, x) kept.x = x return x * x * x end,
    backward = function(kept, gy) return gy * kept.x * kept.x * 2 end,
  }
  tap.raises("state", "argument 1 at [1] has the gradient", function()
    rille.gradcheck(wrong, { dev:tensor({ 2 }, { dtype = "f64" }) })
  end)
  tap.raises("invalid", "no argument is a tensor", function() rille.gradcheck(wrong, { 1 }) end)
  tap.raises("invalid", "expected a list", function() rille.gradcheck(wrong, dev:zeros { 1 }) end)
end)

tap.done()
