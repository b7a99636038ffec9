-- os.remove, rename, tmpname and their errors, which could tell whether a file exists
-- expect: error
local rille = require "rille"
local leaks = rille.step("os", function()
  local found = {}
  for _, f in ipairs { "remove", "rename", "tmpname", "mkdir", "getenv", "execute" } do
    for _, p in ipairs { "/tmp/rille-hostile-x", "../rille-hostile-x", "HOME", "", "\0" } do
      local ok, v = pcall(function() return os[f](p, p .. ".2") end)
      if ok and v then found[#found + 1] = f .. " " .. p end
    end
  end
  return found
end)
if #leaks == 0 then error("nothing worked") end
return "ESCAPED " .. table.concat(leaks, ", ")
