-- files that are mapped are truncated, after which reading them would end the process
-- expect: any
-- grants: {"read": ["rille.home"], "write": ["rille.home"], "kernels": true}
local rille, native = require "rille", require "rille.native"
local text, ids, tensors = rille.home .. "/text", rille.home .. "/ids.bin", rille.home .. "/x.safetensors"
local function write(name, n)
  rille.step(name .. n, function()
    local f = assert(io.open(name, "wb"))
    f:write(("abcdefgh"):rep(n))
    f:close()
  end)
end
write(text, 65536)
write(ids, 65536)
rille.data.save_tensors(tensors, { x = rille.device("cpu"):zeros { 100000 } })
local bytes = rille.data.bytes(text, { context = 4096, batch = 8 })
local tokens = rille.data.tokens(ids, { context = 4096, batch = 8 })
local rows = rille.data.arrays(tensors, { batch = 80000 })
local lazy = native.tensors_open(tensors)
for _, name in ipairs { text, ids, tensors } do write(name, 0) end
for _, set in ipairs { bytes, tokens, rows } do
  if pcall(set.next, set) then return "ESCAPED " .. tostring(set) end
end
if pcall(bytes.bigram, bytes) or pcall(function() return lazy.x end) then return "ESCAPED" end
