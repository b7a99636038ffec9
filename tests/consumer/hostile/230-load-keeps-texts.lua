-- loads ever new chunks of a megabyte, whose texts are kept for error messages
-- expect: memory
local text = "return 1 --" .. ("x"):rep(2 ^ 20 - 100)
for i = 1, 2000 do
  load(text .. i, "=chunk" .. i)
end
