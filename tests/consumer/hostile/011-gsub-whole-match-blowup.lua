-- the replacement string names the whole match very often: the result is quadratic
-- expect: memory or timeout
local s = ("x"):rep(1000000)
return #(s:gsub("^.*$", ("%0"):rep(1000000)))
