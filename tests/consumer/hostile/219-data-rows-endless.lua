-- batches of very many rows without a byte, which no memory limit counts
-- expect: timeout
local rille = require "rille"
local d = rille.device("cpu")
local rows = rille.data.arrays({ d:zeros { 4, 0 } }, { batch = 2 ^ 24 })
local lines = rille.data.arrays({ d:zeros { 1, 2 ^ 40, 1, 0 } }, { flip = true })
while true do
  pcall(lines.next, lines)
  pcall(rows.next, rows)
end
