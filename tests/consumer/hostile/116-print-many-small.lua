-- prints empty lines and control sequences without end
-- expect: timeout
while true do print("\27]0;owned\7\27[2J\r\0\n\n") end
