-- fills 60 MB of string in one C call, over and over, to hold the host's turn above 20 ms
-- expect: timeout
while true do pcall(string.rep, "x", 60000000) end
