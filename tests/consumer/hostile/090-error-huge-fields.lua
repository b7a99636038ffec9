-- a structured error with huge hint, code, resource and operation, all of them to be escaped
-- expect: error
local rille = require "rille"
local big = ("\1"):rep(6000000)
rille.error { message = big, hint = big, code = big, resource = big, operation = big, provider = big, request_id = big }
