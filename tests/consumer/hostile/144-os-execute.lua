-- starts programs from a step: os.execute and io.popen in all forms
-- expect: denied
local rille = require "rille"
rille.step("run", function()
  for _, c in ipairs { "id > /tmp/rille-hostile-id", "", "sleep 100 &", "\0id" } do
    pcall(function() return os.execute(c) end)
    pcall(function() return io.popen(c, "r"):read("*a") end)
    pcall(function() return io.popen(c, "w") end)
  end
  pcall(function() return os.execute() end)
  os.execute("touch /tmp/rille-hostile-exec")
  return "ESCAPED"
end)
