local rille = require "rille"
local counted = require "counted"
local refused = {}
local box
for _, gpu in ipairs { "B200:8", "H200:8" } do
  local why
  box, why = rille.try_rent("trainer " .. gpu, { gpu = gpu, ttl = "12h" })
  if box then break end
  table.insert(refused, why.kind)
end
local sim = { duration = "1h", result = { loss = 1.5 } }
local got = box:call("train", { sim = sim }, function() return { loss = 1.5 } end)
counted.step("report", { args = got }, function() return got.loss end)
return { gpu = box.gpu, refused = refused, loss = got.loss }
