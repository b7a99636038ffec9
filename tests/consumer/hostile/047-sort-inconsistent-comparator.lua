-- a comparator that is random, changes and shortens the table, and lies, to read outside of the array
-- expect: any
for round = 1, 50 do
  local t = {}
  for i = 1, 500 do t[i] = math.random(100) end
  print(pcall(table.sort, t, function(a, b)
    local r = math.random(5)
    if r == 1 then t[math.random(500)] = nil end
    if r == 2 then t[#t + 1] = {} end
    if r == 3 then for i = 1, 300 do t[1000 + i] = i end end
    if r == 4 then for k in pairs(t) do t[k] = nil break end end
    return math.random() < 0.5
  end))
end
