-- functions that change, wait, read, recurse, cancel, raise and loop while they are recorded
-- expect: timeout
local rille = require "rille"
local dev = rille.device("cpu")
local n, f = 0, nil
local x = dev:ones { 4 }
for _, body in ipairs {
  function(t) n = n + 1 return n % 2 == 0 and t + 1 or t * t end, function(t) return t:sum():item() end, function(t) rille.sleep("1ms") return t end,
  function(t) return f(t) end, function(t) error({ t }) end, function(t) coroutine.yield(t) return t end, function(t) return rille.compile(function(u) return u end)(t) end,
  function(t) t:free() return t end, function(t) return { t } end, function(t) dev:synchronize() return t end, function(t) rille.step("s", function() end) return t end,
  function(t) for i = 1, 20000 do t = t + 1 end return t end, function(t) x:free() x = dev:ones { 4 } return t end,
} do
  f = rille.compile(body, { check = true, accumulate = n % 3 + 1, recompute = "norms" })
  for i = 1, 4 do pcall(function() return f(dev:ones { 4 }):sum():item() end) end
  pcall(f.explain, f)
end
f = rille.compile(function(t) while true do end end)
f(x)
