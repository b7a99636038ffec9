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
---@param options? { special: boolean, before: boolean, behind: boolean, continued: boolean } all false. before,
--- behind: adds what the model's template has there, such as <s>. continued: the text goes on behind another, so that a
--- vocabulary that puts a blank in front of a text does not do it
---@return number[] ids
---@mark ephemeral
---@example
--- local ids = tokenizer:encode("Hello world")
function Tokenizer:encode(text, options) end

--- The bytes of ids. A cut list may end in the middle of a character. Vocabularies such as Llama 2's take off the blank
--- that they have put in front of a text; not with `continued = true`, for ids that go on behind others.
---@param ids number|number[] one id, or a list
---@param options? { continued: boolean } false
---@return string bytes
---@mark ephemeral
---@error invalid there is no such token
function Tokenizer:decode(ids, options) end

--- The id of a token by its bytes, also of a special one; nil: there is none. Vocabularies of characters (Llama 2,
--- Mistral) spell a blank as U+2581 and bytes as <0x0A>.
---@param token string its bytes, or as the vocabulary spells it
---@return number? id
---@mark ephemeral
function Tokenizer:id_of(token) end

return Tokenizer
