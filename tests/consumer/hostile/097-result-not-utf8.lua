-- returns a string that is not UTF-8, so that it becomes base64, several copies of it
-- expect: any
return ("\255\254"):rep(20000000)
