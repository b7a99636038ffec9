-- exponential backtracking of many lazy pieces in one string.find
-- expect: timeout
return ("a"):rep(4000):find((".-"):rep(14) .. "b")
