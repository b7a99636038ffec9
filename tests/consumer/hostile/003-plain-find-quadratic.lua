-- plain string.find: memchr and memcmp of a long needle at every position, quadratic in one C call
-- expect: timeout
local hay = ("a"):rep(10000000)
local needle = ("a"):rep(4000000) .. "b"
while true do hay:find(needle, 1, true) end
