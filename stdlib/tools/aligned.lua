-- Internal: formats rows of texts as aligned columns; the first `left` columns are left-aligned, the rest
-- right-aligned.
local function aligned(rows, left)
  local widths, lines = {}, {}
  for _, cells in ipairs(rows) do
    for i, text in ipairs(cells) do widths[i] = math.max(widths[i] or 0, #text) end
  end
  for n, cells in ipairs(rows) do
    local out = {}
    for i, text in ipairs(cells) do
      local space = (" "):rep(widths[i] - #text)
      out[i] = i <= left and text .. space or space .. text
    end
    lines[n] = (table.concat(out, "  "):gsub("%s+$", ""))
  end
  return table.concat(lines, "\n")
end

return aligned
