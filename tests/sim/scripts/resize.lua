-- A machine that is looked at while it is small, becomes a large one, and works; what is sold out it does not become.
local rille = require "rille"
local counted = require "counted"
local out = rille.scope("growing", function()
  local box = rille.rent("box", { gpu = "A10", ttl = "12h" })
  box:stage("https://example.org/corpus", "corpus", { sim = { size = "1GB" } })
  local small = box:call("look", { sim = { duration = "5m", result = "looked" } }, function() return "looked" end)
  local ok, err = pcall(box.resize, box, { gpu = "B200:8" })
  box:resize { gpu = "A100:8" }
  box:call("train", { sim = { duration = "40m", result = "trained" } }, function() return "trained" end)
  return { small = small, refused = not ok and err.kind, gpu = box.gpu, count = box.gpu_count }
end)
counted.step("publish", { args = out }, function() return out end)
return out
