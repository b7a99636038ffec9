-- one matrix product with an expanded inner dimension: a small result, and 1e15 multiplications
-- expect: error
local rille = require "rille"
local one = rille.device("cpu"):ones { 1, 1 }
return one:expand(1000, 1e9):matmul(one:expand(1e9, 1000)):sum():item()
