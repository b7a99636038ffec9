-- functions that are meant for the command's prompt or for agents, called from a script with forged helpers
-- expect: error
local rille = require "rille"
local primitives = setmetatable({}, { __index = function(_, k) return function(...) print("asked for", k, ...) return nil end end })
for _, f in ipairs { function() return require("rille.repl").main(primitives) end, function() return rille.repl.main(primitives) end,
  function() return rille.repl.main({ read = function() return "return require('ffi')" end }) end, function() return rille.leave() end,
  function() return rille.preempting() end, function() return rille.home .. rille.run_id .. rille.script_directory end } do
  print(pcall(f))
end
local n = 0
rille.repl.main { read = function() n = n + 1 return n < 5 and "print(io.open('/etc/passwd'))" or nil end }
error("the prompt ended")
