-- one call of load with 15 MB of empty blocks: the compiler is C and is not interrupted
-- expect: any
local source = ("do end "):rep(2100000)
for i = 1, 3 do print(#source, (load(source, "=x"))) end
