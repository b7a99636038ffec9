/* Values between the host program and scripts, checked: every kind both ways, functions of scripts held, dropped and
   called, memory shared and given back once, limits of each call, misuse refused. */
#define _XOPEN_SOURCE 700 /* pthread_barrier_t */
#include <pthread.h>
#include <rille.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

#define ok(error) ok_at(__LINE__, error)
static void ok_at(int line, rille_error* error) {
  if (error) fprintf(stderr, "line %d: %s\n", line, rille_error_to_json(error));
  CHECK(!error);
}

#define refused(error, kind, words) refused_at(__LINE__, error, kind, words)
static void refused_at(int line, rille_error* error, rille_kind kind, const char* words) {
  if (!error || rille_error_kind(error) != kind || !strstr(rille_error_message(error), words)) {
    fprintf(stderr, "line %d: expected '%s', got %s\n", line, words, error ? rille_error_to_json(error) : "none");
    exit(1);
  }
  rille_error_free(error);
}

static rille_value number(double n) {
  rille_value v = {RILLE_VALUE_NUMBER, {0}};
  v.as.number = n;
  return v;
}

static rille_value integer(int64_t n) {
  rille_value v = {RILLE_VALUE_INTEGER, {0}};
  v.as.integer = n;
  return v;
}

static rille_value text(const char* s) {
  rille_value v = {RILLE_VALUE_BYTES, {0}};
  v.as.bytes.data = s, v.as.bytes.size = strlen(s);
  return v;
}

static rille_value table(const rille_table* t) {
  rille_value v = {RILLE_VALUE_TABLE, {0}};
  v.as.table = t;
  return v;
}

static rille_value handle(rille_handle h) {
  rille_value v = {RILLE_VALUE_HANDLE, {0}};
  v.as.handle = h;
  return v;
}

static rille_value function(rille_script_function f) {
  rille_value v = {RILLE_VALUE_FUNCTION, {0}};
  v.as.function = f;
  return v;
}

static rille_field field(const char* name, rille_value value) {
  rille_field f = {name, strlen(name), value};
  return f;
}

static const rille_value* get(const rille_value* v, const char* name) {
  CHECK(v->kind == RILLE_VALUE_TABLE);
  for (size_t i = 0; i < v->as.table->field_count; ++i)
    if (strcmp(v->as.table->fields[i].name, name) == 0) return &v->as.table->fields[i].value;
  return NULL;
}

static int is_text(const rille_value* v, const char* s) {
  return v && v->kind == RILLE_VALUE_BYTES && v->as.bytes.size == strlen(s) && strcmp(v->as.bytes.data, s) == 0;
}

static int is_number(const rille_value* v, double n) { return v && v->kind == RILLE_VALUE_NUMBER && v->as.number == n; }

/* ---- the functions that scripts call */

static rille_runtime* runtime; /* the one under test */

static void echo(rille_call* call, void* payload) {
  (void)payload;
  rille_value v;
  rille_error* error = rille_call_value(call, 0, &v);
  if (error) rille_call_fail(call, error);
  else rille_call_return_value(call, &v);
}

/* A table with a list, a name, and three kinds of numbers. */
static void make(rille_call* call, void* payload) {
  (void)payload;
  rille_value list[] = {number(1), text("two"), {RILLE_VALUE_NIL, {0}}, number(4)};
  rille_table inner = {list, 4, NULL, 0};
  rille_field fields[] = {field("list", table(&inner)), field("whole", integer(1LL << 53)), field("half", number(0.5))};
  rille_table t = {NULL, 0, fields, 3};
  rille_value v = table(&t);
  rille_call_return_value(call, &v);
  memset(fields, 0x55, sizeof fields); /* it was copied */
  memset(list, 0x55, sizeof list);
}

static const rille_value* bad_value;
static void bad(rille_call* call, void* payload) {
  (void)payload;
  rille_call_return_value(call, bad_value);
}

/* Calls the function that it is given with the second argument plus one. */
static void apply(rille_call* call, void* payload) {
  (void)payload;
  rille_value f, argument, result;
  rille_error* error = rille_call_value(call, 0, &f);
  if (!error) error = rille_call_value(call, 1, &argument);
  if (!error) {
    CHECK(f.kind == RILLE_VALUE_FUNCTION);
    if (argument.kind == RILLE_VALUE_NUMBER) argument.as.number += 1;
    error = rille_script_call(runtime, f.as.function, &argument, 1, &result, 1);
  }
  if (error) rille_call_fail(call, error);
  else rille_call_return_value(call, &result);
}

