-- returns a string within memory whose JSON is six times as long
-- expect: any
return ("\1"):rep(12000000)
