-- the reader function of load never ends: it feeds the compiler forever, and swallows the limit's error
-- expect: error
load(function()
  pcall(function() for i = 1, 1e9 do end end)
  return "do end "
end, "=endless")
while true do end
