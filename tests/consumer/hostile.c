/* Scripts that want to escape: each gets 64 MB, a slice of 200 ms and a wall of 2 s, and must end with an error soon
   after, whatever it does. */
#define _GNU_SOURCE /* clock_gettime */
#include <rille.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

enum { wall_ms = 2000, late_ms = wall_ms + 250 };
static int given_up_ms = wall_ms + 4000; /* on a machine that is busy; RILLE_TEST_GRACE_MS: under sanitizers */
static int relaxed = 0;                  /* then the wall may be over before memory is */

#define SPIN "local function spin() while true do end end "
#define RILLE "local rille = require 'rille' " SPIN

#define STEP(code) "return require('rille').step('x', { retry = 1 }, function() " code " end)"
#define TENSORS "local rille = require 'rille' local d = rille.device('cpu') "
/* A thousand products: about 20 s of two cores. */
#define PRODUCTS_IN                                                                          \
  "local function products() local d = rille.device('cpu') local x = d:randn{ 1000, 1000 } " \
  "for i = 1, 1000 do x = x:matmul(x) * 1e-2 end return x:sum() end "
#define PRODUCTS "local rille = require 'rille' " PRODUCTS_IN "local x = products() "

#define DOUBLES "local t = {} for i = 1, 60 do t = { t, t } end "

/* What each must end with: an error of that kind, or ANY, or NONE for one that is harmless and may end well, or ENDS
   for one that must. */
enum { ANY = -1, NONE = -2, ENDS = -3 };

