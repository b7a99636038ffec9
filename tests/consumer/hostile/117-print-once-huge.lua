-- one print of the same big string two hundred times, joined before it is written
-- expect: error
local s = ("x"):rep(10000000)
local list = {}
for i = 1, 200 do list[i] = s end
print(unpack(list))
error("it was printed")
