-- ends with an error object whose fields, text and concatenation loop when the host looks at it
-- expect: error
local function spin() while true do end end
error(setmetatable({}, { __index = spin, __tostring = spin, __concat = spin, __len = spin, __pairs = spin, __call = spin,
  __eq = spin, __metatable = false, __name = ("n"):rep(1000000) }))