static const struct {
  const char *name, *source;
  int kind;
} scripts[] = {
    {"loop", "while true do end", RILLE_TIMEOUT},
    {"pcall in a loop", SPIN "while true do pcall(spin) end", RILLE_TIMEOUT},
    {"caught", SPIN "pcall(spin) return 'done'", RILLE_TIMEOUT},
    {"caught, then another error", SPIN "pcall(spin) error('mine')", RILLE_TIMEOUT},
    {"xpcall", SPIN "xpcall(spin, spin)", RILLE_TIMEOUT},
    {"xpcall in a loop", SPIN "while true do xpcall(spin, spin) end", RILLE_TIMEOUT},
    {"xpcall, error in the body", SPIN "xpcall(error, spin)", RILLE_TIMEOUT},
    {"xpcall, nested handlers", SPIN "xpcall(spin, function() xpcall(spin, spin) end)", RILLE_TIMEOUT},
    {"xpcall in a coroutine", SPIN "coroutine.wrap(function() xpcall(spin, spin) end)()", RILLE_TIMEOUT},
    {"xpcall, the handler throws", SPIN "while true do xpcall(spin, error) end", RILLE_TIMEOUT},
    {"coroutine", SPIN "while true do pcall(coroutine.wrap(spin)) end", RILLE_TIMEOUT},
    {"coroutines that yield",
     "local co = coroutine.wrap(function() while true do coroutine.yield() end end) "
     "while true do co() end",
     RILLE_TIMEOUT},
    {"coroutine in a coroutine", "local function f() return coroutine.wrap(f)() end while true do pcall(f) end", ANY},
    {"jit comment", "-- rille: jit\nlocal n = 0 while true do n = n + 1 end", RILLE_TIMEOUT},
    {"jit comment in load", "load('-- rille: jit\\nlocal n = 0 while true do n = n + 1 end')()", RILLE_TIMEOUT},
    {"jit and pcall", "-- rille: jit\nlocal function f() for i = 1, 1e18 do end end while true do pcall(f) end",
     RILLE_TIMEOUT},
    {"scope", RILLE "while true do pcall(rille.scope, spin) end", RILLE_TIMEOUT},
    {"scope in a scope", RILLE "local function f() pcall(rille.scope, spin) return f() end rille.scope(f)",
     RILLE_TIMEOUT},
    {"defer", RILLE "rille.defer(spin) spin()", RILLE_TIMEOUT},
    {"defers", RILLE "for i = 1, 1000 do rille.defer(spin) end spin()", RILLE_TIMEOUT},
    {"defer in a scope", RILLE "while true do pcall(rille.scope, function() rille.defer(spin) spin() end) end",
     RILLE_TIMEOUT},
    {"defer that waits", RILLE "rille.defer(function() rille.sleep('1h') end) spin()", RILLE_TIMEOUT},
    {"defer that waits again", RILLE "rille.defer(function() while true do pcall(rille.sleep, 3600) end end) spin()",
     RILLE_TIMEOUT},
    {"defer that spawns",
     RILLE "rille.defer(function() rille.spawn('x', function() rille.sleep('1h') end):wait() end) "
           "spin()",
     RILLE_TIMEOUT},
    {"defer that spawns and goes on",
     RILLE
     "local function f() rille.sleep(0.05) end "
     "for i = 1, 20 do pcall(rille.scope, function() rille.defer(function() rille.spawn('x', f) end) end) end spin()",
     RILLE_TIMEOUT},
    {"errdefer", RILLE "rille.errdefer(spin) spin()", RILLE_TIMEOUT},
    {"scope left, then a loop", RILLE "pcall(rille.scope, spin) spin()", RILLE_TIMEOUT},
    {"step", RILLE "while true do pcall(rille.step, 'x', spin) end", RILLE_TIMEOUT},
    {"step with retries", RILLE "rille.step('x', { retry = 1000 }, spin)", RILLE_TIMEOUT},
    {"steps", RILLE "while true do rille.step('x', function() end) end", ANY},
    {"pool", RILLE "while true do pcall(rille.pool, 'p', { slots = 1 }, spin) end", RILLE_TIMEOUT},
    {"fibers that spin", RILLE "for i = 1, 100 do rille.spawn('f', spin) end rille.sleep('1h')", RILLE_TIMEOUT},
    {"fibers that catch",
     RILLE "for i = 1, 100 do rille.spawn('f', function() while true do pcall(spin) end end) end "
           "rille.sleep('1h')",
     RILLE_TIMEOUT},
    {"fibers that spawn", RILLE "local function f() while true do rille.spawn('f', f) rille.sleep(0) end end f()", ANY},
    {"a million fibers", RILLE "for i = 1, 1e6 do rille.spawn('f', function() rille.sleep('1h') end) end", ANY},
    {"sleeps", RILLE "while true do rille.sleep(0.001) end", RILLE_TIMEOUT},
    {"sleeps, caught", RILLE "while true do pcall(rille.sleep, 1) end", RILLE_TIMEOUT},
    {"a caught wall", RILLE "pcall(rille.sleep, 3600) return 'done'", RILLE_TIMEOUT},
    {"race", RILLE "while true do pcall(rille.race, { spin, spin }) end", RILLE_TIMEOUT},
    {"map", RILLE "rille.map('m', { 1, 2, 3 }, function() pcall(spin) spin() end)", RILLE_TIMEOUT},
    {"signal", RILLE "while true do pcall(rille.signal, 'x') end", RILLE_TIMEOUT},
    {"match", "local s = ('a'):rep(40) string.match(s, ('a?'):rep(40) .. s)", RILLE_TIMEOUT},
    {"match, caught", "while true do pcall(string.match, ('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40)) end",
     RILLE_TIMEOUT},
    {"find", "string.find(('a'):rep(3000), '.-.-.-.-b')", RILLE_TIMEOUT},
    {"gsub", "string.gsub(('a'):rep(3000), '.*.*.*.*b', '')", RILLE_TIMEOUT},
    {"gmatch", "for x in string.gmatch(('a'):rep(3000), '(.*)(.*)(.*)(.*)b') do end", RILLE_TIMEOUT},
    {"balance", "string.match(('('):rep(2e6), '%b()')", RILLE_TIMEOUT},
    {"set", "local set = '[' .. ('b'):rep(1e6) .. ']' string.find(('a'):rep(1e6), set)", RILLE_TIMEOUT},
    {"frontier", "string.find(('a'):rep(1e6), '%f[' .. ('b'):rep(1e6) .. ']')", RILLE_TIMEOUT},
    {"back reference", "string.find(('a'):rep(1e6), '(a*)%1b')", RILLE_TIMEOUT},
    {"replacement", "string.gsub(('a'):rep(1e6), '(b*)', ('%1'):rep(1e6))", RILLE_TIMEOUT},
    {"match in a handler", "xpcall(error, function() string.find(('a'):rep(3000), '.-.-.-.-b') end)", RILLE_TIMEOUT},
    {"plain find", "local s = ('a'):rep(1e7) while true do s:find(('a'):rep(5e6) .. 'b', 1, true) end", RILLE_TIMEOUT},
    {"gsub callback", SPIN "string.gsub('abc', '.', spin)", RILLE_TIMEOUT},
    {"gsub table", "string.gsub('abc', '.', setmetatable({}, { __index = function() while true do end end }))",
     RILLE_TIMEOUT},
    {"gsub recursion", "local function f() return (string.gsub('a', 'a', f)) end while true do pcall(f) end",
     RILLE_TIMEOUT},
    {"rep", "local s = ('x'):rep(1e10)", RILLE_INVALID},
    {"rep of nothing", "while true do (''):rep(2^31 - 1) end", RILLE_TIMEOUT},
    {"rep with separators", "local s = (''):rep(1e9, ('x'):rep(1e6))", RILLE_MEMORY},
    {"concat", "local t = {} for i = 1, 1e6 do t[i] = ('x'):rep(1e4) end return #table.concat(t)", ANY},
    {"format", "local s = ('%99d'):rep(1e5) while true do pcall(string.format, s, unpack({}, 1, 5000)) end",
     RILLE_TIMEOUT},
    {"insert", "table.insert({}, -2147483648, 1)", RILLE_INVALID},
    {"insert at the front", "local t = {} while true do table.insert(t, 1, 1) end", ANY},
    {"move", "table.move({}, 1, 2^53, 2)", RILLE_TIMEOUT},
    {"remove", "table.remove({}, -2147483648)", NONE},
    {"unpack", "while true do pcall(unpack, {}, 1, 1e8) end", RILLE_TIMEOUT},
    {"sort", "local t = {} for i = 1, 4e5 do t[i] = i % 7 end while true do table.sort(t) end", ANY},
    {"sort with Lua", "table.sort({ 3, 2, 1 }, function() while true do end end)", RILLE_TIMEOUT},
    {"sort with rawequal", "local t = {} for i = 1, 5e5 do t[i] = i end while true do table.sort(t, rawequal) end",
     RILLE_TIMEOUT},
    {"sort of tables",
     "local mt = { __lt = function() while true do end end } "
     "table.sort { setmetatable({}, mt), setmetatable({}, mt) }",
     RILLE_TIMEOUT},
    {"pairs", "local t = {} for i = 1, 3e5 do t['k' .. i] = i end while true do for k in pairs(t) do end end",
     RILLE_TIMEOUT},
    {"next", "local t = {} for i = 1, 1e5 do t['k' .. i] = i end local k while true do k = next(t, k) end",
     RILLE_TIMEOUT},
    {"tostring", "local t = setmetatable({}, { __tostring = function() while true do end end }) print(t)",
     RILLE_TIMEOUT},
    {"metamethods", "local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end }) return t[1]", ANY},
    {"tail calls", "local function f() return f() end f()", RILLE_TIMEOUT},
    {"deep recursion", "local function f() return 1 + f() end while true do pcall(f) end", RILLE_TIMEOUT},
    {"deep recursion, handled", "local function f() return 1 + f() end while true do xpcall(f, debug.traceback) end",
     RILLE_TIMEOUT},
    {"memory", "local t = {} while true do t[#t + 1] = { t } end", ANY},
    {"memory, caught", "while true do pcall(function() local t = {} while true do t[#t + 1] = { t } end end) end", ANY},
    {"strings", "local s = 'x' while true do s = s .. s end", ANY}, /* memory, or on a busy machine time */
    {"collector", "while true do collectgarbage() end", RILLE_TIMEOUT},
    {"gc of a table",
     "setmetatable({}, { __gc = function() while true do end end }) collectgarbage() while true do end", RILLE_TIMEOUT},
    {"gc of a proxy", "local p = newproxy(true) getmetatable(p).__gc = function() while true do end end", RILLE_STATE},
    {"gc of a file",
     RILLE "rille.step('x', function() local f = io.tmpfile() local mt = getmetatable(f) "
           "assert(type(mt) == 'string') end) error('no metatable')",
     RILLE_INVALID},
    {"gc of cdata", "assert(type(getmetatable(1LL)) == 'string') error('no metatable')", RILLE_INVALID},
    {"gc of a handle",
     RILLE "assert(type(getmetatable(rille.spawn('x', function() end))) == 'string') "
           "error('no metatable')",
     RILLE_INVALID},
    {"ffi", "require 'ffi'", RILLE_STATE},
    {"jit", "require 'jit'", RILLE_STATE},
    {"load of a reader", "load(function() return ' ' end)", ANY},
    {"load of a builtin", "load(debug.traceback)", ANY},
    {"load of a bomb", "while true do load('return ' .. ('('):rep(1e5)) end", RILLE_TIMEOUT},
    {"load of a long text", "local s = ('local x = 1\\n'):rep(1e6) while true do load(s) end", ANY},
    {"a result that doubles", "local t = {} for i = 1, 60 do t = { t, t } end return t", ANY}, /* or timeout */
    {"an error that doubles", "local t = {} for i = 1, 60 do t = { t, t } end error(t)", ANY},
    {"a step that doubles",
     RILLE "rille.step('x', function() local t = {} for i = 1, 60 do t = { t, t } end return t "
           "end)",
     ANY},
    {"a misspelt name", "while true do pcall(function() return _G[('x'):rep(1e5)] end) end", RILLE_TIMEOUT},
    {"misspelt among many", "for i = 1, 1e5 do _G['g' .. i] = i end while true do pcall(function() return gg1 end) end",
     RILLE_TIMEOUT},
    {"misspelt option", RILLE "while true do pcall(rille.step, 'x', { [('x'):rep(1e5)] = 1 }, spin) end",
     RILLE_TIMEOUT},
    {"tonumber", "local s = ('1'):rep(1e7) while true do tonumber(s) end", RILLE_TIMEOUT},
    {"captured that doubles", RILLE DOUBLES "rille.step('x', function() return #t end) spin()", ANY},
    {"arguments that double", RILLE DOUBLES "rille.step('x', { args = t }, spin)", ANY},
    {"a signal's default that doubles", RILLE DOUBLES "rille.signal('x', { timeout = 0.01, default = t }) spin()", ANY},
    {"a log that doubles", RILLE DOUBLES "rille.log(t) spin()", ANY},
    {"captured in a cycle",
     RILLE "local t = {} t[1] = t while true do pcall(rille.step, 'x', function() t[2] = t end) end", ANY},
    {"an error that acts", SPIN "error(setmetatable({}, { __tostring = spin, __index = spin, __concat = spin }))", ANY},
    {"long errors", "while true do pcall(error, ('x'):rep(1e7)) end", RILLE_TIMEOUT},
    {"long names", RILLE "while true do pcall(rille.step, ('x'):rep(1e6), spin) end", ANY},
    {"options that spin", RILLE "rille.step('x', setmetatable({}, { __index = spin }), spin)", RILLE_TIMEOUT},
    {"options that recur",
     RILLE "local t t = setmetatable({}, { __index = function() rille.step('x', t, spin) end }) "
           "while true do pcall(rille.step, 'x', t, spin) end",
     ANY},
    {"all of many", RILLE "local t = {} for i = 1, 1e5 do t[i] = spin end rille.all(t)", ANY},
    {"map of many", RILLE "local t = {} for i = 1, 1e5 do t[i] = i end rille.map('m', t, spin)", ANY},
    {"tostring recursion",
     "local t t = setmetatable({}, { __tostring = function() return tostring(t) end }) "
     "while true do pcall(tostring, t) end",
     RILLE_TIMEOUT},
    {"coroutines in gsub",
     "local function f() return (string.gsub('a', 'a', coroutine.wrap(f))) end "
     "while true do pcall(f) end",
     RILLE_TIMEOUT},
    {"sort in sort", "local function f() table.sort({ 2, 1 }, f) end while true do pcall(f) end", RILLE_TIMEOUT},
    {"traceback", "while true do debug.traceback(('x'):rep(1e6)) end", RILLE_TIMEOUT},
    {"many coroutines", "local t = {} while true do t[#t + 1] = coroutine.create(print) end", ANY},
    {"goto", "::a:: goto a", RILLE_TIMEOUT},
    {"a step of 0", "for i = 1, 2, 0 do end", RILLE_TIMEOUT},
    {"an endless iterator", "for i in function() return 1 end do end", RILLE_TIMEOUT},
    {"a builtin as iterator", "for i in debug.traceback do end", RILLE_TIMEOUT},
    {"builtins alone", "local p = pcall while true do p(p, p, p, p) end", RILLE_TIMEOUT},
    {"parser depth", "while true do load(('{'):rep(1e5)) load(('a.'):rep(1e5)) end", RILLE_TIMEOUT},
    {"a race of cleanups",
     RILLE "local function f() rille.defer(spin) spin() end "
           "while true do pcall(rille.race, { f, f, f }) end",
     RILLE_TIMEOUT},
    {"cleanup that opens scopes",
     RILLE "local function f() rille.scope(function() rille.defer(f) end) end "
           "rille.defer(f) spin()",
     ANY},
    {"cleanup that steps", RILLE "rille.defer(function() while true do pcall(rille.step, 'y', spin) end end) spin()",
     RILLE_TIMEOUT},
    {"a handle's wait", RILLE "local h h = rille.spawn('f', function() h:wait() end) pcall(h.wait, h) spin()", ANY},
    {"waits for each other",
     RILLE "local a, b a = rille.spawn('a', function() b:wait() end) "
           "b = rille.spawn('b', function() a:wait() end) a:wait()",
     ANY},
    {"products", PRODUCTS "x:item()", RILLE_TIMEOUT},
    {"products, caught", PRODUCTS "while true do pcall(x.item, x) end", RILLE_TIMEOUT},
    {"products that nobody reads", PRODUCTS "rille.sleep('1h')", RILLE_TIMEOUT},
    {"products in a defer", RILLE PRODUCTS_IN "rille.defer(function() products():item() end) spin()", RILLE_TIMEOUT},
    {"products left behind", PRODUCTS "", NONE},
    {"one product", TENSORS "local x = d:randn{ 1200, 1200, dtype = 'f64' } x:matmul(x):sum():item() " SPIN "spin()",
     RILLE_TIMEOUT},
    {"a tensor of 3.86 GB", TENSORS "d:zeros{ 31000, 31000 }:sum():item()", RILLE_MEMORY},
    {"tensors and tables",
     TENSORS "local t = {} for i = 1, 1e4 do t[i] = d:ones{ 1000, 1000 } t[i]:sum():item() t[-i] = ('x'):rep(1e6) end",
     RILLE_MEMORY},
    {"tensors, let go", TENSORS "for i = 1, 40 do d:ones{ 1000, 1000 }:sum():item() end", ENDS},
    {"a tensor as a table", TENSORS "local t = d:zeros{ 12, 1000000 }:totable()", RILLE_MEMORY},
    {"sorting", TENSORS "local x = d:randn{ 5000000 } while true do x = x:sort() x:sum():item() end", ANY},
    {"prints", "while true do print(('x'):rep(1e4)) end", ANY},
    {"logs", RILLE "while true do rille.log('x') end", ANY},
    {"runs a program, caught",
     "local f = require('rille').step pcall(f, 'x', { retry = 1 }, function() "
     "os.execute('sleep 30') end) error('went on')",
     RILLE_INVALID},
};

