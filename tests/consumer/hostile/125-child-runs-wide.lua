-- many child runs of itself at a time, each filling its own memory limit, to multiply the process's memory
-- expect: error
local rille = require "rille"
local args = rille.args { child = 0 }
if args.child > 0 then
  local kept = { ("x"):rep(25000000) }
  kept[2] = ("y"):rep(25000000)
  rille.sleep("1h")
  return #kept
end
local list = {}
for i = 1, 40 do list[i] = i end
rille.map("child", list, function(i) return rille.run("125-child-runs-wide.lua", { child = i }) end)
