-- a sum over an expanded tensor of ten million million numbers: no memory, one operation, hours
-- expect: timeout
local rille = require "rille"
return rille.device("cpu"):ones { 1 }:expand(1e13):sum():item()
