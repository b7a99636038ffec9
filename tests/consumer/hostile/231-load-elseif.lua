-- long chains of elseif, for which the compiler takes quadratic time
-- expect: any
local f = "local function f(a) if a then" .. (" elseif a then"):rep(10500) .. " end end\n"
print(#f)
local s = "" for i = 1, 6 do s = s .. f end
print(load(s))
