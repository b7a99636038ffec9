/* The rest of rille.h, checked: what a call tells and takes back, every field of an error, signals, a runtime that
   moves to another thread, memory. */
#include <pthread.h>
#include <rille.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

static void ok(rille_error* error) {
  if (error) fprintf(stderr, "%s\n", rille_error_to_json(error));
  CHECK(!error);
}

static char called_name[64], called_run[128];

static void negate(rille_call* call, void* payload) {
  (void)payload;
  snprintf(called_name, sizeof called_name, "%s", rille_call_name(call));
  snprintf(called_run, sizeof called_run, "%s", rille_call_run_id(call));
  int value = -1;
  rille_error* error = rille_call_bool(call, 0, &value);
  if (error) rille_call_fail(call, error);
  else rille_call_return_bool(call, !value);
}

static void pair(rille_call* call, void* payload) {
  (void)payload;
  rille_call_return_json(call, "{\"a\":1,\"b\":[true,null]}", 23);
}

static void broken(rille_call* call, void* payload) {
  (void)payload;
  rille_call_return_json(call, "{\"a\":", 5);
}

static const rille_function_spec functions[] = {
    {sizeof(rille_function_spec), "negate", RILLE_PURE, negate, NULL},
    {sizeof(rille_function_spec), "pair", RILLE_PURE, pair, NULL},
    {sizeof(rille_function_spec), "broken", RILLE_PURE, broken, NULL},
};

static rille_run* start(rille_runtime* rt, const char* source) {
  rille_run* run = NULL;
  ok(rille_run_from_source(rt, "test.lua", source, strlen(source), NULL, &run));
  ok(rille_run_start(run));
  return run;
}

static void gives(rille_runtime* rt, const char* source, const char* json) {
  rille_run* run = start(rt, source);
  ok(rille_run_wait(run, -1));
  if (rille_run_error(run)) fprintf(stderr, "%s\n", rille_error_to_json(rille_run_error(run)));
  CHECK(rille_run_state(run) == RILLE_RUN_DONE && strcmp(rille_run_result(run, NULL), json) == 0);
  CHECK(rille_run_memory_bytes(run) == 0);
  rille_run_free(run);
}

/* Runs the source, which must fail, and calls look with its error. */
static void fails(rille_runtime* rt, const char* source, void (*look)(const rille_error*)) {
  rille_run* run = start(rt, source);
  ok(rille_run_wait(run, -1));
  CHECK(rille_run_state(run) == RILLE_RUN_FAILED && rille_run_error(run));
  look(rille_run_error(run));
  rille_run_free(run);
}

static void is_invalid(const rille_error* error) { CHECK(rille_error_kind(error) == RILLE_INVALID); }

static void has_all_fields(const rille_error* error) {
  CHECK(rille_error_kind(error) == RILLE_NETWORK && strcmp(rille_error_code(error), "SlowDown") == 0);
  CHECK(rille_error_http_status(error) == 503 && rille_error_retry_after_ms(error) == 2500);
  CHECK(rille_error_retryable(error));
}

static void has_no_fields(const rille_error* error) {
  CHECK(strcmp(rille_error_code(error), "lua_error") == 0 && rille_error_http_status(error) == 0);
  CHECK(rille_error_retry_after_ms(error) == -1);
}

static void test_calls(rille_runtime* rt) {
  gives(rt, "return require('app').negate(true)", "false");
  CHECK(strcmp(called_name, "app.negate") == 0 && called_run[0]);
  gives(rt, "local p = require('app').pair() return { p.a, p.b[1], #p.b }", "[1,true,2]");
  fails(rt, "return require('app').negate(1)", is_invalid);
  fails(rt, "return require('app').broken()", is_invalid);
}

static void test_errors(rille_runtime* rt) {
  fails(rt,
        "require('rille').error({ kind = 'network', message = 'busy', code = 'SlowDown', http_status = 503, "
        "retry_after = 2.5, retryable = true })",
        has_all_fields);
  fails(rt, "error('plain')", has_no_fields);
}

static void delivered(const rille_error* error, void* answers) {
  CHECK(!error);
  ++*(int*)answers;
}

static void test_signal(rille_runtime* rt) {
  int answers = 0;
  rille_run* run = start(rt, "return require('rille').signal('go').n");
  CHECK(rille_run_memory_bytes(run) > 10000);
  ok(rille_signal(rt, rille_run_id(run), "go", "{\"n\":7}", delivered, &answers));
  while (!answers) ok(rille_turn(rt, 5, NULL));
  ok(rille_run_wait(run, -1));
  CHECK(rille_run_state(run) == RILLE_RUN_DONE && strcmp(rille_run_result(run, NULL), "7") == 0);
  rille_error* error = rille_signal(rt, rille_run_id(run), "go", "{", NULL, NULL);
  CHECK(error && rille_error_kind(error) == RILLE_INVALID);
  rille_error_free(error);
  rille_run_free(run);
}

static void* drive(void* rt) {
  rille_error* error = rille_turn(rt, 0, NULL);
  CHECK(error && rille_error_kind(error) == RILLE_STATE);
  rille_error_free(error);
  ok(rille_adopt(rt));
  gives(rt, "return 1 + 1", "2");
  ok(rille_shutdown(rt, 5000));
  rille_destroy(rt);
  return NULL;
}

int main(void) {
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = getenv("RILLE_HOME");
  rille_runtime* rt = NULL;
  ok(rille_create(&options, &rt));
  ok(rille_register_module(rt, "app", functions, sizeof functions / sizeof *functions));
  test_calls(rt);
  test_errors(rt);
  test_signal(rt);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, drive, rt) == 0);
  pthread_join(thread, NULL);
  printf("calls, errors, signals and threads: as rille.h says\n");
  return 0;
}
