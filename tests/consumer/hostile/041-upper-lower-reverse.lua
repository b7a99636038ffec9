-- byte-wise C functions on 6 MB strings: each call holds the turn
-- expect: timeout
local s = ("aBc"):rep(2000000)
while true do s = s:upper() s = s:lower() s = s:reverse() end