/* Each must be denied, for want of the grant. kernels: it has that one, for rille.native. */
static const struct {
  const char *name, *source, *grant;
  int kernels;
} denials[] = {
    {"reads a file", STEP("io.open('/etc/passwd')"), "read", 0},
    {"reads a file by ..", STEP("io.open('/tmp/../etc/passwd')"), "read", 0},
    {"reads a file by /proc", STEP("io.open('/proc/self/root/etc/passwd')"), "read", 0},
    {"reads its memory", STEP("io.open('/proc/self/mem')"), "read", 0},
    {"reads the input", STEP("io.read()"), "read", 0},
    {"writes to the output", STEP("io.stdout:write('x')"), "write", 0},
    {"closes the output", STEP("io.close()"), "write", 0},
    {"writes a file", STEP("io.open('/etc/x', 'w')"), "write", 0},
    {"renames a file", STEP("os.rename('/etc/passwd', '/tmp/x')"), "write", 0},
    {"reads the environment", STEP("os.getenv('HOME')"), "env", 0},
    {"runs a program", STEP("os.execute('sleep 30')"), "process", 0},
    {"opens a pipe", STEP("io.popen('sleep 30')"), "process", 0},
    {"loads a file", "loadfile('/etc/passwd')", "read", 0},
    {"runs another script", RILLE "rille.run('/etc/passwd')", "read", 0},
    {"reads as data", RILLE "rille.data.bytes('/etc/passwd', { context = 8, batch = 1 })", "read", 0},
    {"reads as tokens", "require('rille.native').tokens('/etc', '', { context = 8 })", "read", 1},
    {"reads as tensors", "require('rille.native').tensors_open('/etc/passwd')", "read", 1},
    {"writes as tensors",
     RILLE "rille.data.save_tensors('/etc/x.safetensors', { x = rille.device('cpu'):zeros { 1 } })", "write", 0},
    {"opens a database", RILLE "rille.step('x', { effect = 'tx', db = '/etc/x.db' }, function() end)", "read", 0},
    {"compiles C++", RILLE "rille.device('cpu'):kernel('__global__ void k(float* x) {}')", "kernels", 0},
    {"rents this machine", RILLE "rille.rent('x', { provider = 'local' })", "providers", 0},
    {"listens", RILLE "rille.communicator { rank = 0, world = 2, address = '0.0.0.0:29511' }", "network", 0},
    {"listens by a native",
     "local n, r = require('rille.native'), require('rille') "
     "n.ranks_group(r.communicator { rank = 0, world = 1 }, 0, 2, '0.0.0.0:29511')",
     "network", 1},
    {"calls a web hook", RILLE "rille.budget { limit = 1, alert_url = 'https://example.org/?secret' }", "network", 0},
};

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void drop(const char* text, size_t length, void* payload) { (void)text, (void)length, (void)payload; }
static void note(const char* text, size_t length, void* flag) { (void)text, (void)length, *(int*)flag = 1; }

