-- a* runs over 15 MB from every start: each single run is a tight loop in C
-- expect: timeout
return ("a"):rep(15000000):match("a*b")
