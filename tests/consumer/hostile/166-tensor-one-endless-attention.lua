-- one attention of millions of expanded queries and keys, whose scores are never stored
-- expect: error
local rille = require "rille"
local one = rille.device("cpu"):ones { 1, 1, 1, 1 }
local q, k = one:expand(1, 1, 2000000, 1), one:expand(1, 1, 1e9, 1)
return q:scaled_dot_product_attention(k, k):sum():item()