static rille_run_options limits(void) {
  rille_run_options o;
  rille_run_options_init(&o, sizeof o);
  o.memory_bytes = 64 << 20, o.slice_ms = 200, o.wall_ms = wall_ms, o.print = drop;
  o.grants = "{\"write\": [\"/tmp\"]}"; /* the least for io.tmpfile */
  return o;
}

/* Whether the error names a limit of time, and one of a quota the limit that the case is about. */
static int names_limit(const char* name, const rille_error* error) {
  const char* code = rille_error_code(error);
  if (rille_error_kind(error) == RILLE_QUOTA) return *code && strncmp(name, code, strlen(code)) == 0;
  return strcmp(code, "slice_ms") == 0 || strcmp(code, "wall_ms") == 0 || strcmp(code, "cpu_ms") == 0;
}

/* code: of the error; NULL: that of its limit. */
static int try_for(rille_runtime* rt, const char* name, const char* source, const rille_run_options* options, int kind,
                   const char* code) {
  rille_run* run = NULL;
  rille_error* refused = rille_run_from_source(rt, "hostile.lua", source, strlen(source), options, &run);
  if (refused) fprintf(stderr, "%s: %s\n", name, rille_error_to_json(refused));
  CHECK(!refused && !rille_run_start(run));
  int64_t began = now_ms();
  rille_error* late = rille_run_wait(run, given_up_ms);
  int64_t took = now_ms() - began;
  const rille_error* error = rille_run_error(run);
  if (relaxed && (kind == RILLE_MEMORY || kind == ENDS) && error && rille_error_kind(error) == RILLE_TIMEOUT)
    kind = ANY;
  int good = !late && (kind == NONE || (kind == ENDS && !error) ||
                       (error && (kind == ANY || (int)rille_error_kind(error) == kind)));
  if (good && code) good = strcmp(rille_error_code(error), code) == 0;
  else if (good && (kind == RILLE_TIMEOUT || kind == RILLE_QUOTA)) good = names_limit(name, error);
  if (took > late_ms || !good || getenv("HOSTILE_VERBOSE"))
    fprintf(stderr, "%s: %s, %d ms: %.200s\n", good ? "ok" : "NOT OK", name, (int)took,
            late    ? rille_error_message(late)
            : error ? rille_error_to_json(error)
                    : "no error");
  if (late) exit(1); /* the runtime is stuck */
  rille_run_free(run);
  return good ? 0 : 1;
}

