-- error tables that look like Rille's own, with fields of wrong types, NaN, NULs and foreign objects
-- expect: error
local rille = require "rille"
local odd = { function() end, {}, 0 / 0, 1 / 0, -1, "\0", "\27[2J", true, coroutine.create(print), rille.device("cpu"), print }
for _, v in pairs { unpack(odd) } do
  for _, k in ipairs { "kind", "message", "hint", "retryable", "retry_after", "http_status", "cause", "code", "traceback" } do
    pcall(rille.error, { message = "m", [k] = v })
    pcall(rille.step, "s", function() error({ kind = "timeout", message = "m", [k] = v }) end)
    pcall(function() rille.spawn("f", function() error({ kind = "network", retryable = true, [k] = v }) end):wait() end)
  end
end
error({ kind = {}, message = print, hint = 0 / 0, cause = { cause = "x" }, traceback = 7, retry_after = 1 / 0 })
