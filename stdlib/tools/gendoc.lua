-- Writes docs/reference from the annotations in stdlib/: one page per file, and an index. Runs under plain luajit.
-- usage: luajit stdlib/tools/gendoc.lua [--check | --lint] [ROOT]
--   --check  writes nothing; fails when a page is out of date
--   --lint   writes nothing; fails on a public function whose contract is incomplete

local root = "."
local mode = "write"
for _, word in ipairs(arg) do
  if word == "--check" or word == "--lint" then mode = word:sub(3) else root = word end
end

local function load_tool(name) return assert(loadfile(root .. "/stdlib/tools/" .. name .. ".lua"))() end
local luacats, doclint = load_tool "luacats", load_tool "doclint"

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

-- Lists the modules in alphabetical order; meta/ documents the functions that C++ provides.
local function list_files()
  local files = {}
  local pipe = assert(io.popen("cd '" .. root .. "' && find stdlib -name '*.lua' | LC_ALL=C sort"))
  for path in pipe:lines() do
    local name = path:gsub("^stdlib/", "rille/"):gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", ".")
    local source = assert(read(root .. "/" .. path))
    if path ~= "stdlib/tools/gendoc.lua" and not source:find("^%-%- Internal") then
      files[#files + 1] = { name = name, file = path, source = source }
    end
  end
  pipe:close()
  return files
end

-- Returns the page of a module: "rille.meta.instance" -> "instance", "rille.nn.gpt" -> "nn.gpt", "rille.meta.rille"
-- -> "rille". The functions for scripts are in several files (rille_step.lua, ..) but on one page.
local function page_of(module)
  return (module:gsub("^rille%.meta%.rille_%w+$", "rille"):gsub("^rille%.meta%.", ""):gsub("^rille%.", ""))
end

local function is_internal(module) return module:find("^rille%.tools") ~= nil end

local function cell(text) return (text:gsub("|", "\\|"):gsub("\n", " ")) end

local function table_of(out, heads, rows)
  if #rows == 0 then return end
  out("| " .. table.concat(heads, " | ") .. " |")
  out("|" .. string.rep("---|", #heads))
  for _, row in ipairs(rows) do
    for i, text in ipairs(row) do row[i] = cell(text) end
    out("| " .. table.concat(row, " | ") .. " |")
  end
  out("")
end

local function code(text) return text ~= "" and "`" .. text .. "`" or "" end

local function examples(out, entry)
  for _, example in ipairs(entry.examples or {}) do
    out("```lua")
    out((example.text:gsub("%s+$", "")))
    out("```")
    out("")
  end
end

local function named_rows(list)
  local rows = {}
  for i, item in ipairs(list) do
    rows[i] = { code(item.name .. (item.optional and "?" or "")), code(item.type), item.text }
  end
  return rows
end

local function write_function(out, f)
  out("### " .. f.signature)
  out("")
  local notes = { "*" .. (f.mark or "unmarked") .. "*" }
  if f.async then notes[#notes + 1] = "may suspend the calling fiber" end
  if f.nodiscard then notes[#notes + 1] = "use the result" end
  if f.deprecated then notes[#notes + 1] = "**deprecated**" end
  out(table.concat(notes, " · "))
  out("")
  out(f.text)
  out("")
  table_of(out, { "parameter", "type", "" }, named_rows(f.params))
  for _, r in ipairs(f.returns) do
    out("Returns " .. code(r.type) .. (r.text ~= "" and ": " .. r.text or "") .. "\n")
  end
  local rows = {}
  for i, e in ipairs(f.errors) do rows[i] = { code(e.kind), e.text } end
  table_of(out, { "error", "when" }, rows)
  examples(out, f)
end

local function write_type(out, entry)
  out("### " .. entry.name .. (entry.parents and " : " .. entry.parents or ""))
  out("")
  if entry.type then out(code(entry.type) .. "\n") end
  if entry.text ~= "" then out(entry.text .. "\n") end
  table_of(out, { "field", "type", "" }, named_rows(entry.fields or {}))
  examples(out, entry)
end

local function page(index, module, names)
  local lines = {}
  local function out(line) lines[#lines + 1] = line end
  out("<!-- Written by stdlib/tools/gendoc.lua from " .. index.modules[module].file .. "; edit that file. -->")
  out("# " .. page_of(module))
  out("")
  if index.modules[module].text ~= "" then out(index.modules[module].text .. "\n") end
  for _, name in ipairs(names) do
    local entry = index.entries[name]
    if entry.kind == "function" then write_function(out, entry)
    elseif #(entry.fields or {}) > 0 or entry.text ~= "" then write_type(out, entry) end
  end
  return (table.concat(lines, "\n"):gsub("\n+$", "") .. "\n")
end

local function front_page(index, modules)
  local lines = {}
  local function out(line) lines[#lines + 1] = line end
  out("<!-- Written by stdlib/tools/gendoc.lua; edit the annotations in stdlib/. -->")
  out("# Reference")
  out("")
  out("Marks: *durable* calls are journaled, and a resumed run takes their recorded result; *deterministic* ones give")
  out("the same result in a re-run; *step-only* ones work only inside steps and on agents; *ephemeral* ones touch the")
  out("moment (a screen, a log) and are not part of a run's history.")
  out("")
  for _, module in ipairs(modules) do
    local rows = {}
    for _, name in ipairs(module.names) do
      local e = index.entries[name]
      if e.kind == "function" then rows[#rows + 1] = { code(e.signature), e.mark or "", e.summary } end
    end
    out("## [" .. page_of(module.name) .. "](" .. page_of(module.name) .. ".md)")
    out("")
    if index.modules[module.name].summary ~= "" then out(index.modules[module.name].summary .. "\n") end
    table_of(out, { "function", "mark", "" }, rows)
  end
  return (table.concat(lines, "\n"):gsub("\n+$", "") .. "\n")
end

local function all_pages(index, files)
  local modules, by_module, pages = {}, {}, {}
  local first = {}
  for _, file in ipairs(files) do first[page_of(file.name)] = first[page_of(file.name)] or file.name end
  for _, name in ipairs(index.order) do
    local module = first[page_of(index.entries[name].module)]
    by_module[module] = by_module[module] or {}
    table.insert(by_module[module], name)
  end
  for _, file in ipairs(files) do
    local names = by_module[file.name]
    if names and not is_internal(file.name) then
      modules[#modules + 1] = { name = file.name, names = names }
      pages[page_of(file.name) .. ".md"] = page(index, file.name, names)
    end
  end
  table.sort(modules, function(a, b)
    local x, y = page_of(a.name), page_of(b.name)
    if (x == "rille") ~= (y == "rille") then return x == "rille" end
    return x < y
  end)
  pages["README.md"] = front_page(index, modules)
  return pages
end

local function existing_pages(folder)
  local names = {}
  local pipe = assert(io.popen("ls '" .. folder .. "' 2>/dev/null"))
  for name in pipe:lines() do names[#names + 1] = name end
  pipe:close()
  return names
end

local function write_pages(pages, folder)
  os.execute("mkdir -p '" .. folder .. "'")
  for name, text in pairs(pages) do
    local file = assert(io.open(folder .. "/" .. name, "wb"))
    file:write(text)
    file:close()
  end
  for _, name in ipairs(existing_pages(folder)) do
    if not pages[name] then os.remove(folder .. "/" .. name) end
  end
end

local function stale_pages(pages, folder)
  local stale = {}
  for name, text in pairs(pages) do
    if read(folder .. "/" .. name) ~= text then stale[#stale + 1] = "docs/reference/" .. name .. " is stale" end
  end
  for _, name in ipairs(existing_pages(folder)) do
    if not pages[name] then stale[#stale + 1] = "docs/reference/" .. name .. " describes nothing that exists" end
  end
  table.sort(stale)
  if #stale > 0 then stale[#stale + 1] = "regenerate them: luajit stdlib/tools/gendoc.lua" end
  return stale
end

local files = list_files()
local index = luacats.index(files)
local folder = root .. "/docs/reference"
local problems = {}
if mode == "lint" then
  problems = doclint.problems(index, luacats.marks)
elseif mode == "check" then
  problems = stale_pages(all_pages(index, files), folder)
else
  write_pages(all_pages(index, files), folder)
end
for _, problem in ipairs(problems) do print(problem) end
print(string.format("gendoc: %d files, %d names, %d problems", #files, #index.order, #problems))
os.exit(#problems == 0 and 0 or 1)
