-- Spot machines are lost, once unannounced and once with notice; the script itself looks for another.
local rille = require "rille"
local counted = require "counted"
local function try_machine(n)
  local box = rille.rent("trainer-" .. n, { gpu = "H100:8", spot = true, on_loss = "fail", ttl = "8h" })
  local ok, result = pcall(function()
    return box:call("train", {
      args = n, checkpoint = rille.home,
      sim = { duration = "40m", checkpoint_every = "10m", result = { loss = 1.31 } },
    }, function() return { loss = 1.31 } end)
  end)
  box:release()
  if ok then return result end
  if result.kind ~= "state" and result.kind ~= "network" then error(result, 0) end
end
local trained
for n = 1, 6 do
  trained = try_machine(n)
  if trained then break end
  rille.step("lost", function() return n end)    -- or not: one may be gone before its rent has been recorded
end
counted.step("publish", { args = trained }, function() return trained.loss end)
return trained
