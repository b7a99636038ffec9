-- run: durable
-- Values as texts: rille.inspect, print, long numbers, JSON, CSV, whole files.
local rille = require "rille"
local tap = require "tap"

local function in_step(fn) return rille.step("part", fn) end

tap.test("inspect shows what the prompt shows", function()
  tap.equal(rille.inspect { 1, "a\n", b = { c = true } }, '{ 1, "a\\n", b = { c = true } }')
  tap.equal(rille.inspect("x"), '"x"')
  local long = {}
  for i = 1, 50 do long[i] = i end
  tap.ok(rille.inspect(long):find("... 10 more", 1, true) and not rille.inspect(long):find("41", 1, true))
  tap.ok(rille.inspect(long, { whole = true }):find("50", 1, true), rille.inspect(long, { whole = true }))
  tap.raises("invalid", "did you mean 'whole'", rille.inspect, long, { hole = true })
  tap.equal(rille.inspect(nil), "nil")
  tap.equal(rille.inspect {}, "{}")
  local loop = {}
  loop.me = loop
  tap.equal(rille.inspect(loop), "{ me = <cycle> }")
  tap.ok(rille.inspect(("x"):rep(1000)):find('%.%.%."$'))
  local long = {}
  for i = 1, 100 do long[i] = i end
  tap.ok(rille.inspect(long):find("40,\n  %.%.%. 60 more\n"))
  tap.ok(rille.inspect(rille.device("cpu"):tensor { 1.5, 2 }):find("1.5"))
  tap.equal(rille.inspect(setmetatable({}, { __tostring = function() return "mine" end })), "mine")
end)

tap.test("integers are printed whole", function()
  tap.equal(tostring(123456789012345), "123456789012345")
  tap.equal(tostring(-2 ^ 53), "-9007199254740992")
  tap.equal(tostring(99999999999999), "99999999999999")
  tap.equal(tostring(2 ^ 60), "1.1529215046068e+18")
  tap.equal(tostring(123456789012345.5), "1.2345678901235e+14")
  tap.equal(tostring(math.huge), "inf")
  tap.equal(("%d|%5d|%%|%s|%d"):format(1e20, 3, "x", -1e19), "100000000000000000000|    3|%|x|-10000000000000000000")
  tap.equal(("%d"):format(2 ^ 62), "4611686018427387904")
  tap.equal(("%.1f"):format(1e20), "100000000000000000000.0")
end)

tap.test("JSON goes both ways", function()
  local value = { list = { 1, 2.5, rille.null, { "x" } }, on = true, text = 'a"\n\195\164', ["$schema"] = "s",
    empty = {} }
  local text = rille.json.encode(value)
  tap.equal(text, '{"$schema":"s","empty":[],"list":[1,2.5,null,["x"]],"on":true,"text":"a\\"\\n\195\164"}')
  tap.equal(rille.json.decode(text), value)
  tap.equal(rille.json.encode(123456789012345), "123456789012345")
  tap.equal(rille.json.decode(' {"a": null, "b": [null]} ').a, nil)
  tap.ok(rille.json.decode("null") == rille.null)
  tap.raises("invalid", "rille.json.decode: not valid JSON at byte 4", rille.json.decode, '{"a"}')
  tap.raises("invalid", "expected", rille.json.decode, {})
  tap.raises("invalid", "value.loss[2] is nan", rille.json.encode, { loss = { 1, 0 / 0 } })
  tap.raises("invalid", "value.f is a function", rille.json.encode, { f = print })
  tap.raises("invalid", "no UTF-8", rille.json.encode, { "\255" })
  tap.raises("invalid", "keys that are neither", rille.json.encode, { a = { [5] = 1 } })
end)

tap.test("CSV is read", function()
  local rows, columns = rille.csv.parse('name,loss,id\r\n"a ""b"", c",2.5,007\n\n"two\nlines",-1e-3,"5"\n')
  tap.equal(columns, { "name", "loss", "id" })
  tap.equal(rows, { { name = 'a "b", c', loss = 2.5, id = "007" }, { name = "two\nlines", loss = -0.001, id = "5" } })
  tap.equal(rille.csv.parse("1;x;\n2", { separator = ";", header = false }), { { 1, "x", "" }, { 2 } })
  tap.equal(rille.csv.parse("\239\187\191a\n1"), { { a = 1 } })
  tap.equal(rille.csv.parse(""), {})
  tap.raises("invalid", "line 3 has 1 fields, and there are 2 columns", rille.csv.parse, "a,b\n1,2\n3\n")
  tap.raises("invalid", "the quote that begins in line 2 is not closed", rille.csv.parse, 'a\n"b')
  tap.raises("invalid", "line 1 has text after a field in quotes", rille.csv.parse, '"a"b')
  tap.raises("invalid", "two columns are called 'a'", rille.csv.parse, "a,a\n")
  tap.raises("invalid", "one character is needed", rille.csv.parse, "a", { separator = "::" })
  tap.raises("invalid", "did you mean 'header'", rille.csv.parse, "a", { heder = false })
end)

tap.test("files and CSV are written and read in steps", function()
  in_step(function()
    local folder = os.tmpname()
    os.execute(("rm %s && mkdir %s"):format(folder, folder))
    local path = folder .. "/notes.txt"
    rille.write(path, "a\0b\n")
    rille.write(path, "again\n")
    tap.equal(rille.read(path), "again\n")
    local err = tap.raises("io", "note.txt", rille.read, folder .. "/note.txt")
    tap.equal(err.hint, ("did you mean '%s'?"):format(path))
    tap.equal(tap.raises("io", "", rille.read, folder .. "/losses.csv").hint,
      ("the folder '%s' has notes.txt"):format(folder))
    tap.equal(tap.raises("io", "", rille.read, folder .. "/no/x").hint, ("there is no folder '%s/no'"):format(folder))
    tap.raises("io", "no/x", rille.write, folder .. "/no/x", "text")
    local rows = { { step = 1, loss = 0.1, note = "5" }, { step = 2 ^ 52, loss = 1 / 3, note = 'x, "y"' },
      { step = 3 } }
    rille.csv.write(folder .. "/t.csv", rows)
    tap.equal(rille.read(folder .. "/t.csv"), 'loss,note,step\n0.1,"5",1\n' .. ("%.17g"):format(1 / 3):gsub("0+$", "")
      .. ',"x, ""y""",4503599627370496\n,,3\n')
    local back = rille.csv.read(folder .. "/t.csv")
    tap.equal(back[2], rows[2])
    tap.equal(back[3], { step = 3, loss = "", note = "" })
    rille.csv.write(folder .. "/t.csv", rows, { columns = { "step", "loss" }, separator = ";" })
    tap.ok(rille.read(folder .. "/t.csv"):find("^step;loss\n1;0.1\n"))
    rille.csv.write(folder .. "/t.csv", { { 1, "a" }, { true } })
    tap.equal(rille.read(folder .. "/t.csv"), "1,a\ntrue\n")
    tap.raises("invalid", "row 1, column 1 is { 2 }", rille.csv.write, folder .. "/t.csv", { { { 2 } } })
    os.execute("rm -r " .. folder)
  end)
end)

tap.test("outside of steps files are refused, and say why", function()
  local err = tap.raises("state", "rille.read works only inside rille.step and on agents", rille.read, "x")
  tap.ok(err.hint:find("rille.step(", 1, true))
  tap.raises("state", "rille.write works only inside", rille.write, "x", "")
  tap.raises("state", "rille.read works only inside", rille.csv.read, "x")
  tap.raises("state", "rille.write works only inside", rille.csv.write, "x", {})
end)

tap.done()
