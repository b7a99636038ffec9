-- %b scans to the end of a huge string from every position, without ever trying another way
-- expect: timeout
return ("("):rep(15000000):find("%b()")
