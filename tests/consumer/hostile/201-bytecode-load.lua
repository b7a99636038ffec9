-- loads bytecode by every entrance: dumped, with a byte order mark, a shebang line, in pieces, with modes
-- expect: error
local leaks = {}
local function f() return 42 end
local ok, code = pcall(string.dump, f)
if not ok then code = "\27LJ\2\0\0" end
local forged = { code, "\239\187\191" .. code, "#!/usr/bin/lua\n" .. code, "#\n\27LJ\2\0\0", "\27Lua\81\0\1\4\8\4\8\0", "\27", "\27LJ", "\27LJ\1" .. ("\255"):rep(1000),
  "\27LJ\2" .. ("\128"):rep(100000) .. "\0", " " .. code, "\0" .. code, "-- x\n" .. code }
for i, s in ipairs(forged) do
  for _, mode in ipairs { "b", "bt", "t", "", "x" } do
    for _, loader in ipairs { function() return load(s, "=x", mode) end, function() return loadstring(s, "=x") end,
      function() local n = 0 return load(function() n = n + 1 return n <= #s and s:sub(n, n) or nil end, "=x", mode) end,
      function() local n = 0 return load(function() n = n + 1 return n == 1 and s:sub(1, 1) or n == 2 and #s > 1 and s:sub(2) or nil end, s, mode) end } do
      local ok, g = pcall(loader)
      if ok and type(g) == "function" then leaks[#leaks + 1] = i .. mode pcall(g) end
    end
  end
end
if #leaks == 0 then error("no bytecode was loaded") end
return "ESCAPED " .. table.concat(leaks, " ")
