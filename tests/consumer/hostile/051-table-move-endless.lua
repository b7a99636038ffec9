-- table.move over two thousand million empty places, to itself and backwards
-- expect: error
local move = table.move
if not move then error("there is no table.move") end
pcall(move, {}, 1, 2 ^ 31 - 2, 2)
pcall(move, {}, -2 ^ 31, 2 ^ 31 - 1, 0)
while true do pcall(move, { 1 }, 1, 2 ^ 30, 2) end
