-- changes the table while next and pairs walk it, passes keys that are not there, and NaN and dead keys
-- expect: any
local t = {}
for i = 1, 2000 do t[i], t["k" .. i], t[i + 0.5] = i, i, i end
for k in pairs(t) do
  t[k] = nil
  for j = 1, 20 do t["n" .. j .. tostring(k)] = j end
  for j = 1, 20 do t["n" .. j .. tostring(k)] = nil end
  if collectgarbage then collectgarbage("step") end
end
print(pcall(next, t, "no such key"), pcall(next, t, 0 / 0), pcall(next, t, {}), pcall(next, t, -1), pcall(next, t, 2 ^ 60))
print(pcall(function() t[0 / 0] = 1 end), pcall(rawset, t, 0 / 0, 1), t[0 / 0])
local f, s, k = pairs(t)
print(pcall(f, {}, "x"), pcall(f, s, "x"), pcall(f, "string", 1), pcall(f))
