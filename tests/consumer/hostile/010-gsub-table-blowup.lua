-- gsub by a table whose value is large: a million replacements of a megabyte each
-- expect: memory
local big = ("y"):rep(1000000)
return #(("x"):rep(1000000):gsub(".", { x = big }))
