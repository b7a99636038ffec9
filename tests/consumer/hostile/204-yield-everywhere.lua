-- yields and waits across every kind of C frame: gsub, sort, load, metamethods, iterators, require, error handlers
-- expect: any
local rille = require "rille"
local function pause() return rille.sleep("1ms") or "x" end
for _, p in ipairs { pause, coroutine.yield, function() return rille.step("s", function() return "x" end) end, function() return rille.device("cpu"):ones { 1 }:item() end } do
  for i, f in ipairs {
    function() return ("abc"):gsub(".", p) end, function() return load(function() p() return nil end) end, function() return table.sort({ 3, 2, 1 }, p) end,
    function() return setmetatable({}, { __index = p }).x end, function() for _ in p do break end end, function() return xpcall(error, p) end,
    function() return setmetatable({}, { __lt = p }) < setmetatable({}, { __lt = p }) end, function() return tostring(setmetatable({}, { __tostring = p })) end,
    function() return setmetatable({}, { __concat = p }) .. "x" end, function() return coroutine.wrap(function() return coroutine.wrap(p)() end)() end,
    function() return print(setmetatable({}, { __tostring = p })) end, function() return rille.no_grad(p) end, function() return rille.nn.with_seed(1, p) end,
    function() return rille.autocast("bf16", p) end, function() return rille.device("cpu"):profile(p) end, function() return rille.compile(p)() end,
    function() return string.format("%s", setmetatable({}, { __tostring = p })) end, function() return table.concat({ setmetatable({}, { __tostring = p }) }) end,
  } do print(i, pcall(f)) print(i, pcall(coroutine.wrap(f))) end
end
coroutine.yield("out of the main fiber")