static rille_script_function kept_function, lent_function;
static rille_handle kept_handle;
static void keep(rille_call* call, void* payload) {
  (void)payload;
  rille_value v;
  rille_error* error = rille_call_value(call, 0, &v);
  if (error) {
    rille_call_fail(call, error);
    return;
  }
  if (v.kind == RILLE_VALUE_FUNCTION) {
    kept_function = v.as.function;
    ok(rille_script_function_hold(runtime, kept_function));
  } else if (v.kind == RILLE_VALUE_HANDLE) {
    kept_handle = v.as.handle;
    ok(rille_handle_hold(runtime, kept_handle));
  }
}

static void borrow(rille_call* call, void* payload) {
  (void)payload;
  rille_value v;
  ok(rille_call_value(call, 0, &v));
  lent_function = v.as.function;
}

static rille_completion* waiting;
static void later(rille_call* call, void* payload) {
  (void)payload;
  waiting = rille_call_suspend(call);
}

static const rille_function_spec functions[] = {
    {sizeof(rille_function_spec), "echo", RILLE_PURE, echo, NULL},
    {sizeof(rille_function_spec), "make", RILLE_PURE, make, NULL},
    {sizeof(rille_function_spec), "bad", RILLE_PURE, bad, NULL},
    {sizeof(rille_function_spec), "apply", RILLE_PURE, apply, NULL},
    {sizeof(rille_function_spec), "keep", RILLE_PURE, keep, NULL},
    {sizeof(rille_function_spec), "borrow", RILLE_PURE, borrow, NULL},
    {sizeof(rille_function_spec), "later", RILLE_PURE, later, NULL},
    {sizeof(rille_function_spec), "later_step", RILLE_STEP, later, NULL},
    {sizeof(rille_function_spec), "echo_step", RILLE_STEP, echo, NULL},
    {sizeof(rille_function_spec), "make_step", RILLE_STEP, make, NULL},
};

static rille_runtime* create(const char* name) {
  char home[512];
  snprintf(home, sizeof home, "%s/%s", getenv("RILLE_HOME"), name);
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = home;
  rille_runtime* rt = NULL;
  ok(rille_create(&options, &rt));
  ok(rille_register_module(rt, "app", functions, sizeof functions / sizeof *functions));
  return rt;
}

#define APP "local app, rille = require 'app', require 'rille' "

static rille_script* load(const char* source, const rille_run_options* options) {
  rille_script* script = NULL;
  ok(rille_script_load(runtime, "script.lua", source, strlen(source), options, &script));
  return script;
}

static rille_script_function find(rille_script* script, const char* name) {
  rille_script_function f = 0;
  ok(rille_script_find(script, name, &f));
  CHECK(f);
  return f;
}

static rille_error* call1(rille_script_function f, rille_value argument, rille_value* result) {
  return rille_script_call(runtime, f, &argument, 1, result, 1);
}

/* ---- every kind, both ways */

