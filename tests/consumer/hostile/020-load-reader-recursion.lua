-- load calls its reader, which calls load, and so on: recursion through the compiler's frames
-- expect: error
local function reader() return load(reader) and "" end
load(reader)
error("the recursion ended by itself")
