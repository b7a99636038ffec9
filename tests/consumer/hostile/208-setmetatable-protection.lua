-- metatables on _G, on nil, numbers, functions and strings, __metatable fields and cycles of them
-- expect: any
for _, v in ipairs { _G, "x", 1, true, print, coroutine.create(print), {} } do
  print(type(v), pcall(setmetatable, v, { __index = function(_, k) return k end, __newindex = function() end, __metatable = "locked" }))
  print(type(v), pcall(getmetatable, v), pcall(setmetatable, v, nil))
end
local mt = {}
mt.__index, mt.__newindex, mt.__metatable = mt, mt, mt
setmetatable(mt, mt)
print(pcall(function() return mt.nothing end), pcall(function() mt.x = 1 end), pcall(getmetatable, mt), pcall(tostring, mt))
print(pcall(function() undefined_global = 1 return undefined_global end), pcall(function() return _G._G._G.never_set end))
for k in pairs(_G) do pcall(function() _G[k] = nil end) pcall(rawset, _G, k, nil) end
return 1
