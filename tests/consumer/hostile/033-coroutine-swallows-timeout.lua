-- each time limit kills only a coroutine; the next one is started from the error handler of the last
-- expect: timeout
local function spin() while true do end end
while true do
  local c = coroutine.create(spin)
  xpcall(function() return coroutine.resume(c) end, function() return coroutine.resume(coroutine.create(spin)) end)
end
