-- calls every method of every kind of object on every other kind, and on forged ones
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local t, s, e = dev:ones { 2, 2 }, dev:stream(), dev:record()
local h = rille.spawn("f", function() rille.sleep("1ms") end)
local opt = rille.optim.sgd({ dev:ones { 2, requires_grad = true } })
local c = rille.compile(function(x) return x end)
local objects = { t, dev, s, e, h, opt, c, {}, 1, "x", true, print, coroutine.create(print), setmetatable({}, getmetatable(opt)) }
local methods = {}
for _, n in ipairs { "sum", "item", "free", "matmul", "backward", "to", "copy_", "add_", "view", "cat", "zeros", "tensor", "from_bytes", "record", "wait", "elapsed",
  "done", "cancel", "step", "zero_grad", "state", "load_state", "explain", "synchronize", "release", "profile", "memory", "set_random_state", "shape", "set_grad" } do
  for i = 1, 7 do local ok, f = pcall(function() return objects[i][n] end) if ok and type(f) == "function" then methods[#methods + 1] = f end end
end
for _, f in ipairs(methods) do
  for _, a in ipairs(objects) do
    for _, b in ipairs(objects) do pcall(f, a, b) pcall(f, a, b, { b }, a) end
  end
  pcall(f)
end
