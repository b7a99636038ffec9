---@meta tokenizer
--- Converts text to token ids and back, with a model's own vocabulary: `rille.data.tokenizer(path)` makes one. Ids
--- count from 0.

---@class Tokenizer
---@field size number one more than the largest id
---@field special string[] the special tokens, as text
---@field path string the file that it was read from
---@field pattern string how text is split into words, as given; "" for the file's own
local Tokenizer = {}

--- The ids of a text. Special tokens written in the text are ordinary text unless `special = true`: foreign text should
--- not be able to produce them.
---@param text string any bytes
---@param options? { special: boolean, before: boolean, behind: boolean, continued: boolean } all false. before,
---behind: adds the start or end of the model's template, such as <s>. continued: the text continues another text, so
---that a vocabulary that puts a blank in front of a text does not do so here
---@return number[] ids
---@mark ephemeral
---@example
--- local ids = tokenizer:encode("Hello world")
function Tokenizer:encode(text, options) end

--- The bytes of ids. A cut list may end in the middle of a character. Vocabularies such as Llama 2's remove the blank
--- that they put in front of a text; not with `continued = true`, for ids that continue others.
---@param ids number|number[] one id, or a list
---@param options? { continued: boolean } false
---@return string bytes
---@mark ephemeral
---@error invalid there is no such token
function Tokenizer:decode(ids, options) end

--- The id of a token by its bytes, also of a special token; nil: there is none. Character vocabularies (Llama 2,
--- Mistral) write a blank as U+2581 and bytes as <0x0A>.
---@param token string its bytes, or as written in the vocabulary
---@return number? id
---@mark ephemeral
function Tokenizer:id_of(token) end

return Tokenizer
