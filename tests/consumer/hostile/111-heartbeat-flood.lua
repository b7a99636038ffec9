-- heartbeats of doubled references and of the greatest size, as fast as possible
-- expect: error
local rille = require "rille"
rille.step("s", { heartbeat_timeout = "1h" }, function(_, ctx)
  local t = ("x"):rep(1000000)
  for i = 1, 20 do t = { t, t } end
  pcall(ctx.heartbeat, ctx, t)
  local s = ("\1"):rep(60000)
  while true do pcall(ctx.heartbeat, ctx, s) end
end)
