/* Scripts that stay loaded, checked: their state, errors, calls that wait, limits of each call, interrupts, misuse. */
#include "values.h"

static void test_state(void) {
  rille_script* s = load(
      "local n = 0 total = 0 "
      "local M = { deep = { er = function() return 'found' end }, text = 'x' } "
      "function M.count() n = n + 1 total = total + n return n end "
      "function global() return total end "
      "return M",
      NULL);
  rille_value r;
  rille_script_function count = find(s, "count");
  for (int i = 1; i <= 3; ++i) {
    ok(rille_script_call(runtime, count, NULL, 0, &r, 1));
    CHECK(is_number(&r, i));
  }
  ok(rille_script_call(runtime, find(s, "global"), NULL, 0, &r, 1));
  CHECK(is_number(&r, 6) && rille_script_memory_bytes(s) > 0);
  ok(rille_script_call(runtime, find(s, "deep.er"), NULL, 0, &r, 1));
  CHECK(is_text(&r, "found"));
  rille_script_function none = 1;
  rille_error* error = rille_script_find(s, "cuont", &none);
  CHECK(error && !none && strstr(rille_error_hint(error), "did you mean 'count'"));
  rille_error_free(error);
  refused(rille_script_find(s, "text", &none), RILLE_INVALID, "'text' is \"x\", not a function");
  refused(rille_script_find(s, "", &none), RILLE_INVALID, "the script returned a table");
  refused(rille_script_find(s, "deep.none.more", &none), RILLE_INVALID, "is nil");
  rille_script_free(s);
  s = load("return function(a, b) return a .. b end", NULL);
  rille_value two[] = {text("a"), text("b")};
  ok(rille_script_call(runtime, find(s, ""), two, 2, &r, 1));
  CHECK(is_text(&r, "ab"));
  rille_script_free(s);
}

static void test_errors(void) {
  rille_script* s = NULL;
  refused(rille_script_load(runtime, "bad.lua", "x = = 1", 7, NULL, &s), RILLE_INVALID, "bad.lua:1");
  const char* raises = "local function inner() error('at load') end inner()";
  refused(rille_script_load(runtime, "bad.lua", raises, strlen(raises), NULL, &s), RILLE_INVALID, "at load");
  refused(rille_script_load_file(runtime, "/nowhere/x.lua", NULL, &s), RILLE_IO, "/nowhere/x.lua");
  static const char reads[] = "assert(io.open('/dev/null'))";
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.rules = RILLE_RULES_OPEN;
  refused(rille_script_load(runtime, "reads.lua", reads, strlen(reads), &options, &s), RILLE_DENIED, "the grant read");
  options.grants = "{\"read\": [\"/dev/null\"]}";
  CHECK(!s);
  ok(rille_script_load(runtime, "reads.lua", reads, strlen(reads), &options, &s));
  rille_script_free(s);
  s = load(APP
           "local function inner(what) error(what) end "
           "return { fails = function(what) inner(what) end, other = function(what)\n inner(what) end, "
           "quota = function() rille.error { kind = 'quota', message = 'no seats', hint = 'ask' } end }",
           NULL);
  rille_value r;
  rille_error* error = call1(find(s, "fails"), text("broken"), &r);
  CHECK(error && rille_error_kind(error) == RILLE_INVALID && strstr(rille_error_message(error), "broken"));
  CHECK(strstr(rille_error_traceback(error), "script.lua:1") && strstr(rille_error_traceback(error), "inner"));
  rille_error_free(error);
  error = call1(find(s, "other"), text("broken"), &r); /* the same text, another place */
  CHECK(strstr(rille_error_traceback(error), "script.lua:2"));
  rille_error_free(error);
  error = rille_script_call(runtime, find(s, "quota"), NULL, 0, NULL, 0);
  CHECK(rille_error_kind(error) == RILLE_QUOTA && strcmp(rille_error_hint(error), "ask") == 0);
  CHECK(strstr(rille_error_traceback(error), "script.lua:2"));
  rille_error_free(error);
  rille_script_free(s);
}

/* ---- calls that wait */

static struct {
  int count, failed;
  double value;
  char message[200];
  rille_kind kind;
} got;

static void done(const rille_error* error, const rille_value* values, size_t count, void* payload) {
  CHECK(payload == &got);
  ++got.count;
  got.failed = error != NULL;
  if (error) {
    got.kind = rille_error_kind(error);
    snprintf(got.message, sizeof got.message, "%s", rille_error_message(error));
  } else {
    got.value = count && values[0].kind == RILLE_VALUE_NUMBER ? values[0].as.number : -1;
  }
}

