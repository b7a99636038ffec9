-- catches the error of the time limit and goes on computing, for ever
-- expect: timeout
while true do pcall(function() while true do end end) end
