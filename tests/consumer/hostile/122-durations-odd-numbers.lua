-- sleeps and time limits that are NaN, infinite, negative, below a nanosecond, or beyond all clocks
-- expect: any
local rille = require "rille"
for _, v in ipairs { 0 / 0, -1, -1 / 0, 1e-300, "0s", "-1s", "1e3s", "nan", "inf", "0x10s", "1h1m", " 1s", "1s ", "", "s", "\0", {}, true,
  "1" .. ("0"):rep(400) .. "ns", ("9"):rep(1000000) .. "s" } do
  print(pcall(rille.sleep, v))
  print(pcall(rille.signal, "s", { timeout = v, default = 0 }))
end
for _, v in ipairs { 1 / 0, 1e300, 2 ^ 63, 2 ^ 53, "9223372036854775807ms", "9223372036854775808s", "106751991168d", "999999999999999999d" } do
  print(pcall(rille.race, { function() rille.sleep(v) return "over" end, function() rille.sleep("2ms") return "ok" end }))
end