static void turn_until(int count) {
  int busy = 1;
  while (got.count < count) {
    ok(rille_turn(runtime, 10, &busy));
    CHECK(busy || got.count >= count);
  }
}

static void expect_failure(rille_kind kind, const char* words) {
  if (!got.failed || got.kind != kind || !strstr(got.message, words)) fprintf(stderr, "got: %s\n", got.message);
  CHECK(got.failed && got.kind == kind && strstr(got.message, words));
}

static void test_waiting(void) {
  rille_script* s =
      load(APP
           "return { sleep = function(x) rille.sleep(0.001) return x + 1 end, "
           "many = function() local t = {} for i = 1, 5 do t[i] = function() rille.sleep(0.001) return i end end "
           "  return #rille.all(t) end, "
           "fail = function() rille.sleep(0) error('late') end, forever = function() rille.sleep('1h') end, "
           "later = function() return app.later() end, scope = function() rille.scope(function() end) end, "
           "spawn = function() rille.spawn('x', function() end) end, "
           "child = function() rille.spawn('x', function() error('of a fiber') end) rille.sleep('1h') end, "
           "try = function() return select(2, pcall(rille.sleep, 1)).message end }",
           NULL);
  rille_value r, three = number(3);
  refused(call1(find(s, "sleep"), three, &r), RILLE_STATE, "rille_script_call, which cannot wait");
  refused(rille_script_call(runtime, find(s, "later"), NULL, 0, &r, 1), RILLE_STATE, "cannot wait");
  refused(rille_script_call(runtime, find(s, "scope"), NULL, 0, &r, 1), RILLE_STATE, "rille.scope");
  refused(rille_script_call(runtime, find(s, "spawn"), NULL, 0, &r, 1), RILLE_STATE, "rille.spawn");
  ok(rille_script_call(runtime, find(s, "try"), NULL, 0, &r, 1));
  CHECK(strstr(r.as.bytes.data, "cannot wait") && !waiting);
  memset(&got, 0, sizeof got);
  uint64_t call = 0;
  ok(rille_script_begin(runtime, find(s, "sleep"), &three, 1, done, &got, &call));
  CHECK(call && got.count == 0);
  turn_until(1);
  CHECK(!got.failed && got.value == 4);
  ok(rille_script_begin(runtime, find(s, "many"), NULL, 0, done, &got, NULL));
  turn_until(2);
  CHECK(!got.failed && got.value == 5);
  ok(rille_script_begin(runtime, find(s, "fail"), NULL, 0, done, &got, NULL));
  turn_until(3);
  expect_failure(RILLE_INVALID, "late");
  ok(rille_script_begin(runtime, find(s, "forever"), NULL, 0, done, &got, &call));
  ok(rille_script_begin(runtime, find(s, "child"), NULL, 0, NULL, NULL, NULL)); /* its failure ends only itself */
  ok(rille_script_begin(runtime, find(s, "sleep"), &three, 1, done, &got, NULL));
  turn_until(4);
  CHECK(!got.failed && got.value == 4);
  ok(rille_script_cancel(s, call, "enough"));
  turn_until(5);
  expect_failure(RILLE_CANCELLED, "enough");
  ok(rille_script_cancel(s, call, NULL)); /* has ended */
  ok(rille_script_begin(runtime, find(s, "later"), NULL, 0, done, &got, NULL));
  while (!waiting) ok(rille_turn(runtime, 1, NULL));
  three = number(33);
  rille_completion_resolve_value(waiting, &three);
  waiting = NULL;
  turn_until(6);
  CHECK(!got.failed && got.value == 33);
  ok(rille_script_begin(runtime, find(s, "forever"), NULL, 0, done, &got, NULL));
  ok(rille_turn(runtime, 5, NULL));
  rille_script_free(s);
  turn_until(7);
  expect_failure(RILLE_CANCELLED, "freed");
}

