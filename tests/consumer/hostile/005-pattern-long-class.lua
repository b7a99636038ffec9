-- a character class of five million characters, tested for each of a million bytes in one repetition
-- expect: timeout
local class = "[" .. ("b"):rep(5000000) .. "a]*"
return ("a"):rep(1000000):match(class .. "x")