static void test_kinds(void) {
  rille_script* s = load(
      APP
      "local M = {} "
      "function M.describe(v) return type(v), v == nil and 'nil' or tostring(v) end "
      "function M.table() return { 10, 20, { deep = 'x' }, name = 'n', long = ('y'):rep(5000), zero = 'a\\0b' } end "
      "function M.sum(t) local n = 0 for _, x in ipairs(t) do n = n + x end return n + t.extra end "
      "function M.same(v) return v end "
      "function M.made() local t = app.make() "
      "  return #t.list, t.list[1], t.list[2], t.list[3], t.list[4], t.whole == 2 ^ 53, t.half end "
      "function M.echo(v) return app.echo(v) end "
      "return M",
      NULL);
  rille_script_function describe = find(s, "describe");
  rille_value r[8], nil = {RILLE_VALUE_NIL, {0}}, yes = {RILLE_VALUE_BOOL, {0}};
  yes.as.boolean = 1;
  const rille_value given[] = {nil, yes, number(1.5), integer(-7), text("abc")};
  const char* const expected[] = {"nil", "true", "1.5", "-7", "abc"};
  for (int i = 0; i < 5; ++i) {
    ok(rille_script_call(runtime, describe, &given[i], 1, r, 2));
    CHECK(is_text(&r[1], expected[i]));
  }
  ok(rille_script_call(runtime, find(s, "table"), NULL, 0, r, 3)); /* two results too many are nil */
  CHECK(r[0].as.table->item_count == 3 && is_number(&r[0].as.table->items[1], 20) && r[0].as.table->field_count == 3);
  CHECK(is_text(get(&r[0].as.table->items[2], "deep"), "x") && is_text(get(&r[0], "name"), "n"));
  CHECK(get(&r[0], "long")->as.bytes.size == 5000 && !get(&r[0], "none"));
  CHECK(get(&r[0], "zero")->as.bytes.size == 3 && memcmp(get(&r[0], "zero")->as.bytes.data, "a\0b", 4) == 0);
  CHECK(r[1].kind == RILLE_VALUE_NIL && r[2].kind == RILLE_VALUE_NIL);
  rille_value list[] = {number(1), integer(2), number(3)};
  rille_field fields[] = {field("extra", number(100))};
  rille_table t = {list, 3, fields, 1};
  ok(call1(find(s, "sum"), table(&t), r));
  CHECK(is_number(r, 106));
  ok(rille_script_call(runtime, find(s, "made"), NULL, 0, r, 7));
  CHECK(is_number(&r[0], 4) && is_number(&r[1], 1) && is_text(&r[2], "two") && r[3].kind == RILLE_VALUE_NIL);
  CHECK(is_number(&r[4], 4) && r[5].as.boolean && is_number(&r[6], 0.5));
  ok(call1(find(s, "echo"), table(&t), r)); /* into the script, out, in again and out */
  CHECK(r->as.table->item_count == 3 && is_number(get(r, "extra"), 100));
  ok(rille_script_call(runtime, describe, NULL, 0, NULL, 0)); /* nothing given, nothing wanted */
  rille_script_free(s);
}