#define try_script(rt, name, source, options, kind) try_for(rt, name, source, options, kind, NULL)
static int disk_limits(rille_runtime* rt) {
  int bad = 0;
  rille_run_options o;
  rille_run_options_init(&o, sizeof o);
  o.disk_bytes = 1000;
  bad +=
      try_script(rt, "disk_bytes", RILLE "for i = 1, 20 do rille.step('s', function() return ('x'):rep(100) end) end",
                 &o, RILLE_QUOTA);
  bad += try_script(rt, "disk_bytes of errors",
                    RILLE
                    "local e for i = 1, 20 do e = select(2, pcall(rille.step, 's', function() error(('x'):rep(99), 0) "
                    "end)) end error(e)",
                    &o, RILLE_QUOTA);
  o.grants = "{\"write\": [\"rille.home\"]}";
  bad += try_script(rt, "disk_bytes of a file",
                    TENSORS "rille.data.save_tensors(rille.home .. '/hostile.safetensors', { x = d:zeros{ 1000 } })",
                    &o, RILLE_QUOTA);
  const char* const writes[] = {
      "local f = io.open(rille.home .. '/hostile.txt', 'w') for i = 1, 20 do f:write(('x'):rep(100)) end",
      "io.output(rille.home .. '/hostile.txt') for i = 1, 20 do io.write(('x'):rep(100), 7) end"};
  for (int i = 0; i < 2; ++i) {
    char source[400];
    snprintf(source, sizeof source, RILLE "rille.step('w', { retry = 1 }, function() %s end)", writes[i]);
    bad += try_script(rt, "disk_bytes of io", source, &o, RILLE_QUOTA);
  }
  bad += try_script(
      rt, "disk_bytes of a file's metadata",
      TENSORS
      "rille.data.save_tensors(rille.home .. '/hostile.safetensors', { x = d:zeros{ 1 } }, { metadata = { a = "
      "('x'):rep(2000) } })",
      &o, RILLE_QUOTA);
  o.grants = "{\"read\": [\"rille.home\"], \"write\": [\"rille.home\"]}", o.disk_bytes = 100000;
  bad += try_script(rt, "disk_bytes of SQL",
                    RILLE
                    "rille.step('s', { effect = 'tx', db = rille.home .. '/hostile.db', retry = 1 }, function(_, ctx) "
                    "ctx.db:exec 'CREATE TABLE IF NOT EXISTS t(v)' "
                    "for i = 1, 200 do ctx.db:exec 'INSERT INTO t VALUES(randomblob(1000))' end end)",
                    &o, RILLE_QUOTA);
  bad += try_script(
      rt, "disk_bytes of SQL that was refused",
      RILLE
      "pcall(rille.step, 's', { effect = 'tx', db = rille.home .. '/hostile.db', retry = 1 }, function(_, ctx) "
      "ctx.db:exec 'CREATE TABLE IF NOT EXISTS t(v)' "
      "for i = 1, 200 do ctx.db:exec 'INSERT INTO t VALUES(randomblob(1000))' end end) "
      "rille.step('s', function() end)",
      &o, RILLE_QUOTA);
  bad += try_script(rt, "disk_bytes of retries",
                    RILLE
                    "rille.step('s', { retry = { attempts = 300, initial = '1ms', cap = '1ms' } }, function() "
                    "rille.error { kind = 'network', message = ('x'):rep(2000), retryable = true } end)",
                    &o, RILLE_QUOTA);
  o.disk_bytes = 10000;
  bad += try_script(rt, "disk_bytes of cleanup",
                    RILLE
                    "rille.defer(function() while true do pcall(rille.step, ('s'):rep(100), function() end) end end) "
                    "rille.step('s', function() return ('x'):rep(20000) end)",
                    &o, RILLE_QUOTA);
  o.disk_bytes = 1000;
  bad += try_script(rt, "disk_bytes, less", RILLE "rille.step('s', function() return ('x'):rep(100) end)", &o, NONE);
  return bad;
}

