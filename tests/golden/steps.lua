-- Steps, their failures and retries, the clock, sleeps, randomness.
local rille = require "rille"
local function die() if not io.open(rille.home .. "/../../survive") then os.execute("sleep 0.05; kill -9 $PPID") end end
local args = rille.args { n = 3 }
local drawn = math.random(1, 1e9)
local list = rille.step("list", { args = drawn }, function()
  return { 1, 2.5, "three", { deep = true }, [5] = 0 / 0 }
end)
local ok, err = pcall(rille.step, "fails", function()
  rille.error { kind = "quota", message = "no more", hint = "wait" }
end)
local tried = rille.step("tried", { retry = { attempts = 3, initial = "1ms" } }, function(attempt)
  if attempt < 3 then error("not yet") end
  return attempt
end)
local at = rille.now()
rille.sleep("nap", "1ms")
local same = rille.step("same", function() return 1 end) + rille.step("same", function() return 2 end)
local new = rille.patched("marker")
rille.step("die", function() die() end)
local last = rille.step("last", function() return "live" end)
return { args.n, list[3], list[4].deep, ok, err.kind, err.message, err.hint, tried, at < rille.now(), same, new, last }
