-- a* runs over 50 MB from every start: each single run is a tight loop in C
-- expect: timeout
return ("a"):rep(50000000):match("a*b")
