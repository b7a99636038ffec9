-- back references compare megabytes at every way of cutting the string
-- expect: timeout
return ("a"):rep(10000000):match("^(a*)%1%1b")
