-- rille.csv: tables as comma-separated values (RFC 4180).
local native = require "rille.native"
local rille = require "rille"

---@class rille.csv
local csv = {}

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

---@class rille.csv.Options
---@field separator? string between the fields: "," by default
---@field header? boolean false: the first line is data, and rows are lists
---@field columns? string[] for `write`: which columns, in this order

local function read_options(verb, options)
  native.check_options(options, verb, { "separator", "header", "columns" })
  options = options or {}
  local separator = options.separator or ","
  if type(separator) ~= "string" or #separator ~= 1 or separator:find('[%w"\r\n]') then
    invalid(verb .. ": separator = " .. rille.inspect(separator) .. "; one character is needed", 'separator = ";"')
  end
  return options, separator
end

-- Fields that are written as numbers are numbers; "007" and "1-2" are texts.
local function value_of(text)
  local whole, rest = text:match("^%-?(%d+)(.*)$")
  if whole and (whole == "0" or whole:sub(1, 1) ~= "0") and
    (rest == "" or rest:find("^%.%d+$") or rest:find("^%.?%d*[eE][+-]?%d+$")) then
    local number = tonumber(text)
    if math.abs(number) <= 2 ^ 53 then return number end
  end
  return text
end

-- Reads a field in quotes that begins at `at`; returns its text and the position after it.
local function quoted(text, at, line)
  local parts, from = {}, at + 1
  while true do
    local stop = text:find('"', from, true)
    if not stop then
      invalid(("rille.csv: the quote that begins in line %d is not closed"):format(line),
        "a quote inside a field in quotes is written twice")
    end
    parts[#parts + 1] = text:sub(from, stop - 1)
    if text:sub(stop + 1, stop + 1) ~= '"' then return table.concat(parts), stop + 1 end
    parts[#parts + 1] = '"'
    from = stop + 2
  end
end

-- Calls row(fields, line) for every line that is not empty.
local function each_row(text, separator, row)
  local at, line = text:sub(1, 3) == "\239\187\191" and 4 or 1, 1
  local stops = "[%" .. separator .. "\r\n]"
  local fields, began = {}, 1
  while at <= #text do
    local field, in_quotes = nil, text:sub(at, at) == '"'
    if in_quotes then
      field, at = quoted(text, at, line)
      line = line + select(2, field:gsub("\n", ""))
    else
      local stop = text:find(stops, at) or #text + 1
      field, at = value_of(text:sub(at, stop - 1)), stop
    end
    local next_one = text:sub(at, at)
    if next_one ~= separator and next_one ~= "\r" and next_one ~= "\n" and next_one ~= "" then
      invalid(("rille.csv: line %d has text after a field in quotes"):format(line), "quotes are around whole fields")
    end
    fields[#fields + 1] = field
    if next_one == separator and at == #text then fields[#fields + 1] = "" end
    if next_one ~= separator or at == #text then
      if #fields > 1 or fields[1] ~= "" or in_quotes then row(fields, began) end
      if next_one == "\r" and text:sub(at + 1, at + 1) == "\n" then at = at + 1 end
      fields, line = {}, line + 1
      began = line
    end
    at = at + 1
  end
end

local function names_of(fields)
  local seen = {}
  for i, name in ipairs(fields) do
    name = tostring(name)
    if seen[name] then
      invalid(("rille.csv: two columns are called '%s'"):format(name), "rename one, or read with header = false")
    end
    fields[i], seen[name] = name, true
  end
  return fields
end

---Returns the rows of a CSV text, each a table by column names, and the list of these names.
---
---The first line has the names. Fields that are written as numbers become numbers; everything in quotes, and what has
---leading zeros, is text. Empty lines are left out.
---@param text string the CSV
---@param options? rille.csv.Options how it is written
---@return table[] rows
---@return string[]? columns nil with `header = false`, where each row is a list
---@mark deterministic
---@error invalid a row with too many or too few fields, an open quote, or two columns of one name
---@example
--- local rows = rille.csv.parse("step,loss\n100,2.31\n")
--- print(rows[1].loss)
function csv.parse(text, options)
  if type(text) ~= "string" then
    invalid("rille.csv.parse: expected the text, got " .. rille.inspect(text), "for a file: rille.csv.read(path)")
  end
  local separator
  options, separator = read_options("rille.csv.parse", options)
  local rows, columns = {}, nil
  each_row(text, separator, function(fields, line)
    if options.header == false then
      rows[#rows + 1] = fields
      return
    end
    if not columns then
      columns = names_of(fields)
      return
    end
    if #fields ~= #columns then
      invalid(("rille.csv: line %d has %d fields, and there are %d columns"):format(line, #fields, #columns),
        "a field with the separator in it is written in quotes; header = false reads rows of any length")
    end
    local row = {}
    for i, name in ipairs(columns) do row[name] = fields[i] end
    rows[#rows + 1] = row
  end)
  return rows, columns
end

---Reads a CSV file, as `rille.csv.parse` does its text.
---@param path string the file
---@param options? rille.csv.Options how it is written
---@return table[] rows
---@return string[]? columns
---@mark step-only
---@error io there is no such file, or it cannot be read
---@error invalid as for `rille.csv.parse`
---@error state called in workflow code
---@error denied without a grant to read the file
---@example
--- local rows = rille.step("read", function() return (rille.csv.read("losses.csv")) end)
function csv.read(path, options) return csv.parse(rille.read(path), options) end

local function field_of(value, separator, where)
  local kind = type(value)
  if value == nil or value == rille.null then return "" end
  if kind == "number" then
    if value % 1 == 0 and math.abs(value) <= 2 ^ 53 then return ("%d"):format(value) end
    local text = ("%.15g"):format(value)
    return tonumber(text) == value and text or ("%.17g"):format(value)
  end
  if kind == "boolean" then return tostring(value) end
  if kind ~= "string" then
    invalid(("rille.csv.write: %s is %s"):format(where, rille.inspect(value)),
      "fields are texts, numbers and booleans; rille.json.encode makes a text of a table")
  end
  -- What would be read as a number again, or as an empty line, needs quotes as well.
  if value == "" or value_of(value) ~= value or value:find('[%' .. separator .. '"\r\n]') or value:find("^%s")
    or value:find("%s$") then
    return '"' .. value:gsub('"', '""') .. '"'
  end
  return value
end

local function columns_of(rows)
  local columns = {}
  for name in pairs(rows[1] or {}) do columns[#columns + 1] = name end
  table.sort(columns, function(a, b) return tostring(a) < tostring(b) end)
  return columns
end

---Writes rows to a CSV file. Rows are tables by column names, or lists.
---
---The columns are those of `columns`, else the sorted names of the first row, and stand in the first line; lists have
---such a line only with `columns`. A missing value is an empty field.
---@param path string the file
---@param rows table[] what to write
---@param options? rille.csv.Options how to write it
---@mark step-only
---@error invalid a value that is no text, number or boolean
---@error io the file cannot be written
---@error state called in workflow code
---@error denied without a grant to write the file
---@example
--- rille.step("save", function()
---   rille.csv.write("losses.csv", { { step = 100, loss = 2.31 } }, { columns = { "step", "loss" } })
--- end)
function csv.write(path, rows, options)
  local separator
  options, separator = read_options("rille.csv.write", options)
  if type(rows) ~= "table" then
    invalid("rille.csv.write: expected a list of rows, got " .. rille.inspect(rows), "{ { step = 1, loss = 2.3 } }")
  end
  local lists = type(rows[1]) == "table" and #rows[1] > 0
  local columns, lines = options.columns or not lists and columns_of(rows) or nil, {}
  local function add(fields, count, line)
    local out = {}
    for i = 1, count do
      out[i] = field_of(fields[i], separator, ("row %d, column %s"):format(line, columns and columns[i] or i))
    end
    if count == 1 and out[1] == "" then out[1] = '""' end  -- an empty line would be left out when read
    lines[#lines + 1] = table.concat(out, separator) .. "\n"
  end
  if columns and options.header ~= false and #columns > 0 then add(columns, #columns, 0) end
  for n, row in ipairs(rows) do
    if type(row) ~= "table" then
      invalid(("rille.csv.write: row %d is %s"):format(n, rille.inspect(row)), "a row is a table")
    end
    local fields, count = row, columns and #columns or #row
    if not lists then
      fields = {}
      for i, name in ipairs(columns) do fields[i] = row[name] end
    end
    add(fields, count, n)
  end
  rille.write(path, table.concat(lines))
end

return csv
