-- streams and events by the hundred thousand, waits in circles, and use after their release
-- expect: any
local rille = require "rille"
local dev = rille.device("cpu")
local kept = {}
for i = 1, 300000 do
  local ok, s = pcall(dev.stream, dev)
  if not ok then break end
  kept[i] = { s, s:record(), dev:record() }
  pcall(s.wait, s, kept[i][3])
  if i % 3 == 0 then s:release() pcall(s.record, s) pcall(s.synchronize, s) pcall(s.release, s) end
  if i % 2000 == 0 then rille.sleep("1ms") end
end
print(#kept, pcall(kept[1][2].elapsed, kept[1][2], kept[2][2]), pcall(kept[1][2].wait, {}), pcall(dev.wait, dev, kept))
