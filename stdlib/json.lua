-- rille.json: values as JSON texts, for files and other programs.
local native = require "rille.native"

---@class rille.json
local json = {}

---Returns a value as JSON in one line, with sorted keys.
---
---A table with the keys 1 to n is a list, also an empty one; one with texts as keys is an object. `rille.null` is null.
---@param value any numbers, texts, booleans, `rille.null`, and tables of them
---@return string text
---@mark deterministic
---@error invalid the value has something that JSON does not: a function, NaN, bytes that are no UTF-8, other keys
---@example
--- rille.step("save", function() rille.write("result.json", rille.json.encode { loss = 2.3 }) end)
function json.encode(value) return native.json_encode(value) end

---Returns the value of a JSON text.
---
---null is `rille.null` in lists and alone; as a field of an object it is nil. Numbers are doubles: integers beyond 2^53
---lose digits.
---@param text string the JSON
---@return any value
---@mark deterministic
---@error invalid the text is not JSON; the message names the byte
---@example
--- local config = rille.json.decode('{"layers": 4}')
function json.decode(text) return native.json_decode(text) end

return json
