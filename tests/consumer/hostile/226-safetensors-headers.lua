-- files of tensors without a value, whose headers take memory outside of Lua for as long as they are open
-- expect: memory
-- grants: {"read": ["rille.home"], "write": ["rille.home"], "kernels": true}
local rille, native = require "rille", require "rille.native"
local path = rille.step("file", function()
  local parts = {}
  for i = 1, 10000 do parts[i] = ('"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'):format(i) end
  local header = "{" .. table.concat(parts, ",") .. "}"
  local f, n = assert(io.open(rille.home .. "/x.safetensors", "wb")), #header
  f:write(string.char(n % 256, math.floor(n / 256) % 256, math.floor(n / 65536), 0, 0, 0, 0, 0), header)
  f:close()
  return rille.home .. "/x.safetensors"
end)
local kept = {}
for i = 1, 1000 do
  kept[i] = native.tensors_open(path)
  rille.sleep(0)
end
