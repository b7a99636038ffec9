-- Steps whose effects the world counts. It hears of them by rille.log, which is outside of the journal.
local rille = require "rille"
local counted = {}

-- rille.step(name, [options,] fn), which also reports its effect.
function counted.step(name, options, fn)
  if not fn then options, fn = nil, options end
  local once = options ~= nil and options.effect == "once"
  local function body(attempt, ctx)
    local value = fn(attempt, ctx)
    rille.log("effect", { token = ctx.token, once = once })
    return { token = ctx.token, value = value }
  end
  local done
  if options then done = rille.step(name, options, body) else done = rille.step(name, body) end
  rille.log("finished", { token = done.token })
  return done.value
end

-- The world's judgement.
function counted.wrong(what) rille.log("wrong", { what = what }) end

return counted
