-- plain string.find: memchr and memcmp of a long needle at every position, quadratic in one C call
-- expect: timeout
local hay = ("a"):rep(20000000)
local needle = ("a"):rep(8000000) .. "b"
return hay:find(needle, 1, true)
