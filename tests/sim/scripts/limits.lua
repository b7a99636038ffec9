-- Limits of time: of an attempt, between heartbeats, of whatever runs in a race with a sleep.
local rille = require "rille"
local counted = require "counted"
local told = {}
local patient = { timeout = "1m", retry = { attempts = 6, initial = "2s" } }
local ok = pcall(counted.step, "slow", patient, function(attempt)
  if attempt < 3 then rille.sleep("2m") end
  return attempt
end)
told.slow = ok
ok = pcall(rille.step, "silent", { heartbeat_timeout = "30s", retry = { attempts = 2, initial = "1s" } },
  function(attempt, ctx)
    ctx:heartbeat { at = attempt }
    rille.sleep("5m")
  end)
told.silent = ok
local value, who = rille.race {
  work = function() rille.rent("box", { gpu = "T4" }):call("dig", { sim = { duration = "9h" } }, function() end) end,
  limit = function() rille.sleep("2h") return "over" end,
}
told.who = who
counted.step("after", function() return true end)
return told
