-- ends with an error message of nearly all memory, with control characters that JSON makes six times longer
-- expect: error
error(("\1"):rep(20000000), 0)
