-- three functions that call each other as tail calls for ever: no loop and no growing stack
-- expect: timeout
local a, b, c
function a() return b() end
function b() return c() end
function c() return a() end
return a()
