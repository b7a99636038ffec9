-- Steps that fail twice each before they end well; a crash costs an attempt, too.
local rille = require "rille"
local counted = require "counted"
local sum = 0
for i = 1, 3 do
  sum = sum + counted.step("flaky", { retry = { attempts = 8, initial = "5s" }, args = i }, function(attempt)
    if attempt < 3 then rille.error { kind = "network", message = "not yet", retryable = true } end
    return i
  end)
  rille.sleep("nap", "30s")
end
local ok = pcall(counted.step, "hopeless", { retry = { attempts = 4, initial = "1s" } }, function() error("never") end)
local stamp = counted.step("stamp", { args = rille.now() }, function() return math.random(1, 1000) end)
return { sum = sum, ok = ok, drawn = stamp >= 1 }
