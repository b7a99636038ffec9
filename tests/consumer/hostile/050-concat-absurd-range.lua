-- table.concat, unpack, select and table.move with ranges that overflow or never end
-- expect: any
print(pcall(table.concat, {}, "", -2 ^ 31, 2 ^ 31 - 1))
print(pcall(table.concat, { 1 }, "", 1, 2 ^ 53))
print(pcall(unpack, {}, -2 ^ 31, 2 ^ 31 - 1))
print(pcall(unpack, {}, 1, 1e7))
print(pcall(unpack, {}, 2 ^ 31 - 1, 2 ^ 31))
print(pcall(select, -2 ^ 31, 1))
print(pcall(select, 2 ^ 31, 1))
print(pcall(string.byte, ("x"):rep(10000000), 1, -1))
print(pcall(string.char, unpack({ 1, 2, 3 }, 1, 7000)))
print(pcall(string.sub, "x", -2 ^ 63, 2 ^ 63))
print(pcall(function() return select("#", unpack({}, 1, 200000)) end))
