-- string.rep with counts and separators whose product overflows 32, 53 and 64 bits
-- expect: any
local tries = { { "x", 2 ^ 31 - 1 }, { "x", 2 ^ 31 }, { "x", 2 ^ 32 + 1 }, { "xx", 2 ^ 63 }, { "", 2 ^ 31 - 1 }, { "", 2 ^ 31 - 1, "" },
  { "", 2 ^ 31 - 1, "x" }, { "x", -2 ^ 31 }, { "x", 0 / 0 }, { "x", 1 / 0 }, { ("x"):rep(65536), 65537 }, { "x", 65537, ("y"):rep(65536) } }
for i, t in ipairs(tries) do
  local ok, s = pcall(string.rep, t[1], t[2], t[3])
  print(i, ok, ok and #s)
end
