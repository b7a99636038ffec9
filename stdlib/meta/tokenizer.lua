---@meta tokenizer
--- Text to token ids and back, by a model's own vocabulary: `rille.data.tokenizer(path)` gives one. Ids count from 0.

---@class Tokenizer
---@field size number one more than the largest id
---@field special string[] the special tokens, as they are spelt
---@field path string where it was read from
---@field pattern string how words are cut, as it was given; "" for the file's own
local Tokenizer = {}

--- The ids of a text. Special tokens that are spelt out in it are ordinary text, unless `special = true`: what comes
--- from others should not be able to say them.
---@param text string any bytes
---@param options? { special: boolean } false
---@return number[] ids
---@mark ephemeral
---@example
--- local ids = tokenizer:encode("Hello world")
function Tokenizer:encode(text, options) end

--- The bytes of ids. A cut list may end in the middle of a character.
---@param ids number|number[] one id, or a list
---@return string bytes
---@mark ephemeral
---@error invalid there is no such token
function Tokenizer:decode(ids) end

--- The id of a token by its bytes, also of a special one; nil: there is none.
---@param token string its bytes
---@return number? id
---@mark ephemeral
function Tokenizer:id_of(token) end

return Tokenizer
