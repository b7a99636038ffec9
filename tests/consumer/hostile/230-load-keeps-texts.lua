-- loads ever new chunks of 128 KB, whose texts are kept for error messages
-- expect: memory or timeout
local text = "return 1 --" .. ("x"):rep(2 ^ 17 - 100)
for i = 1, 20000 do
  load(text .. i, "=chunk" .. i)
end
