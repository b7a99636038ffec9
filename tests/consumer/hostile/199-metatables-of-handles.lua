-- takes the metatables of tensors, devices, fibers and others, calls their __gc twice, and gives them new ones
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local function objects()
  return { dev:ones { 1000 }, dev, dev:stream(), dev:record(), rille.spawn("f", function() rille.sleep("1ms") end),
    rille.compile(function(x) return x end), rille.communicator { rank = 0, world = 1, device = "cpu" }, rille.nn.linear(2, 2) }
end
for i = 1, 8 do
  for _, o in ipairs { objects()[i] } do
    local mt = getmetatable(o)
    if type(mt) == "table" then
      for _, k in ipairs { "__gc", "__close", "__index", "__newindex", "__len", "__tostring", "__eq", "__call", "__unm" } do
        local f = rawget(mt, k)
        if type(f) == "function" then pcall(f, o) pcall(f, o) pcall(f, {}) pcall(f) pcall(f, dev) pcall(f, io and "x") end
        pcall(rawset, mt, k, function() while true do end end)
      end
    end
    pcall(setmetatable, o, { __gc = function() while true do end end })
    pcall(tostring, o)
    pcall(function() return o:sum():item() end)
  end
end
collectgarbage()
