-- rille.plot: a curve on the terminal, drawn with braille characters, which have 2 x 4 dots each.
local native = require "rille.native"

local dots = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } }  -- [row][column] of a character's dots
local width_default, height_default, width_max, height_max = 64, 12, 400, 200
local letters = "abcdefghijklmnopqrstuvwxyz"

local function invalid(message, hint) require("rille").error { kind = "invalid", message = message, hint = hint } end

local function is_finite(x) return x == x and x ~= math.huge and x ~= -math.huge end

-- UTF-8 of a code point from U+0800 on.
local function utf8(code)
  return string.char(0xe0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

-- A list of { x, y } from a list of numbers, of pairs, or a tensor.
local function points_of(name, values)
  if native.kind(values) == "tensor" then values = values:flatten():totable() end
  if type(values) ~= "table" then
    invalid(("rille.plot: %s is a %s; a list of numbers, of pairs or a tensor is needed"):format(name, type(values)),
      "rille.plot { 3, 1, 2 }")
  end
  local points = {}
  for i, value in ipairs(values) do
    local x, y = i, value
    if type(value) == "table" then x, y = value[1], value[2] end
    if type(x) ~= "number" or type(y) ~= "number" then
      invalid(("rille.plot: %s[%d] is a %s; a number or a pair of numbers is needed"):format(name, i, type(value)))
    end
    if is_finite(x) and is_finite(y) then points[#points + 1] = { x, y } end
  end
  return points
end

-- The curves of what the caller gave: { { name =, points = }, .. }, sorted by name.
local function curves_of(values)
  if type(values) == "table" and values[1] == nil and native.kind(values) ~= "tensor" and next(values) ~= nil then
    local curves = {}
    for name, list in pairs(values) do
      curves[#curves + 1] = { name = tostring(name), points = points_of(tostring(name), list) }
    end
    table.sort(curves, function(a, b) return a.name < b.name end)
    return curves
  end
  return { { points = points_of("values", values) } }
end

local function bounds(curves, axis)
  local low, high = math.huge, -math.huge
  for _, curve in ipairs(curves) do
    for _, point in ipairs(curve.points) do
      low, high = math.min(low, point[axis]), math.max(high, point[axis])
    end
  end
  if low == high then low, high = low - 0.5, high + 0.5 end
  return low, high
end

-- The picture: rows of cells, each a set of dots or a letter.
local function canvas(width, height)
  local self = { cells = {} }
  for row = 1, height do self.cells[row] = {} end
  function self.dot(x, y)  -- in dots, from the lower left corner
    local row, column = height - math.floor(y / 4), math.floor(x / 2) + 1
    if row < 1 or row > height or column < 1 or column > width then return end
    local bit_of = dots[4 - y % 4][x % 2 + 1]
    self.cells[row][column] = bit.bor(self.cells[row][column] or 0, bit_of)
  end
  function self.line(x, y, to_x, to_y)
    local steps = math.max(math.abs(to_x - x), math.abs(to_y - y), 1)
    for i = 0, steps do
      self.dot(math.floor(x + (to_x - x) * i / steps + 0.5), math.floor(y + (to_y - y) * i / steps + 0.5))
    end
  end
  function self.letter(x, y, letter)
    local row, column = height - math.floor(y / 4), math.floor(x / 2) + 1
    if row >= 1 and row <= height and column >= 1 and column <= width then self.cells[row][column] = letter end
  end
  function self.row(row)
    local out = {}
    for column = 1, width do
      local cell = self.cells[row][column]
      out[column] = type(cell) == "string" and cell or cell and utf8(0x2800 + cell) or " "
    end
    return table.concat(out)
  end
  return self
end

local function size_option(options, name, default, most)
  local value = options[name]
  if value == nil then return default end
  if type(value) ~= "number" or value % 1 ~= 0 or value < 2 or value > most then
    invalid(("rille.plot: %s = %s; a whole number from 2 to %d is needed"):format(name, tostring(value), most))
  end
  return value
end

---Draws curves on the terminal.
---
---A curve is a list of numbers (the n-th at x = n), a list of pairs `{ x, y }`, or a tensor with one number for each x.
---A table of named curves draws all of them, with a letter at the end of each. Values that are not finite are left out.
---@param values number[]|number[][]|Tensor|table<string, number[]> the curve, or curves by name
---@param options { title: string?, width: integer?, height: integer? }? width and height in characters, by default 64
---and 12
---@error invalid a value is no number, or there is none; width or height is out of range
---@mark ephemeral
---@example
--- local losses = {}
--- for step = 1, 100 do losses[step] = 2 * 0.97 ^ step end
--- rille.plot(losses, { title = "loss" })
return function(values, options)
  options = options or {}
  native.check_options(options, "rille.plot", { "title", "width", "height" })
  local width = size_option(options, "width", width_default, width_max)
  local height = size_option(options, "height", height_default, height_max)
  local curves = curves_of(values)
  local left, right = bounds(curves, 1)
  local low, high = bounds(curves, 2)
  if left > right then invalid("rille.plot: there is no finite value", "rille.plot { 3, 1, 2 }") end
  local picture = canvas(width, height)
  local function at(point)
    return math.floor((point[1] - left) / (right - left) * (width * 2 - 1) + 0.5),
      math.floor((point[2] - low) / (high - low) * (height * 4 - 1) + 0.5)
  end
  for _, curve in ipairs(curves) do
    local x, y
    for _, point in ipairs(curve.points) do
      local to_x, to_y = at(point)
      picture.line(x or to_x, y or to_y, to_x, to_y)
      x, y = to_x, to_y
    end
    curve.x, curve.y = x, y
  end
  local names = {}
  for i, curve in ipairs(curves) do
    if curve.name and curve.x then
      local letter = letters:sub((i - 1) % #letters + 1, (i - 1) % #letters + 1)
      picture.letter(curve.x, curve.y, letter)
      names[#names + 1] = letter .. " " .. curve.name
    end
  end
  local top, bottom = ("%.4g"):format(high), ("%.4g"):format(low)
  local margin = math.max(#top, #bottom)
  if options.title then print((" "):rep(margin + 2) .. options.title) end
  for row = 1, height do
    local label = row == 1 and top or row == height and bottom or ""
    print(("%" .. margin .. "s |%s"):format(label, (picture.row(row):gsub("%s+$", ""))))
  end
  local first, last = ("%.6g"):format(left), ("%.6g"):format(right)
  print((" "):rep(margin + 2) .. first .. (" "):rep(math.max(1, width - #first - #last)) .. last)
  if #names > 0 then print((" "):rep(margin + 2) .. table.concat(names, ", ")) end
end
