-- Rents, calls, sleeps, fails, retries and releases. Each effect leaves a line in a file, so that kill_loop.py can see
-- what ran how often. The result must be the same whatever is killed on the way.
local rille = require "rille"
local args = rille.args { effects = "effects" }

local function effect(name)
  local file = assert(io.open(args.effects, "a"))
  file:write(name, "\n")
  file:close()
end

local box = rille.rent("box", { provider = "local", ttl = "1h" })
local base = rille.step("prepare", function() effect("prepare"); return 20 end)
local squared = box:call("square", { args = { x = base } }, function(a) return a.x * a.x end)
rille.sleep("pause", "30ms")
local attempts = rille.step("flaky", { retry = { attempts = 5, initial = "5ms" } }, function()
  effect("flaky")
  local n = 0
  for _ in io.lines(args.effects) do n = n + 1 end
  if n < 4 then rille.error { kind = "network", message = "not yet", retryable = true } end
  return "passed"
end)
local parts = rille.map("part", { 1, 2, 3 }, function(i)
  return rille.step("work", function() effect("work" .. i); return i * 10 end)
end)
local program = box:exec("list", { argv = { "sh", "-c", "echo from the box; exit 3" }, check = false })
return { squared = squared, attempts = attempts, sum = parts[1] + parts[2] + parts[3], code = program.code }
