-- a compile error whose chunk name and nearby token are tens of megabytes long
-- expect: error
local name = ("n\n"):rep(10000000)
local f, message = load("x = = " .. ("y"):rep(10000000), name)
error(message, 0)
