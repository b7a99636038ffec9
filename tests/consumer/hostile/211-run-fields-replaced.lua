-- gives rille.home, run_id and script_directory other values, and then uses what depends on them
-- expect: error
local rille = require "rille"
for _, k in ipairs { "home", "run_id", "script_directory" } do
  for _, v in ipairs { "/", "/etc", "/tmp/rille-hostile-home", "\0", {} } do
    pcall(function() rille[k] = v end)
    pcall(rawset, rille, k, v)
    pcall(function() getmetatable(rille).__index[k] = v end)
    local ok, f = pcall(loadfile, "passwd")
    if ok and f then return "ESCAPED" end
    pcall(dofile, "passwd")
    pcall(require, "passwd")
    pcall(rille.run, "passwd")
    pcall(rille.checkpoint.save, { rille.nn.linear(1, 1) }, { directory = "hostile", step = 1 })
  end
end
error("nothing was reached")
