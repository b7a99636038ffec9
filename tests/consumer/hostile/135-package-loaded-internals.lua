-- looks for loaded inner modules and calls each function found in them with no, odd and forged arguments
-- expect: any
local seen, count = {}, 0
local function visit(t, name, depth)
  if seen[t] or depth > 4 then return end
  seen[t] = true
  local keys = {}
  for k in next, t do if type(k) == "string" then keys[#keys + 1] = k end end
  for _, k in ipairs(keys) do
    local ok, v = pcall(rawget, t, k)
    if ok and type(v) == "table" then visit(v, name .. "." .. k, depth + 1)
    elseif ok and type(v) == "function" and k ~= "exit" and k ~= "abort" then
      count = count + 1
      pcall(v) pcall(v, {}) pcall(v, -1, "\0") pcall(v, "x", 0 / 0, print) pcall(v, setmetatable({}, {}))
    end
  end
  local mt = getmetatable(t)
  if type(mt) == "table" then visit(mt, name .. "<meta>", depth + 1) end
end
local ok, loaded = pcall(function() return package.loaded end)
if ok and type(loaded) == "table" then visit(loaded, "loaded", 0) end
visit(require "rille", "rille", 0)
return count
