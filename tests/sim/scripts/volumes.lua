-- A volume outlives the machines that have it, one at a time; another ends with its scope, or with the scope that its
-- machine is returned to, and no other scope gets it.
local rille = require "rille"
local counted = require "counted"
local data = rille.volume("data", { size = "200GB", region = "us-east" })
local got = rille.scope("first", function()
  local scratch = rille.volume("scratch", { size = "10GB", region = "us-east", keep = false })
  local box = rille.rent("scratch", { gpu = "T4", volumes = { data = data, tmp = scratch } })
  rille.scope("inner", function()
    local ok, err = pcall(rille.volume, "scratch", { size = "10GB", region = "us-east", keep = false })
    if ok then counted.wrong("two scopes have one volume") end
    if err.code ~= "name_taken" then error(err, 0) end
  end)
  local ok, err = pcall(rille.rent, "other", { gpu = "T4", volumes = { data = data } })
  if ok then counted.wrong("two machines have one volume") end
  if err.code ~= "volume_in_use" then error(err, 0) end
  box:call("fill", { sim = { duration = "10m", result = 1 } }, function() return 1 end)
  return { kind = err.kind, size = rille.volume("data").size }
end)
rille.scope("second", function()
  local box = rille.scope("make", function()
    local scratch = rille.volume("scratch", { size = "10GB", region = "us-east", keep = false })
    return rille.rent("box", { gpu = "L4", volumes = { data = data, tmp = scratch } })
  end)
  box:call("read", { sim = { duration = "5m", result = 2 } }, function() return 2 end)
end)
data:delete()
counted.step("end", function() return true end)
return got
