-- child runs whose id is a path, so that their folder and log would lie outside of the home
-- expect: error
local rille = require "rille"
local args = rille.args { child = 0 }
if args.child > 0 then print("I write a log") return 1 end
local held = true
for _, id in ipairs { "../../../../../../tmp/rille-hostile", "/tmp/rille-hostile", "..", ".", "a/b", "a\0b", "", rille.run_id, rille.run_id .. "/x",
  "../journal.db", ("i"):rep(5000), "a\nb", "\27[2J", "-rf", "lock", { 1 }, 7 } do
  local ok, e = pcall(rille.run, "127-child-run-id-traversal.lua", { child = 1 }, { id = id })
  if ok and type(id) == "string" and id:find("%.%.?/") then held = false end
  print(id, ok, tostring(e))
end
if held then error("all ids were refused or harmless") end
return "ESCAPED"