static int more_limits(rille_runtime* rt) {
  int bad = 0;
  rille_run_options o;
  rille_run_options_init(&o, sizeof o);
  o.cpu_ms = 100;
  bad += try_script(rt, "cpu_ms", RILLE "while true do rille.sleep(0) for i = 1, 1e5 do end end", &o, RILLE_TIMEOUT);
  bad += try_script(rt, "cpu_ms, caught", SPIN "pcall(spin) return 1", &o, RILLE_TIMEOUT);
  rille_run_options_init(&o, sizeof o);
  o.output_bytes = 1000, o.print = drop;
  bad += try_script(rt, "output_bytes", "for i = 1, 1000 do print(i) end", &o, RILLE_QUOTA);
  bad += try_script(rt, "output_bytes, less", "for i = 1, 100 do print(i) end", &o, NONE);
  rille_run_options_init(&o, sizeof o);
  o.fibers_max = 10;
  bad += try_script(rt, "fibers_max", RILLE "for i = 1, 11 do rille.spawn('f', function() rille.sleep(1) end) end", &o,
                    RILLE_QUOTA);
  bad += try_script(rt, "fibers_max, less", RILLE "for i = 1, 100 do rille.spawn('f', function() end):wait() end", &o,
                    NONE);
  rille_run_options_init(&o, sizeof o);
  o.cpu_ms = 300;
  bad += try_script(rt, "cpu_ms of tensors", PRODUCTS "x:item()", &o, RILLE_TIMEOUT);
  bad += try_script(rt, "cpu_ms of tensors, waiting", PRODUCTS "x:detach() rille.device('cpu'):synchronize()", &o,
                    RILLE_TIMEOUT);
  rille_run_options_init(&o, sizeof o);
  o.memory_bytes = 64 << 20;
  bad += try_script(rt, "memory of results", "return { ('x'):rep(2e7), ('y'):rep(2e7) }", &o, RILLE_INVALID);
  rille_run_options_init(&o, sizeof o);
  o.wall_ms = 300;
  bad += try_script(rt, "wall_ms alone", SPIN "pcall(spin) return 1", &o, RILLE_TIMEOUT);
  return bad;
}

