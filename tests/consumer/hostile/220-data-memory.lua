-- batches, images and folders far beyond the limit of memory
-- expect: memory
-- grants: {"read": ["rille.home"], "write": ["rille.home"]}
local rille = require "rille"
local path = rille.step("files", function()
  for name, size in pairs { text = 2 ^ 16, big = 2 ^ 27 } do
    local f = assert(io.open(rille.home .. "/" .. name, "wb"))
    f:seek("set", size)
    f:write("end")
    f:close()
  end
  return rille.home
end)
local bytes = rille.data.bytes(path .. "/text", { context = 4096, batch = 1 })
bytes.batch = 400000
pcall(bytes.next, bytes)
local image = rille.device("cpu"):zeros { 1, 1, 1, 1, dtype = "u8" }
local images = rille.data.arrays({ image }, { batch = 16, padding = 2 ^ 17, crop = 2 ^ 17 })
pcall(images.next, images)
return tostring(rille.data.bytes(path))