static void test_limits(void) {
  const char* source = APP
      "return { spin = function() while true do end end, swallow = function() while true do pcall(function() while "
      "true "
      "do end end) end end, fill = function() local t = {} for i = 1, 1e9 do t[i] = { i } end end, "
      "add = function(a) return a + 1 end, print = function() print(('x'):rep(600)) end, "
      "sleep = function() rille.sleep('1h') end, "
      "stuck = function() rille.defer(function() rille.sleep('1h') end) rille.sleep('1h') end }";
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.slice_ms = 50;
  options.output_bytes = 1000;
  rille_script* s = load(source, &options);
  rille_value r;
  for (int i = 0; i < 2; ++i) { /* each call has its own limits, and the script stays usable */
    refused(rille_script_call(runtime, find(s, "spin"), NULL, 0, NULL, 0), RILLE_TIMEOUT, "50ms");
    refused(rille_script_call(runtime, find(s, "swallow"), NULL, 0, NULL, 0), RILLE_TIMEOUT, "50ms");
    ok(rille_script_call(runtime, find(s, "print"), NULL, 0, NULL, 0));
    ok(call1(find(s, "add"), number(1), &r));
    CHECK(is_number(&r, 2));
  }
  memset(&got, 0, sizeof got);
  ok(rille_script_begin(runtime, find(s, "swallow"), NULL, 0, done, &got, NULL));
  turn_until(1);
  expect_failure(RILLE_TIMEOUT, "50ms");
  rille_script_free(s);
  rille_run_options_init(&options, sizeof options);
  options.memory_bytes = 32 << 20;
  s = load(source, &options);
  for (int i = 0; i < 2; ++i) {
    refused(rille_script_call(runtime, find(s, "fill"), NULL, 0, NULL, 0), RILLE_MEMORY, "memory limit");
    ok(call1(find(s, "add"), number(1), &r));
  }
  rille_script_free(s);
  rille_run_options_init(&options, sizeof options);
  options.wall_ms = 50;
  s = load(source, &options);
  ok(rille_script_begin(runtime, find(s, "sleep"), NULL, 0, done, &got, NULL));
  turn_until(2);
  expect_failure(RILLE_TIMEOUT, "took longer than 50ms");
  ok(rille_script_begin(runtime, find(s, "stuck"), NULL, 0, done, &got, NULL));
  turn_until(3);
  expect_failure(RILLE_TIMEOUT, "took longer than 50ms");
  refused(rille_script_call(runtime, find(s, "spin"), NULL, 0, NULL, 0), RILLE_TIMEOUT, "50ms");
  ok(call1(find(s, "add"), number(1), &r));
  rille_script_free(s);
}

/* A call at once while the code of another call has given way at the end of a turn: coroutines and limits work in it,
   and the other goes on. */
static void test_given_way(void) {
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.slice_ms = 300;
  rille_script* s = load(
      "return { spin = function() while true do end end, "
      "sum = function() local next = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) "
      "return next() + next() + next() end }",
      &options);
  memset(&got, 0, sizeof got);
  ok(rille_script_begin(runtime, find(s, "spin"), NULL, 0, done, &got, NULL));
  ok(rille_turn(runtime, 1, NULL));
  rille_value r;
  ok(rille_script_call(runtime, find(s, "sum"), NULL, 0, &r, 1));
  CHECK(is_number(&r, 6));
  refused(rille_script_call(runtime, find(s, "spin"), NULL, 0, NULL, 0), RILLE_TIMEOUT, "300ms");
  turn_until(1);
  expect_failure(RILLE_TIMEOUT, "300ms");
  rille_script_free(s);
}

/* Limits of time and cancels end what a call has asked of devices, which would take minutes; other calls go on. A host
   function that looks at a tensor waits no longer either. */