static int sanitized(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 1;
#else
  return 0;
#endif
}

#include "hostile_memory.h"
#include "hostile_stack.h"

/* A run that starts itself: its child runs have what is left of its wall. */
static int child_runs(rille_runtime* rt, const char* folder) {
  static const char source[] = RILLE "pcall(rille.run, 'child.lua', { n = (rille.args { n = 0 }).n + 1 }) spin()";
  char path[600];
  snprintf(path, sizeof path, "%s/child.lua", folder);
  FILE* file = fopen(path, "w");
  CHECK(file && fputs(source, file) >= 0 && fclose(file) == 0);
  rille_run_options o = limits();
  rille_run* run = NULL;
  CHECK(!rille_run_from_file(rt, path, &o, &run) && !rille_run_start(run));
  int64_t began = now_ms();
  rille_error* late = rille_run_wait(run, given_up_ms);
  int bad = late || !rille_run_error(run) || rille_error_kind(rille_run_error(run)) != RILLE_TIMEOUT;
  fprintf(stderr, "child runs: %d ms: %s\n", (int)(now_ms() - began),
          late                   ? "never ended"
          : rille_run_error(run) ? rille_error_message(rille_run_error(run))
                                 : "no error");
  rille_error_free(late);
  rille_run_free(run);
  return bad;
}

static int threads(void) {
  char line[200];
  int n = 0;
  FILE* status = fopen("/proc/self/status", "r");
  CHECK(status);
  while (fgets(line, sizeof line, status)) sscanf(line, "Threads: %d", &n);
  fclose(status);
  return n;
}

/* Limits cost one thread for all runs. */
static void many_runs(rille_runtime* rt) {
  enum { count = 60 };
  static const char source[] = "require('rille').sleep('1h')";
  rille_run* runs[count];
  rille_run_options o = limits();
  int before = threads();
  for (int i = 0; i < count; ++i)
    CHECK(!rille_run_from_source(rt, "sleeps.lua", source, strlen(source), &o, &runs[i]) && !rille_run_start(runs[i]));
  CHECK(!rille_turn(rt, 100, NULL));
  CHECK(threads() <= before + 2); /* the watchdog, and a worker that may have started */
  for (int i = 0; i < count; ++i) CHECK(!rille_run_cancel(runs[i], NULL));
  for (int i = 0; i < count; ++i) {
    CHECK(!rille_run_wait(runs[i], -1));
    rille_run_free(runs[i]);
  }
}

