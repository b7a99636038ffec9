-- the error handler of xpcall is an endless loop, entered by an ordinary error
-- expect: timeout
xpcall(function() error("x") end, function() while true do end end)
return "escaped"
