-- catches the limit's error inside a gsub callback, below a C frame, and goes on there
-- expect: timeout
while true do
  (("x"):rep(1000)):gsub(".", function()
    while true do pcall(function() while true do end end) end
  end)
end
