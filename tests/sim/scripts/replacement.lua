-- The same lease on three machines, each set up as the first.
local rille = require "rille"
local counted = require "counted"
local out = rille.scope("training", function()
  local box = rille.rent("trainer", { gpu = "H100:8", spot = true, ttl = "12h" })
  box:stage("https://example.org/corpus", "corpus", { sim = { size = "1GB" } })
  box:exec("install", { setup = true, argv = { "sh", "install.sh" }, sim = { duration = "1m" } })
  local got = box:call("train", {
    checkpoint = rille.home, sim = { duration = "90m", checkpoint_every = "10m", result = "trained" },
  }, function() return "trained" end)
  box:get("checkpoints/latest", rille.home .. "/out/")
  return got
end)
counted.step("publish", { args = out }, function() return out end)
return out
