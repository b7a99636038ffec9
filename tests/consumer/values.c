/* Values between the host program and scripts, checked: every kind both ways, functions held, dropped and called,
   memory shared and given back once, what is refused. */
#include "values.h"

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

/* Tables of a few scalar fields are lent in another way than all others. */
static void test_records(void) {
  rille_script* s = load(APP
                         "local M = {} "
                         "function M.fields(n, last) "
                         "  local t = {} for i = 1, n do t['f' .. i] = i end t.last = last return t end "
                         "function M.echo(n, last) return app.echo(M.fields(n, last)) end "
                         "return M",
                         NULL);
  rille_value r, arguments[2];
  const int counts[] = {0, 1, 3, 15, 16, 17, 40};
  const char* const ways[] = {"fields", "echo"};
  for (int way = 0; way < 2; ++way) {
    const rille_script_function f = find(s, ways[way]);
    for (int i = 0; i < 7; ++i) {
      arguments[0] = number(counts[i]), arguments[1] = (rille_value){RILLE_VALUE_NIL, {0}};
      ok(rille_script_call(runtime, f, arguments, 2, &r, 1));
      CHECK(r.as.table->item_count == 0 && (int)r.as.table->field_count == counts[i]);
      for (int n = 1; n <= counts[i]; ++n) {
        char name[16];
        snprintf(name, sizeof name, "f%d", n);
        CHECK(is_number(get(&r, name), n));
      }
    }
    arguments[0] = number(2), arguments[1] = text("end");
    ok(rille_script_call(runtime, f, arguments, 2, &r, 1));
    CHECK(r.as.table->field_count == 3 && is_text(get(&r, "last"), "end") && is_number(get(&r, "f2"), 2));
    arguments[1] = (rille_value){RILLE_VALUE_BOOL, {0}};
    ok(rille_script_call(runtime, f, arguments, 2, &r, 1));
    CHECK(get(&r, "last")->kind == RILLE_VALUE_BOOL && !get(&r, "last")->as.boolean);
  }
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
  test_records();
  test_refused_values();
  test_functions();
  test_buffers();
  test_tensors();
  test_completions();
  test_functions_of_runs();
  test_end("end");
  test_end("shut");
  ok(rille_shutdown(runtime, 5000));
  rille_destroy(runtime);
  printf("values, functions and memory: as rille.h says\n");
  return 0;
}
