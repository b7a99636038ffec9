-- numbers of fifty million digits, leading zeros, exponents and hexadecimal fractions
-- expect: any
local texts = { ("1"):rep(20000000), ("0"):rep(50000000), "0x" .. ("f"):rep(20000000), "0." .. ("0"):rep(20000000) .. "1",
  ("9"):rep(1000) .. "e-999999999999", "0x1p99999999999", ("1"):rep(10000000) .. "e-10000000" }
for i = 1, #texts do print(i, tonumber(texts[i]), tonumber(texts[i], 36) ~= nil) end
