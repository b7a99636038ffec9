-- the run's own folder: writes, lists, links and fills it without a grant, and climbs out of it
-- expect: error
local rille = require "rille"
local leaks = rille.step("home", function()
  local found = {}
  local ok, home = pcall(function() return rille.home end)
  if not ok then return found end
  for _, p in ipairs { "/../../journal.db", "/../../../outside", "/log", "/lock", "/../../../../../../../etc/passwd", "/x/../../../y", "/." } do
    for _, mode in ipairs(p:find("etc") and { "r" } or { "r", "r+", "a" }) do
      local ok, f = pcall(io.open, home .. p, mode)
      if ok and f then found[#found + 1] = mode .. " " .. p end
    end
  end
  pcall(os.remove, home .. "/../../journal.db")
  pcall(os.rename, home, "/tmp/rille-hostile-home")
  return found
end)
if #leaks == 0 then error("nothing was opened") end
return "ESCAPED " .. table.concat(leaks, ", ")