static void test_refused_values(void) {
  rille_script* s =
      load(APP
           "return { same = function(v) return v end, bad = app.bad, echo = app.echo, "
           "cycle = function() local t = { a = {} } t.a.b = t return t end, "
           "deep = function(n) local t = {} for i = 1, n do t = { t } end return t end, "
           "key = function() return { x = { [2.5] = 1 } } end, hole = function() return { [1] = 1, [9] = 9 } end, "
           "co = function() return { coroutine.create(print) } end, "
           "echo_cycle = function() local t = {} t.t = t return app.echo(t) end, "
           "echo_step = function() return app.echo_step(print) end }",
           NULL);
  rille_value r;
  refused(rille_script_call(runtime, find(s, "cycle"), NULL, 0, &r, 1), RILLE_INVALID,
          "result 1.a.b contains a table that refers back to itself");
  CHECK(r.kind == RILLE_VALUE_NIL);
  ok(call1(find(s, "deep"), number(99), &r));
  refused(call1(find(s, "deep"), number(101), &r), RILLE_INVALID, "nested deeper than 100 tables");
  refused(rille_script_call(runtime, find(s, "key"), NULL, 0, &r, 1), RILLE_INVALID, "result 1.x has 2.5 as a key");
  refused(rille_script_call(runtime, find(s, "hole"), NULL, 0, &r, 1), RILLE_INVALID, "has 9 as a key");
  refused(rille_script_call(runtime, find(s, "co"), NULL, 0, &r, 1), RILLE_INVALID, "result 1[1] is a thread");
  refused(rille_script_call(runtime, find(s, "echo_cycle"), NULL, 0, &r, 1), RILLE_INVALID,
          "argument 1 of app.echo.t contains a table");
  rille_script_function same = find(s, "same"), bad_one = find(s, "bad");
  rille_value self;
  rille_table around = {&self, 1, NULL, 0};
  self = table(&around);
  rille_value no_kind = {(rille_value_kind)77, {0}}, no_bytes = {RILLE_VALUE_BYTES, {0}}, no_table = table(NULL);
  no_bytes.as.bytes.size = 3;
  rille_table no_items = {NULL, 2, NULL, 0};
  rille_field unnamed = {NULL, 0, {RILLE_VALUE_NIL, {0}}};
  rille_table no_name = {NULL, 0, &unnamed, 1};
  const struct {
    rille_value value;
    const char* words;
  } wrong[] = {{self, "in itself"},
               {no_kind, "unknown kind 77"},
               {no_bytes, "bytes at NULL"},
               {no_table, "a table at NULL"},
               {table(&no_items), "at NULL"},
               {table(&no_name), "without a name"},
               {integer((1LL << 53) + 1), "2^53"},
               {handle(12345), "no longer valid"},
               {function(12345), "no longer valid"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    refused(call1(same, wrong[i].value, &r), RILLE_INVALID, wrong[i].words);
    bad_value = &wrong[i].value;
    refused(rille_script_call(runtime, bad_one, NULL, 0, &r, 1), RILLE_INVALID, wrong[i].words);
  }
  refused(call1(same, table(&(rille_table){&(rille_value){(rille_value_kind)77, {0}}, 1, NULL, 0}), &r), RILLE_INVALID,
          "argument 1[1]");
  rille_script_free(s);
}

/* ---- scripts */

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
  CHECK(!s);
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

static void test_functions(void) {
  rille_script* s = load(APP
                         "return { keep = function() local n = 0 app.keep(function(d) n = n + d return n end) end, "
                         "borrow = function() app.borrow(function() end) end, "
                         "apply = function(x) return app.apply(function(y) return y * 2 end, x) end, "
                         "recurse = function() local function f() return app.apply(f, 0) end return f() end, "
                         "call = function(f, x) return f(x) end }",
                         NULL);
  rille_value r;
  ok(call1(find(s, "apply"), number(20), &r));
  CHECK(is_number(&r, 42));
  rille_error* error = rille_script_call(runtime, find(s, "recurse"), NULL, 0, &r, 1);
  CHECK(error && rille_error_kind(error) == RILLE_STATE && strstr(rille_error_message(error), "nested 100 deep"));
  rille_error_free(error);
  ok(rille_script_call(runtime, find(s, "keep"), NULL, 0, NULL, 0));
  ok(call1(kept_function, number(2), &r));
  ok(call1(kept_function, number(3), &r));
  CHECK(is_number(&r, 5));
  rille_value two[] = {function(kept_function), number(10)};
  ok(rille_script_call(runtime, find(s, "call"), two, 2, &r, 1));
  CHECK(is_number(&r, 15));
  rille_script* other = load("return function(f) return f end", NULL);
  refused(call1(find(other, ""), function(kept_function), &r), RILLE_INVALID, "a function of another script");
  rille_script_free(other);
  rille_script_function_drop(runtime, kept_function);
  refused(call1(kept_function, number(1), &r), RILLE_STATE, "no longer valid");
  refused(rille_script_function_hold(runtime, kept_function), RILLE_STATE, "no longer valid");
  rille_script_function_drop(runtime, kept_function); /* once more: no effect */
  ok(rille_script_call(runtime, find(s, "borrow"), NULL, 0, NULL, 0));
  refused(rille_script_call(runtime, lent_function, NULL, 0, NULL, 0), RILLE_STATE, "no longer valid");
  rille_script_function call = find(s, "call");
  rille_script_free(s);
  refused(call1(call, number(1), &r), RILLE_STATE, "has been freed");
  rille_script_function_drop(runtime, call);
  refused(call1(call, number(1), &r), RILLE_STATE, "no longer valid");
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

/* ---- memory */

static int released;
static void release(void* data, void* payload) {
  CHECK(data && payload == &released);
  ++released;
}

static void turn_a_few(void) {
  for (int i = 0; i < 5; ++i) ok(rille_turn(runtime, 1, NULL));
}

static void test_buffers(void) {
  static char bytes[1 << 16];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = (char)('a' + i % 26);
  rille_script* s = load(APP
                         "return { look = function(b) return #b, b:text(1, 3), b:text(-2), tostring(b) end, "
                         "keep = app.keep, same = function(b) return b end, "
                         "sum = function(b) local t = b:tensor('u8') return t:sum():item() end, "
                         "store = function(b) stored = b end, forget = function() stored = nil collectgarbage() "
                         "collectgarbage() end }",
                         NULL);
  released = 0;
  rille_handle h = 0;
  ok(rille_buffer_wrap(runtime, bytes, sizeof bytes, release, &released, &h));
  rille_value r[4];
  ok(rille_script_call(runtime, find(s, "look"), &(rille_value){RILLE_VALUE_HANDLE, {.handle = h}}, 1, r, 4));
  CHECK(is_number(&r[0], sizeof bytes) && is_text(&r[1], "abc") && is_text(&r[3], "Buffer of 65536 bytes"));
  rille_view view = {sizeof view, NULL, 0, NULL, 0, {0}};
  ok(call1(find(s, "same"), handle(h), r));
  CHECK(r[0].kind == RILLE_VALUE_HANDLE);
  ok(rille_handle_view(runtime, r[0].as.handle, &view));
  CHECK(view.data == bytes && view.size == sizeof bytes && !view.dtype && view.rank == 0);
  ok(call1(find(s, "store"), handle(h), r));
  ok(rille_script_call(runtime, find(s, "keep"), &(rille_value){RILLE_VALUE_HANDLE, {.handle = h}}, 1, NULL, 0));
  rille_handle_drop(runtime, h);
  refused(rille_handle_view(runtime, h, &view), RILLE_STATE, "no longer valid");
  refused(call1(find(s, "same"), handle(h), r), RILLE_INVALID, "no longer valid");
  refused(rille_handle_hold(runtime, h), RILLE_STATE, "no longer valid");
  rille_handle_drop(runtime, h);
  turn_a_few();
  CHECK(released == 0);
  ok(rille_script_call(runtime, find(s, "forget"), NULL, 0, NULL, 0));
  turn_a_few();
  CHECK(released == 0); /* still held, under the number that keep got */
  ok(rille_handle_view(runtime, kept_handle, &view));
  CHECK(view.data == bytes);
  rille_handle_drop(runtime, kept_handle);
  ok(rille_script_call(runtime, find(s, "forget"), NULL, 0, NULL, 0));
  turn_a_few();
  CHECK(released == 1);
  ok(rille_buffer_wrap(runtime, bytes, 10, release, &released, &h));
  ok(call1(find(s, "store"), handle(h), r));
  rille_handle_drop(runtime, h);
  rille_script_free(s); /* the script's end is the last use */
  turn_a_few();
  CHECK(released == 2);
  refused(rille_buffer_wrap(runtime, NULL, 10, release, &released, &h), RILLE_INVALID, "data is NULL");
  CHECK(released == 2 && h == 0);
}

static void test_tensors(void) {
  static float numbers[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[] = {2, 3}, negative[] = {-1};
  rille_script* s = load(APP
                         "return { double = function(t) t:mul_(2) return t end, plus = function(t) return t + 1 end, "
                         "turned = function(t) return t:transpose(1, 2) end, other = function(t) return t end }",
                         NULL);
  released = 0;
  rille_handle h = 0;
  ok(rille_tensor_wrap(runtime, numbers, "f32", shape, 2, release, &released, &h));
  rille_value r;
  rille_view view = {sizeof view, NULL, 0, NULL, 0, {0}};
  ok(call1(find(s, "double"), handle(h), &r));
  ok(rille_handle_view(runtime, r.as.handle, &view));
  CHECK(view.data == numbers && view.size == sizeof numbers && strcmp(view.dtype, "f32") == 0);
  CHECK(view.rank == 2 && view.shape[0] == 2 && view.shape[1] == 3 && numbers[0] == 2 && numbers[5] == 12);
  ok(call1(find(s, "plus"), handle(h), &r));
  ok(rille_handle_view(runtime, r.as.handle, &view));
  CHECK(view.data != numbers && ((float*)view.data)[5] == 13);
  rille_handle plus = r.as.handle;
  ok(rille_handle_hold(runtime, plus));
  ok(call1(find(s, "turned"), handle(h), &r));
  void* before = view.data;
  ok(rille_handle_view(runtime, r.as.handle, &view));
  CHECK(view.shape[0] == 3 && ((float*)view.data)[1] == 8); /* row-major, so a copy */
  ok(rille_handle_view(runtime, plus, &view));              /* held, and where it was */
  CHECK(view.data == before && ((float*)view.data)[0] == 3);
  rille_script* other = load("return function(t) return t end", NULL);
  refused(call1(find(other, ""), handle(plus), &r), RILLE_INVALID, "a tensor of another script");
  ok(call1(find(other, ""), handle(h), &r)); /* memory of the host program goes anywhere */
  rille_script_free(other);
  rille_handle_drop(runtime, plus);
  rille_handle_drop(runtime, h);
  rille_script_free(s);
  turn_a_few();
  CHECK(released == 1);
  refused(rille_tensor_wrap(runtime, numbers, "f31", shape, 2, release, &released, &h), RILLE_INVALID, "f31");
  refused(rille_tensor_wrap(runtime, numbers, "f32", negative, 1, release, &released, &h), RILLE_INVALID, "-1");
  refused(rille_tensor_wrap(runtime, (char*)numbers + 1, "f32", shape, 2, release, &released, &h), RILLE_INVALID,
          "multiple of 4 bytes");
  view.struct_size = 0;
  refused(rille_handle_view(runtime, h, &view), RILLE_INVALID, "struct_size");
  CHECK(released == 1);
}

/* ---- completions */

static char shared[100];
static void* resolve(void* payload) {
  rille_handle h = 0;
  ok(rille_buffer_wrap(payload, shared, sizeof shared, release, &released, &h));
  rille_field fields[] = {field("data", handle(h)), field("n", number(7))};
  rille_table t = {NULL, 0, fields, 2};
  rille_value v = table(&t);
  rille_completion_resolve_value(waiting, &v);
  rille_handle_drop(payload, h);
  memset(fields, 0x55, sizeof fields);
  return NULL;
}

static rille_run* start(const char* source, rille_rules rules) {
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.rules = rules;
  rille_run* run = NULL;
  ok(rille_run_from_source(runtime, "run.lua", source, strlen(source), &options, &run));
  ok(rille_run_start(run));
  return run;
}

static void ends(rille_run* run, const char* json) {
  ok(rille_run_wait(run, -1));
  if (rille_run_error(run)) fprintf(stderr, "%s\n", rille_error_to_json(rille_run_error(run)));
  CHECK(rille_run_state(run) == RILLE_RUN_DONE && strcmp(rille_run_result(run, NULL), json) == 0);
  rille_run_free(run);
}

static void fails(rille_run* run, rille_kind kind, const char* words) {
  ok(rille_run_wait(run, -1));
  const rille_error* error = rille_run_error(run);
  if (error && !strstr(rille_error_message(error), words)) fprintf(stderr, "%s\n", rille_error_to_json(error));
  CHECK(error && rille_error_kind(error) == kind && strstr(rille_error_message(error), words));
  rille_run_free(run);
}

static void resolve_on_a_thread(void) {
  while (!waiting) ok(rille_turn(runtime, 1, NULL));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, resolve, runtime) == 0);
  pthread_join(thread, NULL);
  waiting = NULL;
}

static void test_completions(void) {
  released = 0;
  const char* source = APP "local t = app.later() return { #t.data, t.n }";
  for (int rules = RILLE_RULES_WORKFLOW; rules <= RILLE_RULES_OPEN; ++rules) {
    rille_run* run = start(source, rules);
    resolve_on_a_thread();
    ends(run, "[100,7]");
    turn_a_few();
    CHECK(released == rules + 1); /* the run's end is the last use */
  }
  rille_run* run = start(APP "return app.make_step().list", RILLE_RULES_WORKFLOW);
  ends(run, "[1,\"two\",null,4]");
  run = start(APP "return app.echo_step { a = { 1, 2 }, b = 'x' }", RILLE_RULES_WORKFLOW);
  ends(run, "{\"a\":[1,2],\"b\":\"x\"}");
  run = start(APP "app.later_step()", RILLE_RULES_WORKFLOW); /* the journal takes no handle */
  resolve_on_a_thread();
  fails(run, RILLE_INVALID, "the result of app.later_step.data is a handle, which the journal cannot store");
  run = start(APP "app.echo_step(print)", RILLE_RULES_WORKFLOW);
  fails(run, RILLE_INVALID, "argument 1 of app.echo_step is");
  turn_a_few();
  CHECK(released == 3);
  run = start(APP "app.later() error('not reached')", RILLE_RULES_OPEN); /* cancelled before the value arrives */
  while (!waiting) ok(rille_turn(runtime, 1, NULL));
  ok(rille_run_cancel(run, "no more"));
  ok(rille_run_wait(run, -1));
  CHECK(rille_run_state(run) == RILLE_RUN_CANCELLED && rille_completion_abandoned(waiting));
  resolve(runtime);
  waiting = NULL;
  rille_run_free(run);
  turn_a_few();
  CHECK(released == 4);
  run = start(APP "app.later_step() app.later()", RILLE_RULES_WORKFLOW); /* resolved, then cancelled */
  while (!waiting) ok(rille_turn(runtime, 1, NULL));
  resolve(runtime);
  waiting = NULL;
  ok(rille_run_cancel(run, "no more"));
  ok(rille_run_wait(run, -1));
  rille_run_free(run);
  turn_a_few();
  CHECK(released == 5);
}

/* Functions of runs: of an open one while it is active, of a journaled one inside the host function only. */
static void test_functions_of_runs(void) {
  rille_value r;
  rille_run* run =
      start(APP "local n = 0 app.keep(function(x) n = n + x return n end) app.later() return n", RILLE_RULES_OPEN);
  while (!waiting) ok(rille_turn(runtime, 1, NULL));
  ok(call1(kept_function, number(5), &r));
  CHECK(is_number(&r, 5));
  refused(rille_script_begin(runtime, kept_function, NULL, 0, NULL, NULL, NULL), RILLE_STATE, "only be called at once");
  rille_completion_resolve(waiting, NULL, 0);
  waiting = NULL;
  ends(run, "5");
  refused(call1(kept_function, number(5), &r), RILLE_STATE, "its run has ended");
  rille_script_function_drop(runtime, kept_function);
  run = start(APP "local got = app.apply(function(x) return x * 10 end, 4) app.keep(print) app.later() return got",
              RILLE_RULES_WORKFLOW);
  while (!waiting) ok(rille_turn(runtime, 1, NULL));
  refused(call1(kept_function, number(5), &r), RILLE_STATE, "a function of a journaled run");
  rille_completion_resolve(waiting, NULL, 0);
  waiting = NULL;
  ends(run, "50");
  rille_script_function_drop(runtime, kept_function);
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
  rille_script_function_drop(runtime, one); /* no effect */
  rille_script_free(shared_script);
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

/* What is still in use when the runtime ends is given back then, once. */
static void test_end(const char* name) {
  rille_runtime* before = runtime;
  runtime = create(name);
  released = 0;
  rille_script* s = load(APP "return { store = function(b) stored = b end, wait = function() app.later() end }", NULL);
  rille_value r;
  rille_handle h = 0, held = 0;
  ok(rille_buffer_wrap(runtime, shared, 10, release, &released, &h));
  ok(rille_buffer_wrap(runtime, shared, 10, release, &released, &held));
  ok(call1(find(s, "store"), handle(h), &r));
  rille_handle_drop(runtime, h);
  ok(rille_script_begin(runtime, find(s, "wait"), NULL, 0, NULL, NULL, NULL));
  while (!waiting) ok(rille_turn(runtime, 1, NULL));
  r = handle(held);
  rille_completion* last = waiting;
  waiting = NULL;
  if (strcmp(name, "shut") == 0) ok(rille_shutdown(runtime, 10000));
  rille_destroy(runtime);
  CHECK(released == 2);
  CHECK(rille_completion_abandoned(last));
  rille_completion_resolve_value(last, &r); /* too late */
  CHECK(released == 2);
  runtime = before;
}

int main(void) {
  runtime = create("values");
  test_kinds();
  test_refused_values();
  test_state();
  test_errors();
  test_functions();
  test_waiting();
  test_limits();
  test_interrupt();
  test_buffers();
  test_tensors();
  test_completions();
  test_functions_of_runs();
  test_misuse();
  test_end("end");
  test_end("shut");
  ok(rille_shutdown(runtime, 5000));
  rille_destroy(runtime);
  printf("values, functions and memory: as rille.h says\n");
  return 0;
}
