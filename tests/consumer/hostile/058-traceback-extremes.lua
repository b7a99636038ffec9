-- debug.traceback with negative and huge levels, dead and running coroutines, and very deep stacks in a loop
-- expect: error
print(pcall(debug.traceback, "x", -1), pcall(debug.traceback, "x", -2 ^ 31), pcall(debug.traceback, "x", 2 ^ 31 - 1))
print(pcall(debug.traceback, {}, 1), pcall(debug.traceback, coroutine.running(), "x", -5), pcall(debug.traceback, nil, 0 / 0))
local dead = coroutine.create(error)
coroutine.resume(dead, ("m"):rep(1000000))
print(#tostring(debug.traceback(dead, ("m"):rep(1000000), -3)))
local function deep(n)
  if n > 0 then return (deep(n - 1)) end
  while true do debug.traceback(("x"):rep(100000)) end
end
deep(15000)
