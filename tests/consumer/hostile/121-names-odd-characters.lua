-- names with NUL, newlines, escape sequences, path parts, broken UTF-8 and quotes in every verb that takes one
-- expect: any
local rille = require "rille"
local names = { "", "\0", "a\0b", "../../../../tmp/rille-hostile", "/etc/passwd", "a\nb", "\27[31mred", "\255\254", "'; DROP TABLE runs; --",
  "%s%n%x", "main/a#1", "#", "a/b%2F#1", ".", "..", ("n"):rep(200), ("n"):rep(201), "\226\128\174txt", "$num", "{\"a\":1}", " ", "con" }
for _, n in ipairs(names) do
  pcall(rille.step, n, function() return n end)
  pcall(function() rille.spawn(n, function() rille.step(n, function() return 1 end) end):wait() end)
  pcall(rille.scope, n, function() rille.sleep(n, "1ms") end)
  pcall(rille.map, n, { 1, 2 }, { key = function(_, i) return n .. i end }, function() rille.now() end)
  pcall(rille.signal, n, { timeout = "1ms", default = n })
  pcall(rille.pool, n, { slots = 1 }, function() return 1 end)
  pcall(rille.patched, n)
  pcall(rille.log, n, { [n] = n })
  pcall(rille.measure, { workload = n, items = 1 })
  pcall(rille.budget, { tag = n, limit = 1 })
end
