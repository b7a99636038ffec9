/* Part of hostile.c: memory that is used beside Lua, for the arguments of host functions, errors and a journal. */
#pragma once

static void read_all(rille_call* call, void* payload) {
  (void)payload;
  for (size_t i = 0; i < rille_call_count(call); ++i) {
    rille_value v;
    rille_error* error = rille_call_value(call, i, &v);
    if (error) return rille_call_fail(call, error);
  }
}

static void read_json(rille_call* call, void* payload) {
  (void)payload;
  for (size_t i = 0; i < rille_call_count(call); ++i) (void)rille_call_json(call, i, NULL);
}

static void register_host(rille_runtime* rt) {
  const rille_function_spec functions[] = {
      {sizeof *functions, "read", RILLE_PURE, read_all, NULL},
      {sizeof *functions, "json", RILLE_PURE, read_json, NULL},
      {sizeof *functions, "step", RILLE_STEP, read_all, NULL},
  };
  CHECK(!rille_register_module(rt, "host", functions, sizeof functions / sizeof *functions));
}

/* What host functions are given is copied for them, all arguments of a call at once. */
static int arguments(rille_runtime* rt) {
#define HOST "local host, s, t, a = require 'host', ('x'):rep(1e6), {}, {} "
  static const struct {
    const char *name, *source;
    int kind;
  } cases[] = {
      {"arguments", HOST "for i = 1, 1e5 do t[i] = i end for i = 1, 50 do a[i] = t end host.read(unpack(a))",
       RILLE_MEMORY},
      {"arguments in one", HOST "for i = 1, 1e5 do t[i] = i end for i = 1, 50 do a[i] = t end host.read(a)",
       RILLE_MEMORY},
      {"arguments by name", HOST "for i = 1, 1e5 do t['n' .. i] = i end for i = 1, 50 do a[i] = t end host.read(a)",
       RILLE_MEMORY},
      {"arguments with long names", HOST "for i = 1, 80 do a[i] = { [s] = 1 } end host.read(unpack(a))", RILLE_MEMORY},
      {"arguments as JSON", HOST "for i = 1, 150 do a[i] = s end host.json(unpack(a))", RILLE_INVALID},
      {"arguments of a step", HOST "for i = 1, 50 do a[i] = s end host.step(unpack(a))", RILLE_MEMORY},
      {"long names of data",
       HOST "for i = 1, 80 do a[i] = { [s] = 1 } end require 'rille'.step('s', { args = a }, print)", RILLE_INVALID},
      {"functions", HOST "for i = 1, 20000 do a[i] = print end host.read(a)", RILLE_INVALID},
      {"arguments, less", HOST "for i = 1, 50 do t[i] = i host.read(t, s, { s, s, t }) host.json(t) host.step(s) end",
       NONE},
  };
  rille_run_options o;
  rille_run_options_init(&o, sizeof o);
  o.memory_bytes = 64 << 20;
  int bad = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    bad += try_script(rt, cases[i].name, cases[i].source, &o, cases[i].kind);
  return bad;
}

static int peak_mb(void) {
  char line[200];
  int kb = 0;
  FILE* status = fopen("/proc/self/status", "r");
  CHECK(status);
  while (fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %d", &kb);
  fclose(status);
  return kb / 1024;
}

/* What is kept beside Lua: errors of fibers, and a journal in memory. */
static int kept(rille_runtime* rt) {
  rille_run_options o;
  rille_run_options_init(&o, sizeof o);
  o.memory_bytes = 64 << 20;
  FILE* file = fopen("/proc/self/clear_refs", "w"); /* the peak counts from here */
  CHECK(file && fputs("5", file) >= 0 && fclose(file) == 0);
  const int before = peak_mb();
  int bad = try_script(rt, "errors of fibers",
                       RILLE
                       "local s = ('x'):rep(16000) "
                       "for i = 1, 3500 do rille.spawn('f', function() pcall(rille.sleep, 60) error(s .. i, 0) end) "
                       "end rille.sleep(0.1) error('end')",
                       &o, RILLE_INVALID);
  const int most = 64 + 32 + (sanitized() ? 256 : 0); /* ASan keeps what is freed */
  if (peak_mb() > before + most) bad += 1, fprintf(stderr, "errors of fibers: %d MB\n", peak_mb() - before);
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = ":memory:";
  rille_runtime* memory = NULL;
  CHECK(!rille_create(&options, &memory));
  bad += try_script(memory, "a journal in memory",
                    RILLE "while true do rille.step('s', function() return ('x'):rep(1e5) end) end", &o, RILLE_MEMORY);
  rille_destroy(memory);
  return bad;
}