/* A child made by fork has no watchdog of its parent; a runtime that it creates starts one. */
__attribute__((unused)) static int after_fork(const char* folder) {
  pid_t child = fork();
  if (child == 0) {
    char home[600];
    snprintf(home, sizeof home, "%s/forked", folder);
    rille_options options;
    rille_options_init(&options, sizeof options);
    options.home = home;
    rille_runtime* rt = NULL;
    CHECK(!rille_create(&options, &rt));
    rille_run_options o = limits();
    int bad = try_script(rt, "loop after fork", "while true do end", &o, RILLE_TIMEOUT);
    rille_destroy(rt);
    _exit(bad);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  return status != 0;
}

/* A thousand products wait; the shutdown does not wait for them, nor does the destruction of a runtime. */
static int ends_with_products(const char* folder) {
  static const char source[] = PRODUCTS "print('asked') x:item()";
  int bad = 0;
  for (int shutdown = 0; shutdown < 2; ++shutdown) {
    char home[600];
    snprintf(home, sizeof home, "%s/products%d", folder, shutdown);
    rille_options options;
    rille_options_init(&options, sizeof options);
    options.home = home;
    rille_runtime* rt = NULL;
    CHECK(!rille_create(&options, &rt));
    int asked = 0;
    rille_run_options o;
    rille_run_options_init(&o, sizeof o);
    o.print = note, o.payload = &asked;
    rille_run* run = NULL;
    CHECK(!rille_run_from_source(rt, "products.lua", source, strlen(source), &o, &run) && !rille_run_start(run));
    while (!asked) CHECK(!rille_turn(rt, 10, NULL));
    int64_t began = now_ms();
    rille_error* late = shutdown ? rille_shutdown(rt, 1000) : NULL;
    if (late || (shutdown && rille_run_state(run) != RILLE_RUN_CANCELLED)) bad = 1;
    rille_error_free(late);
    rille_destroy(rt);
    fprintf(stderr, "ended with products: %d ms\n", (int)(now_ms() - began));
    if (now_ms() - began > given_up_ms) bad = 1;
  }
  return bad;
}

static void refuse_empty_options(rille_runtime* rt) {
  rille_run_options o = limits();
  rille_run* run = NULL;
  o.struct_size = 0;
  rille_error* error = rille_run_from_source(rt, "x.lua", "", 0, &o, &run);
  CHECK(error && rille_error_kind(error) == RILLE_INVALID && !run);
  rille_error_free(error);
}

int main(int argc, char** argv) {
  const char* folder = getenv("RILLE_HOME");
  CHECK(folder);
  const char* grace = getenv("RILLE_TEST_GRACE_MS");
  if (grace) relaxed = 1, given_up_ms = wall_ms + atoi(grace);
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = folder;
  rille_runtime* rt = NULL;
  options.struct_size = 0;
  rille_error* error = rille_create(&options, &rt);
  CHECK(error && rille_error_kind(error) == RILLE_INVALID);
  rille_error_free(error);
  options.struct_size = sizeof options;
  CHECK(!rille_create(&options, &rt));
  register_host(rt);
  int bad = 0, count = (int)(sizeof scripts / sizeof *scripts);
  for (int i = 0; i < count; ++i) {
    if (argc > 1 && strcmp(argv[1], scripts[i].name) != 0) continue;
    rille_run_options o = limits();
    bad += try_script(rt, scripts[i].name, scripts[i].source, &o, scripts[i].kind);
  }
  for (size_t i = 0; i < sizeof denials / sizeof *denials; ++i) {
    if (argc > 1 && strcmp(argv[1], denials[i].name) != 0) continue;
    rille_run_options o = limits();
    if (denials[i].kernels) o.grants = "{\"write\": [\"/tmp\"], \"kernels\": true}";
    bad += try_for(rt, denials[i].name, denials[i].source, &o, RILLE_DENIED, denials[i].grant);
  }
  if (argc < 2) {
    refuse_empty_options(rt);
    many_runs(rt);
#ifndef __SANITIZE_THREAD__ /* it knows no thread that starts after a fork of several */
    bad += after_fork(folder);
#endif
    bad += more_limits(rt);
    bad += disk_limits(rt);
    bad += arguments(rt);
    bad += kept(rt);
    bad += little_stack(folder);
    bad += ends_with_products(folder);
  }
  if (argc > 1 && strcmp(argv[1], "little stack") == 0) bad += little_stack(folder);
  if (argc < 2 || strcmp(argv[1], "child runs") == 0) bad += child_runs(rt, folder);
  rille_destroy(rt);
  if (bad) return 1;
  printf("every hostile script was ended\n");
  return 0;
}
