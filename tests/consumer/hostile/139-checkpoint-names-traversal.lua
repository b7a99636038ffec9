-- the names of models in a checkpoint's state are paths: the files would lie elsewhere
-- expect: error
local rille = require "rille"
local model = rille.nn.linear(2, 2)
local ok, home = pcall(function() return rille.home end)
local directory = (ok and home or ".") .. "/c"
local state = { ["../../../../../../tmp/rille-hostile"] = model, ["/tmp/rille-hostile"] = model, ["a\0b"] = model, [("n"):rep(5000)] = model }
local wrote, e = pcall(rille.checkpoint.save, state, { directory = directory, step = 1, metadata = { ["../x"] = ("m"):rep(1000000) } })
if wrote then return "ESCAPED" end
error(e, 0)
