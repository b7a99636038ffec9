-- hands the verbs tables, coroutines and proxies that claim to be fibers, steps, instances and errors
-- expect: any
local rille = require "rille"
local h = rille.spawn("real", function() rille.sleep("5ms") return 1 end)
local forged = { {}, { name = "real", id = 1 }, setmetatable({}, { __index = h }), setmetatable({}, getmetatable(h)), coroutine.create(print), rille, h.wait, h.id }
for _, f in ipairs(forged) do
  print(pcall(h.wait, f), pcall(h.cancel, f), pcall(h.done, f))
  print(pcall(rille.all, { f }), pcall(rille.race, { f, h }))
  print(pcall(rille.scope, function() return { f, { f, { f, { f } } } } end))
  print(pcall(rille.checkpoint.done, f), pcall(rille.checkpoint.wait, f))
end
for _, k in ipairs { "name", "id", "state", "__index", "fiber" } do pcall(function() h[k] = 2 ^ 60 end) pcall(rawset, h, k, 2 ^ 60) end
print(pcall(h.wait, h), pcall(h.cancel, h, setmetatable({}, { __tostring = function() while true do end end })))
