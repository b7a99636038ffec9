-- data sets whose batch, rank and position the script sets itself, so that sizes wrap or rows have no bytes
-- expect: any
-- grants: {"read": ["rille.home"], "write": ["rille.home"], "kernels": true}
local rille, native = require "rille", require "rille.native"
local path = rille.step("file", function()
  local f = assert(io.open(rille.home .. "/text", "wb"))
  f:write(("abcdefgh"):rep(4096))
  f:close()
  return rille.home .. "/text"
end)
local d = rille.device("cpu")
local bytes = rille.data.bytes(path, { context = 4096, batch = 1, shuffle = false })
local rows = rille.data.arrays({ d:zeros { 4, 0 } }, { batch = 1, split = 0.5 })
for _, set in ipairs { bytes, rows } do
  for _, n in ipairs { 2 ^ 52 + 16, -1, 0, 2 ^ 53, 2 ^ 30, 1 / 0, 0.5 } do
    set.batch = n
    local ok, x = pcall(set.next, set)
    if ok then return "ESCAPED next " .. n .. tostring(x) end
    ok, x = pcall(set.validation, set, 2)
    if ok then return "ESCAPED validation " .. n .. tostring(x) end
  end
  set.batch = 2
  local verb = set == bytes and native.bytes_next or native.arrays_next
  for _, share in ipairs { { -1, 2 }, { 2, 2 }, { 0, 0 }, { 0, 2 ^ 40 }, { 2 ^ 53, 2 ^ 53 } } do
    if pcall(verb, set._set, 2, share[1], share[2]) then return "ESCAPED rank" end
  end
  local state = set:state()
  state.cursor = "18446744073709551615"
  if pcall(set.load_state, set, state) then return "ESCAPED cursor" end
end
-- One row has 2^34 bytes, 2^30 rows have 2^64.
local image = d:zeros { 1, 1, 1, 1, dtype = "u8" }
pcall(function() return rille.data.arrays({ image }, { batch = 2 ^ 24, padding = 2 ^ 17, crop = 2 ^ 17 }):next() end)
pcall(function() return rille.data.arrays({ image }, { padding = 2 ^ 62, crop = 2 ^ 40 }):next() end)
