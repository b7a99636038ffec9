-- a coroutine that resumes a coroutine that resumes one, without end: to overflow the C stack
-- expect: error
local function down() return coroutine.wrap(down)() end
down()
