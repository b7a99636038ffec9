-- burns processor time inside a callback of string.gsub, which the turn cannot suspend
-- expect: timeout
("x"):gsub(".", function() while true do end end)
return "escaped"
