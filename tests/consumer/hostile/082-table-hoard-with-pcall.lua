-- fills memory with tables, catches the memory error and goes on, keeping everything
-- expect: error
local kept, n = {}, 0
while true do
  pcall(function() while true do n = n + 1 kept[n] = { n, n, n, n } end end)
end
