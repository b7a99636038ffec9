-- a string that doubles itself until memory is gone
-- expect: memory
local s = "xx"
while true do s = s .. s end
