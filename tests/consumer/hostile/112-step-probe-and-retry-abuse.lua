-- policies of a step with NaN, negative, huge and contradictory numbers, and a probe that loops
-- expect: any
local rille = require "rille"
local odd = { 0 / 0, -1, 1 / 0, 1e300, 2 ^ 53, "", "1e999d", "-5s", "99999999999999d", {}, print, "\0", true }
for _, v in ipairs(odd) do
  for _, k in ipairs { "retry", "timeout", "total_timeout", "heartbeat_timeout", "crashes_max", "effect", "probe", "db", "sim" } do
    pcall(rille.step, "s", { [k] = v }, function() return 1 end)
  end
  for _, k in ipairs { "attempts", "initial", "factor", "cap", "max_elapsed", "on_exhausted" } do
    pcall(rille.step, "r", { retry = { [k] = v, attempts = k == "attempts" and v or 2 } }, function() return 1 end)
  end
end
pcall(rille.step, "retry after", { retry = 5 }, function() rille.error { message = "m", retryable = true, retry_after = 0 / 0 } end)
