/* Part of hostile.c: functions of C and metamethods that call each other without end, on a thread that has little
 * stack. */
#pragma once

#include <pthread.h>

static const char* const deep[] = {
    RILLE
    "local t t = setmetatable({}, { __index = function() rille.step('x', t, function() end) end }) "
    "rille.step('x', t, function() end)",
    RILLE
    "local d, t = rille.device('cpu') t = setmetatable({}, { __index = function() return d:zeros(t) end }) "
    "d:zeros(t)",
    "local function f(s) return (s:gsub('.', f)) end f('aaaa')",
    "local function f() return coroutine.wrap(f)() end f()"};

static void* use_stack(void* folder) {
  static int bad;
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = folder;
  rille_runtime* rt = NULL;
  CHECK(!rille_create(&options, &rt));
  for (size_t i = 0; i < sizeof deep / sizeof *deep; ++i) {
    rille_run_options o = limits();
    bad += try_script(rt, "little stack", deep[i], &o, ANY);
  }
  CHECK(!rille_destroy(rt));
  return &bad;
}

static int little_stack(const char* folder) {
  pthread_attr_t attributes;
  pthread_t thread;
  void* bad = NULL;
  pthread_attr_init(&attributes);
  CHECK(pthread_attr_setstacksize(&attributes, (sanitized() ? 4096 : 512) << 10) == 0);
  CHECK(pthread_create(&thread, &attributes, use_stack, (void*)folder) == 0 && pthread_join(thread, &bad) == 0);
  pthread_attr_destroy(&attributes);
  return *(int*)bad;
}
