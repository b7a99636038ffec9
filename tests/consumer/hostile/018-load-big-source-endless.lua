-- compiles big sources again and again and swallows every error
-- expect: timeout
local source = ("local x = 1 "):rep(150) .. ("do end "):rep(2000000)
while true do pcall(load, source, "=x") end