static void test_tensors(void) {
  const char* source =
      "local app, d = require 'app', require('rille').device('cpu') "
      "local function long() local x = d:randn { 300, 300 } for i = 1, 100000 do x = x:matmul(x) * 1e-2 end "
      "return x end "
      "return { long = function() return long():sum():item() end, look = function() return app.first(long()) end, "
      "short = function() return d:ones { 4 }:sum():item() end }";
  const struct {
    int wall_ms, cpu_ms, slice_ms;
    const char *function, *words;
  } cases[] = {{600, 0, 0, "long", "took longer than 600ms"},
               {0, 600, 0, "long", "computed for 600ms"},
               {600, 0, 0, "look", "took longer than 600ms"},
               {0, 0, 600, "look", "time slice of 600ms"},
               {0, 0, 0, "long", "enough"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rille_run_options options;
    rille_run_options_init(&options, sizeof options);
    options.wall_ms = cases[i].wall_ms, options.cpu_ms = cases[i].cpu_ms, options.slice_ms = cases[i].slice_ms;
    rille_script* s = load(source, &options);
    memset(&got, 0, sizeof got);
    uint64_t call = 0;
    const time_t began = time(NULL);
    ok(rille_script_begin(runtime, find(s, cases[i].function), NULL, 0, done, &got, &call));
    if (strcmp(cases[i].words, "enough") == 0) {
      ok(rille_turn(runtime, 100, NULL));
      ok(rille_script_cancel(s, call, "enough"));
    }
    turn_until(1);
    expect_failure(strcmp(cases[i].words, "enough") == 0 ? RILLE_CANCELLED : RILLE_TIMEOUT, cases[i].words);
    ok(rille_script_begin(runtime, find(s, "short"), NULL, 0, done, &got, NULL));
    turn_until(2);
    if (got.failed) fprintf(stderr, "short after case %zu: %s\n", i, got.message);
    CHECK(!got.failed && got.value == 4);
    rille_script_free(s);
    CHECK(time(NULL) - began < 20);
  }
}

static pthread_barrier_t spinning;
static void tell(const char* output, size_t length, void* payload) {
  (void)output, (void)length, (void)payload;
  pthread_barrier_wait(&spinning);
}
static void* interrupt_now(void* rt) {
  pthread_barrier_wait(&spinning);
  rille_interrupt(rt);
  return NULL;
}

static void test_interrupt(void) {
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.print = tell;
  rille_script* s = load(
      "return { spin = function() print('x') while true do pcall(error) end end, "
      "add = function(a) return a + 1 end }",
      &options);
  pthread_barrier_init(&spinning, NULL, 2);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, interrupt_now, runtime) == 0);
  refused(rille_script_call(runtime, find(s, "spin"), NULL, 0, NULL, 0), RILLE_CANCELLED, "interrupted");
  pthread_join(thread, NULL);
  memset(&got, 0, sizeof got);
  CHECK(pthread_create(&thread, NULL, interrupt_now, runtime) == 0);
  ok(rille_script_begin(runtime, find(s, "spin"), NULL, 0, done, &got, NULL));
  turn_until(1);
  expect_failure(RILLE_CANCELLED, "interrupted");
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&spinning);
  rille_value r;
  ok(call1(find(s, "add"), number(1), &r));
  CHECK(is_number(&r, 2));
  rille_script_free(s);
}

/* ---- misuse */

static rille_script_function one;
static rille_script* shared_script;
static void* on_another_thread(void* payload) {
  (void)payload;
  rille_value r;
  rille_script* s = NULL;
  rille_script_function f;
  rille_view view = {sizeof view, NULL, 0, NULL, 0, {0}};
  refused(rille_script_call(runtime, one, NULL, 0, &r, 1), RILLE_STATE, "another thread");
  refused(rille_script_begin(runtime, one, NULL, 0, NULL, NULL, NULL), RILLE_STATE, "another thread");
  refused(rille_script_load(runtime, "x.lua", "", 0, NULL, &s), RILLE_STATE, "another thread");
  refused(rille_script_find(shared_script, "", &f), RILLE_STATE, "another thread");
  refused(rille_script_cancel(shared_script, 1, NULL), RILLE_STATE, "another thread");
  refused(rille_script_function_hold(runtime, one), RILLE_STATE, "another thread");
  refused(rille_handle_view(runtime, 1, &view), RILLE_STATE, "another thread");
  return NULL;
}

