-- changes what belongs to the whole process: locale, environment, clock formats that overrun buffers
-- expect: error
local rille = require "rille"
local changed = rille.step("os", function()
  local found = {}
  for _, l in ipairs { "tr_TR.UTF-8", "C.UTF-8", "POSIX", ("x"):rep(1000000) } do
    local ok, v = pcall(function() return os.setlocale(l, "all") end)
    if ok and v then found[#found + 1] = "locale " .. l:sub(1, 20) end
  end
  for _, n in ipairs { "HOME", "PATH", "LD_PRELOAD", "" } do
    local ok, v = pcall(function() return os.getenv(n) end)
    if ok and v then found[#found + 1] = "env " .. n end
  end
  for _, f in ipairs { ("%c"):rep(100000), "%E", "%O", "%", "%Ez", ("%Y"):rep(1000000), "*t", "!%9999999Y" } do
    for _, t in ipairs { 0, -1, 2 ^ 62, 0 / 0, 1 / 0 } do pcall(os.date, f, t) end
  end
  pcall(os.time, { year = 2 ^ 62, month = 0 / 0, day = -2 ^ 31 })
  return found
end)
if #changed == 0 then error("nothing was changed") end
return "ESCAPED " .. table.concat(changed, ", ")
