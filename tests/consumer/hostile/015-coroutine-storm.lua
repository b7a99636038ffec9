-- creates, starts and drops coroutines as fast as possible, each with a grown stack
-- expect: timeout
local function grow(n) if n == 0 then coroutine.yield() else return grow(n - 1), n end end
while true do
  local c = coroutine.create(grow)
  coroutine.resume(c, 200)
end
