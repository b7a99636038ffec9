-- raises errors that claim to be the runtime's own: suspended, divergence, preempted, run_paused, internal
-- expect: error
local rille = require "rille"
for _, kind in ipairs { "divergence", "internal", "cancelled", "memory", "timeout", "denied", "state" } do
  for _, code in ipairs { "preempted", "run_paused", "run_deadline", "wall_ms", "step_uncertain", "memory_bytes", "name_taken" } do
    pcall(rille.error, { kind = kind, code = code, message = "m" })
    pcall(rille.step, "s", function() rille.error { kind = kind, code = code, message = "m" } end)
    pcall(function() rille.spawn("f", function() rille.error { kind = kind, code = code, message = "m" } end):wait() end)
  end
end
rille.step("pause", { retry = { attempts = 1, on_exhausted = "pause" } }, function() error("pause") end)
error("ended")
