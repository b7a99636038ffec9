-- asks for machine code, which cannot be interrupted, by the comment that the manual names
-- expect: timeout
-- rille: jit
local x = 0
while true do for i = 1, 1000000000 do x = x + i % 3 end end
