-- One payment and one letter, whatever happens. What is uncertain is looked up where the effect would be: in a file.
local rille = require "rille"
local counted = require "counted"
local book = rille.home .. "/effects"
local function written(token)
  local file = io.open(book)
  if not file then return false end
  local text = file:read("*a")
  file:close()
  return text:find(token, 1, true) ~= nil
end
local function write(token)
  local file = assert(io.open(book, "a"))
  file:write(token, "\n")
  file:close()
end
counted.step("pay", {
  effect = "once",
  probe = function(ctx)
    if written(ctx.token) then return "done", { token = ctx.token, value = "paid" } end
    return "absent"
  end,
}, function(_, ctx)
  write(ctx.token)
  rille.sleep("5s")
  return "paid"
end)
local ok, err = pcall(counted.step, "send", { effect = "once" }, function(_, ctx)
  rille.sleep("5s")
  write(ctx.token)
  return "sent"
end)
if not ok then
  if err.code ~= "step_uncertain" then error(err, 0) end
  local token = err.resource
  if not rille.step("look", function() return written(token) end) then
    counted.step("send after all", {
      effect = "once",
      probe = function(ctx)
        if written(ctx.token) then return "done", { token = ctx.token, value = "sent" } end
        return "absent"
      end,
    }, function(_, ctx)
      write(ctx.token)
      return "sent"
    end)
  end
end
local lines = rille.step("count", function()
  local n = 0
  for _ in io.lines(book) do n = n + 1 end
  return n
end)
if lines ~= 2 then counted.wrong(lines .. " effects, not a payment and a letter") end
return "paid and sent once"