static void test_misuse(void) {
  shared_script = load("return function() return 1 end", NULL);
  one = find(shared_script, "");
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, on_another_thread, NULL) == 0);
  pthread_join(thread, NULL);
  rille_value r;
  ok(rille_script_call(runtime, one, NULL, 0, &r, 1));
  rille_script_function f = 0;
  rille_handle h = 0;
  refused(rille_script_call(NULL, one, NULL, 0, &r, 1), RILLE_INVALID, "NULL");
  refused(rille_script_call(runtime, 0, NULL, 0, &r, 1), RILLE_STATE, "no longer valid");
  refused(rille_script_call(runtime, one, NULL, 2, &r, 1), RILLE_INVALID, "arguments is NULL");
  refused(rille_script_call(runtime, one, NULL, 0, NULL, 1), RILLE_INVALID, "results is NULL");
  refused(rille_script_call(runtime, one, &r, 201, &r, 1), RILLE_INVALID, "at most 200");
  refused(rille_script_load(runtime, "x.lua", NULL, 0, NULL, NULL), RILLE_INVALID, "source is NULL");
  refused(rille_script_load_file(runtime, NULL, NULL, NULL), RILLE_INVALID, "path is NULL");
  refused(rille_script_find(NULL, "", &f), RILLE_INVALID, "script is NULL");
  refused(rille_script_find(shared_script, NULL, &f), RILLE_INVALID, "name is NULL");
  refused(rille_script_cancel(NULL, 1, NULL), RILLE_INVALID, "script is NULL");
  refused(rille_buffer_wrap(NULL, &r, 1, NULL, NULL, &h), RILLE_INVALID, "runtime is NULL");
  refused(rille_handle_view(runtime, 1, NULL), RILLE_INVALID, "view is NULL");
  refused(rille_call_value(NULL, 0, &r), RILLE_INVALID, "call is NULL");
  rille_call_return_value(NULL, &r);
  rille_completion_resolve_value(NULL, &r);
  rille_handle_drop(NULL, 1);
  rille_script_function_drop(NULL, 1);
  rille_script_free(NULL);
  CHECK(rille_script_memory_bytes(NULL) == 0);
  rille_script_free(shared_script);
}

static struct {
  rille_script* script;
  rille_run* run;
  rille_script_function dropped;
} elsewhere;

static void* free_elsewhere(void* unused) {
  rille_script_function_drop(runtime, elsewhere.dropped);
  rille_run_free(elsewhere.run);
  rille_script_free(elsewhere.script);
  return unused;
}

/* What another thread frees is freed in the next turn. */
static void test_free_elsewhere(void) {
  rille_script* stays = load("return { f = function() return 1 end }", NULL);
  elsewhere.script = load("return function() return 2 end", NULL);
  elsewhere.dropped = find(stays, "f");
  const rille_script_function other = find(elsewhere.script, "");
  ok(rille_run_from_source(runtime, "run.lua", "return 1", 8, NULL, &elsewhere.run));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, free_elsewhere, NULL) == 0);
  pthread_join(thread, NULL);
  rille_value r;
  ok(rille_script_call(runtime, other, NULL, 0, &r, 1));
  CHECK(is_number(&r, 2));
  ok(rille_turn(runtime, 1000, NULL)); /* it returns when nothing is left: 10 ms may pass beside other work */
  refused(rille_script_call(runtime, other, NULL, 0, &r, 1), RILLE_STATE, "has been freed");
  refused(rille_script_function_hold(runtime, elsewhere.dropped), RILLE_STATE, "no longer valid");
  rille_script_free(stays);
}

/* A script that rille_shutdown has ended in the middle of a call keeps its handle. */
static void test_after_shutdown(void) {
  rille_script* s =
      load(APP "return function() rille.defer(function() rille.sleep('1h') end) rille.sleep('1h') end", NULL);
  const rille_script_function endless = find(s, "");
  ok(rille_script_begin(runtime, endless, NULL, 0, NULL, NULL, NULL));
  ok(rille_turn(runtime, 200, NULL)); /* the call has begun, also beside other work */
  rille_error* error = rille_shutdown(runtime, 0);
  CHECK(error && rille_error_kind(error) == RILLE_TIMEOUT);
  rille_error_free(error);
  rille_script_function none = 1;
  refused(rille_script_find(s, "", &none), RILLE_STATE, "rille_shutdown");
  refused(rille_script_call(runtime, endless, NULL, 0, NULL, 0), RILLE_STATE, "has been freed");
  rille_script_free(s);
}

int main(void) {
  runtime = create("scripts");
  test_state();
  test_errors();
  test_waiting();
  test_limits();
  test_given_way();
  test_tensors();
  test_interrupt();
  test_misuse();
  test_free_elsewhere();
  test_after_shutdown();
  rille_destroy(runtime);
  runtime = create("scripts");
  elsewhere.script = load("return function() end", NULL);
  elsewhere.dropped = 0;
  ok(rille_run_from_source(runtime, "left.lua", "return 1", 8, NULL, &elsewhere.run));
  pthread_t thread; /* the runtime ends before its next turn */
  CHECK(pthread_create(&thread, NULL, free_elsewhere, NULL) == 0);
  pthread_join(thread, NULL);
  rille_destroy(runtime);
  printf("scripts, calls and limits: as rille.h says\n");
  return 0;
}
