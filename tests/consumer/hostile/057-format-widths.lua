-- string.format with absurd widths, precisions, counts of directives and arguments
-- expect: any
local tries = { { "%99999999d", 1 }, { "%.99999999f", 1e308 }, { "%99.99f", 1e308 }, { "%-99.99s", ("x"):rep(1e6) }, { "%*d", 1, 2 },
  { ("%s"):rep(200000), 1 }, { "%n", 1 }, { "%q", ("\0\n\\"):rep(5000000) }, { "%c%c%c", 0, -1, 2 ^ 31 }, { "%d", 2 ^ 63 }, { "%x", -1 },
  { "%a", 0 / 0 }, { "%.3q", "x" }, { "%", 1 }, { "%s" }, { "%p", {} }, { "%5$s", 1 }, { "%lld", 1 }, { "%i", 1 / 0 } }
for i, t in ipairs(tries) do
  local ok, s = pcall(string.format, unpack(t))
  print(i, ok, #tostring(s))
end
