/* What rille.h promises, checked: two runtimes on one thread, a function that another thread resolves, errors' fields,
   limits, interrupts, resume from the journal, misuse refused, signals left alone. */
#define _GNU_SOURCE /* sigaction, nanosleep */
#include <poll.h>
#include <pthread.h>
#include <rille.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

static void ok(rille_error* error) {
  if (error) fprintf(stderr, "%s\n", rille_error_to_json(error));
  CHECK(!error);
}

static void refused(rille_error* error, rille_kind kind, const char* words) {
  CHECK(error && rille_error_kind(error) == kind);
  if (!strstr(rille_error_message(error), words)) fprintf(stderr, "%s\n", rille_error_to_json(error));
  CHECK(strstr(rille_error_message(error), words));
  rille_error_free(error);
}

static void* resolve(void* completion) {
  rille_completion_resolve(completion, "[1,2,3]", 7);
  return NULL;
}

static int fetches;
static pthread_t fetcher;
static void fetch(rille_call* call, void* payload) {
  (void)payload;
  ++fetches;
  CHECK(rille_call_count(call) == 1 && strcmp(rille_call_json(call, 0, NULL), "{\"page\":7}") == 0);
  CHECK(pthread_create(&fetcher, NULL, resolve, rille_call_suspend(call)) == 0);
}

static rille_completion* kept;
static void forever(rille_call* call, void* payload) {
  (void)payload;
  kept = rille_call_suspend(call);
}

static void add(rille_call* call, void* payload) {
  (void)payload;
  double a, b;
  rille_error* error = rille_call_number(call, 0, &a);
  if (!error) error = rille_call_number(call, 1, &b);
  if (error) rille_call_fail(call, error);
  else rille_call_return_number(call, a + b);
}

static void refuse(rille_call* call, void* payload) {
  (void)payload;
  rille_call_fail(call, rille_error_create(RILLE_QUOTA, "no seats left", "ask for fewer"));
}

static const rille_function_spec functions[] = {
    {sizeof(rille_function_spec), "fetch", RILLE_STEP, fetch, NULL},
    {sizeof(rille_function_spec), "forever", RILLE_STEP, forever, NULL},
    {sizeof(rille_function_spec), "add", RILLE_PURE, add, NULL},
    {sizeof(rille_function_spec), "roll", RILLE_VOLATILE, add, NULL},
    {sizeof(rille_function_spec), "refuse", RILLE_STEP, refuse, NULL},
};

static rille_runtime* create(const char* folder, const char* name) {
  char home[512];
  snprintf(home, sizeof home, "%s/%s", folder, name);
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = home;
  rille_runtime* rt = NULL;
  ok(rille_create(&options, &rt));
  ok(rille_register_module(rt, "app", functions, sizeof functions / sizeof *functions));
  return rt;
}

static rille_run* prepare(rille_runtime* rt, const char* source, const rille_run_options* options) {
  rille_run* run = NULL;
  ok(rille_run_from_source(rt, "test.lua", source, strlen(source), options, &run));
  return run;
}

static rille_run* start(rille_runtime* rt, const char* source) {
  rille_run* run = prepare(rt, source, NULL);
  ok(rille_run_start(run));
  return run;
}

static void turn_both(rille_runtime* a, rille_runtime* b) {
  struct pollfd ready[2] = {{rille_poll_fd(a), POLLIN, 0}, {rille_poll_fd(b), POLLIN, 0}};
  int ta = rille_poll_timeout_ms(a), tb = rille_poll_timeout_ms(b);
  CHECK(poll(ready, 2, ta < 0 ? tb : tb < 0 || ta < tb ? ta : tb) >= 0);
  ok(rille_turn(a, 5, NULL));
  ok(rille_turn(b, 5, NULL));
}

static void count(rille_run* run, void* payload) {
  CHECK(rille_run_state(run) == RILLE_RUN_DONE);
  ++*(int*)payload;
}

static void test_two_runtimes(rille_runtime* a, rille_runtime* b) {
  rille_run* one = start(a, "local t = require('app').fetch { page = 7 } return #t");
  rille_run* two = start(b, "require('rille').sleep(0.01) return require('app').add(40, 2)");
  int done = 0;
  ok(rille_run_on_done(one, count, &done));
  ok(rille_run_on_done(two, count, &done));
  while (done < 2) turn_both(a, b);
  pthread_join(fetcher, NULL);
  CHECK(strcmp(rille_run_result(one, NULL), "3") == 0 && strcmp(rille_run_result(two, NULL), "42") == 0);
  CHECK(fetches == 1 && !rille_run_error(one));
  rille_run_free(one);
  rille_run_free(two);
}

static const rille_error* fails(rille_runtime* rt, rille_run* run, rille_kind kind) {
  (void)rt;
  ok(rille_run_wait(run, -1));
  const rille_error* error = rille_run_error(run);
  CHECK(error);
  if (rille_error_kind(error) != kind) fprintf(stderr, "%s\n", rille_error_to_json(error));
  CHECK(rille_error_kind(error) == kind && !rille_run_result(run, NULL));
  return error;
}

static void test_errors(rille_runtime* rt) {
  rille_run* run = NULL;
  refused(rille_run_from_source(rt, "bad.lua", "x = = 1", 7, NULL, &run), RILLE_INVALID, "bad.lua:1");
  CHECK(!run);
  run = start(rt, "require('app').refuse()");
  const rille_error* error = fails(rt, run, RILLE_QUOTA);
  CHECK(strcmp(rille_error_message(error), "no seats left") == 0 &&
        strcmp(rille_error_hint(error), "ask for fewer") == 0);
  CHECK(strstr(rille_error_traceback(error), "test.lua:1") && strcmp(rille_error_field(error, "provider"), "") == 0);
  CHECK(!rille_error_field(error, "colour") && !rille_error_cause(error) &&
        strstr(rille_error_to_json(error), "\"quota\""));
  rille_run_free(run);
  run = start(rt, "require('app').add(1, 'x')");
  CHECK(strstr(rille_error_message(fails(rt, run, RILLE_INVALID)), "app.add: argument 2"));
  rille_run_free(run);
  run = start(rt, "require('app').ad(1)");
  CHECK(strstr(rille_error_hint(fails(rt, run, RILLE_INVALID)), "add"));
  rille_run_free(run);
  run = start(rt, "require('app').roll(1, 2)");
  CHECK(strstr(rille_error_hint(fails(rt, run, RILLE_STATE)), "rille.step"));
  rille_run_free(run);
  run = start(rt, "return require('rille').step('roll', function() return require('app').roll(1, 2) end)");
  ok(rille_run_wait(run, -1));
  CHECK(rille_run_state(run) == RILLE_RUN_DONE);
  rille_run_free(run);
}

static void test_limits(rille_runtime* rt) {
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.memory_bytes = 16 << 20;
  rille_run* run = prepare(rt, "local t = {} for i = 1, 1e9 do t[i] = { i } end", &options);
  ok(rille_run_start(run));
  fails(rt, run, RILLE_MEMORY);
  rille_run_free(run);
  rille_run_options_init(&options, sizeof options);
  options.slice_ms = 50;
  run = prepare(rt, "while true do end", &options);
  ok(rille_run_start(run));
  CHECK(strstr(rille_error_message(fails(rt, run, RILLE_TIMEOUT)), "50ms"));
  rille_run_free(run);
  rille_run_options_init(&options, sizeof options);
  options.wall_ms = 50;
  run = prepare(rt, "require('rille').sleep('1h')", &options);
  ok(rille_run_start(run));
  CHECK(strstr(rille_error_message(fails(rt, run, RILLE_TIMEOUT)), "50ms"));
  rille_run_free(run);
  rille_run_options_init(&options, sizeof options);
  options.spend_micros = 1000000;
  run = prepare(rt, "require('rille').budget { limit = 2 }", &options);
  ok(rille_run_start(run));
  fails(rt, run, RILLE_BUDGET);
  rille_run_free(run);
  rille_run_options_init(&options, sizeof options);
  options.leases_max = 0;
  options.grants = "{\"providers\": [\"local\"], \"process\": true}";
  run = prepare(rt, "require('rille').rent('box', { provider = 'local' })", &options);
  ok(rille_run_start(run));
  fails(rt, run, RILLE_QUOTA);
  rille_run_free(run);
  rille_run_options_init(&options, sizeof options); /* nothing is rented unless the host says how much */
  CHECK(options.leases_max == RILLE_AS_GRANTED && options.spend_micros == RILLE_AS_GRANTED);
  options.grants = "{\"providers\": [\"local\"], \"process\": true}";
  run = prepare(rt, "require('rille').rent('box', { provider = 'local' })", &options);
  ok(rille_run_start(run));
  const rille_error* error = fails(rt, run, RILLE_QUOTA);
  CHECK(strcmp(rille_error_message(error), "the run holds 0 leases, and the host program allows 0") == 0);
  CHECK(strcmp(rille_error_hint(error), "raise the limit leases_max") == 0);
  rille_run_free(run);
  options.leases_max = -3;
  refused(rille_run_from_source(rt, "x.lua", "", 0, &options, &run), RILLE_INVALID, "leases_max = -3");
  rille_run_options_init(&options, sizeof options);
  options.wall_ms = -1;
  refused(rille_run_from_source(rt, "x.lua", "", 0, &options, &run), RILLE_INVALID, "wall_ms = -1");
}

/* A run with limits of leases and money starts child runs, which share them. */
static void test_child_limits(rille_runtime* rt, const char* folder) {
  static const struct {
    const char* child;
    rille_kind kind;
    const char* words;
  } cases[] = {
      {"require('rille').rent('box', { provider = 'local' })", RILLE_QUOTA, "its child runs hold 0 leases"},
      {"require('rille').budget { limit = 2 }", RILLE_BUDGET, "more than the $1.00"},
      {"return 7", RILLE_INTERNAL, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char path[600], source[200];
    snprintf(path, sizeof path, "%s/limited%zu.lua", folder, i);
    FILE* file = fopen(path, "w");
    CHECK(file && fputs(cases[i].child, file) >= 0 && fclose(file) == 0);
    snprintf(source, sizeof source, "return require('rille').run('limited%zu.lua')", i);
    snprintf(path, sizeof path, "%s/parent%zu.lua", folder, i);
    file = fopen(path, "w");
    CHECK(file && fputs(source, file) >= 0 && fclose(file) == 0);
    rille_run_options options;
    rille_run_options_init(&options, sizeof options);
    options.leases_max = 0, options.spend_micros = 1000000;
    options.grants = "{\"providers\": [\"local\"], \"process\": true}";
    rille_run* run = NULL;
    ok(rille_run_from_file(rt, path, &options, &run));
    ok(rille_run_start(run));
    if (cases[i].words) {
      const rille_error* error = fails(rt, run, cases[i].kind);
      if (!strstr(rille_error_message(error), cases[i].words)) fprintf(stderr, "%s\n", rille_error_to_json(error));
      CHECK(strstr(rille_error_message(error), cases[i].words));
    } else {
      ok(rille_run_wait(run, -1));
      CHECK(rille_run_state(run) == RILLE_RUN_DONE && strcmp(rille_run_result(run, NULL), "7") == 0);
    }
    rille_run_free(run);
  }
  /* An id does not lead to a child run of another run, whose results and limits are its own. */
  for (int second = 0; second < 2; ++second) {
    char path[600];
    snprintf(path, sizeof path, "%s/shares%d.lua", folder, second);
    FILE* file = fopen(path, "w");
    CHECK(file && fputs("return require('rille').run('limited2.lua', {}, { id = 'shared' })", file) >= 0);
    CHECK(fclose(file) == 0);
    rille_run_options options;
    rille_run_options_init(&options, sizeof options);
    rille_run* run = NULL;
    ok(rille_run_from_file(rt, path, &options, &run));
    ok(rille_run_start(run));
    if (second) {
      CHECK(strstr(rille_error_message(fails(rt, run, RILLE_STATE)), "this run has not started it"));
    } else {
      ok(rille_run_wait(run, -1));
      CHECK(rille_run_state(run) == RILLE_RUN_DONE);
    }
    rille_run_free(run);
  }
}

static void finishes(rille_run* run, const char* result) {
  ok(rille_run_start(run));
  ok(rille_run_wait(run, -1));
  if (rille_run_error(run)) fprintf(stderr, "%s\n", rille_error_to_json(rille_run_error(run)));
  CHECK(rille_run_state(run) == RILLE_RUN_DONE && strcmp(rille_run_result(run, NULL), result) == 0);
  rille_run_free(run);
}

static const rille_error* denied(rille_runtime* rt, rille_run_options* options, const char* source) {
  rille_run* run = prepare(rt, source, options);
  ok(rille_run_start(run));
  const rille_error* error = fails(rt, run, RILLE_DENIED);
  CHECK(strcmp(rille_error_kind_name(error), "denied") == 0);
  return error; /* of a run whose handle is kept until the runtime ends */
}

/* Nothing is granted unless the host says so; a host that knows no grants has what it had. */
static void test_grants(rille_runtime* rt) {
  static const char source[] =
      "return require('rille').step('read', { retry = 1 }, function() "
      "return io.open('/dev/null') ~= nil end)";
  rille_run_options options;
  rille_run* run = NULL;
  rille_run_options_init(&options, sizeof options);
  const rille_error* error = denied(rt, &options, source);
  CHECK(strstr(rille_error_message(error), "reading /dev/null needs the grant read = \"/dev\""));
  CHECK(strcmp(rille_error_code(error), "read") == 0);
  denied(rt, NULL, source);
  options.rules = RILLE_RULES_OPEN;
  denied(rt, &options, "return io.open('/dev/null')");
  denied(rt, &options, "return require('string.buffer')");
  options.grants = "{\"read\": [\"/dev\"], \"kernels\": true}";
  finishes(prepare(rt, "return io.open('/dev/null') ~= nil", &options), "true");
  rille_run_options_init(&options, sizeof options);
  options.grants = "{\"read\": [\"/dev\"]}";
  finishes(prepare(rt, source, &options), "true");
  options.grants = "{\"raed\": [\"/dev\"]}";
  refused(rille_run_from_source(rt, "x.lua", "", 0, &options, &run), RILLE_INVALID, "there is no grant 'raed'");
  options.grants = "{";
  refused(rille_run_from_source(rt, "x.lua", "", 0, &options, &run), RILLE_INVALID, "");
  rille_run_options_init(&options, offsetof(rille_run_options, grants));
  finishes(prepare(rt, source, &options), "true");
  /* native code under limits is not in this process: its signal would end it */
  rille_run_options_init(&options, sizeof options);
  options.grants = "{\"kernels\": true}", options.memory_bytes = 64 << 20;
  finishes(
      prepare(
          rt,
          "local cpu = require('rille').device('cpu') local x = cpu:tensor({1, 2}) "
          "local k = cpu:kernel('__global__ void k(float* x) { x[threadIdx.x] *= 2; if (x[0] > 3) asm(\"hlt\"); }') "
          "k:launch({ grid = 1, block = 2 }, x) local sum = x:sum():item() "
          "local ok, e = pcall(function() k:launch({ grid = 1, block = 2 }, x) return x:sum():item() end) "
          "return { sum, ok, e.kind }",
          &options),
      "[6,false,\"device\"]");
  options.wall_ms = 1000;
  rille_run* endless = prepare(rt,
                               "local cpu = require('rille').device('cpu') local x = cpu:zeros(1) "
                               "local k = cpu:kernel('__global__ void k(volatile float* x) { while (x[0] == 0) {} }') "
                               "k:launch({ grid = 1, block = 1 }, x) return x:item()",
                               &options);
  ok(rille_run_start(endless));
  fails(rt, endless, RILLE_TIMEOUT);
  rille_run_free(endless);
  options.wall_ms = 0;
  /* the compiler's processor time and the compiled kernel count as the run's */
  options.cpu_ms = 500;
  rille_run* compiling = prepare(
      rt,
      "require('rille').device('cpu'):kernel([["
      "constexpr unsigned long f(unsigned long n) { unsigned long s = 0; for (; n; --n) s = s * 31 + n; return s; }"
      "template <int N> struct S { static constexpr unsigned long v = f(200000 + N) + S<N - 1>::v; };"
      "template <> struct S<0> { static constexpr unsigned long v = 0; };"
      "__global__ void k(unsigned long long* x) { x[0] = S<800>::v; }]])",
      &options);
  ok(rille_run_start(compiling));
  fails(rt, compiling, RILLE_TIMEOUT);
  CHECK(strcmp(rille_error_code(rille_run_error(compiling)), "cpu_ms") == 0);
  rille_run_free(compiling);
  options.cpu_ms = 0, options.disk_bytes = 2000;
  rille_run* kept = prepare(rt, "require('rille').device('cpu'):kernel('__global__ void kept(float* x) {}')", &options);
  ok(rille_run_start(kept));
  fails(rt, kept, RILLE_QUOTA);
  CHECK(strcmp(rille_error_code(rille_run_error(kept)), "disk_bytes") == 0);
  rille_run_free(kept);
  options.disk_bytes = 0;
  denied(rt, &options,
         "require('rille').device('cpu'):kernel('__global__ void k(float* x) {}', { options = { '-wrapper' } })");
}

static void* interrupt_soon(void* rt) {
  struct timespec wait = {0, 50 * 1000 * 1000};
  nanosleep(&wait, NULL); /* whichever comes first, the interrupt or the script, the run ends */
  rille_interrupt(rt);
  return NULL;
}

static void test_interrupts(rille_runtime* rt) {
  const char* sources[] = {"while true do end", "require('rille').sleep('1h')"};
  for (int i = 0; i < 2; ++i) {
    rille_run* run = start(rt, sources[i]);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, interrupt_soon, rt) == 0);
    fails(rt, run, RILLE_CANCELLED);
    CHECK(rille_run_state(run) == RILLE_RUN_CANCELLED);
    pthread_join(thread, NULL);
    rille_run_free(run);
  }
  rille_run* run = start(rt, "require('app').forever()");
  while (!kept) ok(rille_turn(rt, 1, NULL));
  ok(rille_run_cancel(run, "changed my mind"));
  CHECK(strcmp(rille_error_message(fails(rt, run, RILLE_CANCELLED)), "changed my mind") == 0);
  CHECK(rille_completion_abandoned(kept));
  rille_completion_reject(kept, NULL);
  kept = NULL;
  rille_run_free(run);
}

static void note_removed(const rille_error* error, void* removed) {
  CHECK(!error);
  *(int*)removed = 1;
}

/* A script that computes for long: turns return meanwhile, and another thread cancels it. */
static void* cancel_it(void* run) {
  ok(rille_run_cancel(run, "too long"));
  return NULL;
}
static void test_turns(rille_runtime* rt) {
  rille_run* run = start(rt, "local n = 0 for i = 1, 2e8 do n = n + i % 3 end return n");
  int unfinished = 0;
  for (; rille_run_state(run) == RILLE_RUN_RUNNING; ++unfinished) ok(rille_turn(rt, 2, NULL));
  CHECK(unfinished > 5 && strcmp(rille_run_result(run, NULL), "200000001") == 0);
  rille_run_free(run);
  run = start(rt, "while true do end");
  for (int i = 0; i < 5; ++i) ok(rille_turn(rt, 2, NULL));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, cancel_it, run) == 0);
  pthread_join(thread, NULL);
  while (rille_run_state(run) == RILLE_RUN_RUNNING) ok(rille_turn(rt, 2, NULL));
  CHECK(strcmp(rille_error_message(rille_run_error(run)), "too long") == 0);
  rille_run_free(run);
}

/* Suspended by a shutdown without time, continued in a new runtime: the finished step answers from the journal. */
static void test_resume(const char* folder) {
  rille_runtime* rt = create(folder, "resumed");
  fetches = 0;
  rille_run* run = start(rt, "local t = require('app').fetch { page = 7 } require('app').forever() return #t");
  char id[128];
  snprintf(id, sizeof id, "%s", rille_run_id(run));
  while (!kept) ok(rille_turn(rt, 1, NULL));
  pthread_join(fetcher, NULL);
  rille_destroy(rt);
  CHECK(rille_completion_abandoned(kept));
  rille_completion_reject(kept, NULL);
  kept = NULL;
  rt = create(folder, "resumed");
  char* runs = NULL;
  ok(rille_runs(rt, 10, &runs));
  CHECK(strstr(runs, id) && strstr(runs, "suspended"));
  rille_free(runs);
  ok(rille_run_resume(rt, id, NULL, &run));
  ok(rille_run_start(run));
  while (!kept) ok(rille_turn(rt, 1, NULL));
  rille_completion_resolve(kept, NULL, 0);
  kept = NULL;
  ok(rille_run_wait(run, -1));
  CHECK(fetches == 1 && strcmp(rille_run_result(run, NULL), "3") == 0);
  refused(rille_run_resume(rt, id, NULL, &run), RILLE_STATE, "has ended: done");
  char* leases = NULL;
  ok(rille_leases(rt, 1, &leases));
  CHECK(strcmp(leases, "[]") == 0);
  rille_free(leases);
  refused(rille_release(rt, "nothing", NULL, NULL), RILLE_INVALID, "nothing");
  int removed = 0;
  ok(rille_run_remove(rt, id, note_removed, &removed));
  while (!removed) ok(rille_turn(rt, 1, NULL));
  ok(rille_runs(rt, 10, &runs));
  CHECK(!strstr(runs, id));
  rille_free(runs);
  ok(rille_shutdown(rt, 1000));
  rille_destroy(rt);
}

/* Starts a run that stops in app.forever, resumes it in a new runtime, and gives the run, which then goes on. */
static rille_run* interrupted(rille_runtime** rt, const char* folder, const char* source,
                              const rille_run_options* began, const rille_run_options* resumed) {
  *rt = create(folder, "granted");
  rille_run* run = prepare(*rt, source, began);
  char id[128];
  snprintf(id, sizeof id, "%s", rille_run_id(run));
  ok(rille_run_start(run));
  while (!kept) ok(rille_turn(*rt, 1, NULL));
  rille_destroy(*rt);
  rille_completion_reject(kept, NULL);
  kept = NULL;
  *rt = create(folder, "granted");
  ok(rille_run_resume(*rt, id, resumed, &run));
  ok(rille_run_start(run));
  while (!kept) ok(rille_turn(*rt, 1, NULL));
  rille_completion_resolve(kept, NULL, 0);
  kept = NULL;
  ok(rille_run_wait(run, -1));
  return run;
}

static void test_grants_resumed(const char* folder) {
  static const char source[] =
      "require('app').forever() return require('rille').step('read', { retry = 1 }, function() "
      "return io.open('/dev/null') ~= nil end)";
  static const struct {
    const char *began, *resumed;
    int reads;
  } cases[] = {{"{\"read\": [\"/dev\"]}", NULL, 1},
               {NULL, NULL, 0},
               {NULL, "{\"read\": [\"/dev\"]}", 1},
               {"{\"read\": [\"/dev\"]}", "{}", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rille_run_options began, resumed;
    rille_run_options_init(&began, sizeof began);
    rille_run_options_init(&resumed, sizeof resumed);
    began.grants = cases[i].began, resumed.grants = cases[i].resumed;
    rille_runtime* rt = NULL;
    rille_run* run = interrupted(&rt, folder, source, &began, &resumed);
    if (cases[i].reads) CHECK(rille_run_state(run) == RILLE_RUN_DONE && !strcmp(rille_run_result(run, NULL), "true"));
    else CHECK(rille_run_error(run) && rille_error_kind(rille_run_error(run)) == RILLE_DENIED);
    ok(rille_shutdown(rt, 1000));
    rille_destroy(rt);
  }
}

/* A resumed run may spend what the host says, else what it began with, else what a new run may. */
static void test_spend_resumed(const char* folder) {
  static const char rents[] = "{\"providers\": [\"local\"], \"process\": true}", all[] = "{\"all\": true}";
  static const int64_t unset = RILLE_AS_GRANTED, unlimited = -1;
  static const struct {
    const char *began, *resumed; /* grants */
    int64_t first, then;         /* spend_micros */
    int budget;                  /* that the script has set by then */
    const char* limit;           /* below the two dollars of the script; NULL: none */
  } cases[] = {{rents, NULL, unlimited, unset, 0, "$0.00"}, {rents, rents, unlimited, unset, 0, "$0.00"},
               {all, rents, unset, unset, 0, "$0.00"},      {NULL, rents, unset, unset, 0, "$0.00"},
               {rents, NULL, unlimited, unset, 1, "$1.00"}, {rents, NULL, 1000000, unset, 1, "$1.00"},
               {rents, all, 1000000, unset, 0, "$1.00"},    {rents, NULL, 3000000, unset, 1, NULL},
               {rents, NULL, unlimited, unset, 3, NULL},    {rents, NULL, unlimited, unlimited, 0, NULL},
               {rents, NULL, unset, 3000000, 0, NULL},      {all, all, unset, unset, 1, NULL},
               {NULL, NULL, unset, unset, 0, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char source[400], words[100];
    const char* higher =
        "rille.budget { limit = 9 } rille.step('s', function() end)"; /* no reason to fail the replay */
    snprintf(source, sizeof source,
             "local rille, budget = require('rille'), %d if budget > 0 then %s rille.budget { limit = budget } end "
             "require('app').forever() rille.budget { limit = 2 }",
             cases[i].budget, cases[i].first == unlimited ? higher : "");
    rille_run_options began, resumed;
    rille_run_options_init(&began, sizeof began);
    rille_run_options_init(&resumed, sizeof resumed);
    began.grants = cases[i].began, resumed.grants = cases[i].resumed;
    began.spend_micros = cases[i].first, resumed.spend_micros = cases[i].then;
    rille_runtime* rt = NULL;
    rille_run* run = interrupted(&rt, folder, source, &began, &resumed);
    if (cases[i].limit) {
      snprintf(words, sizeof words, "more than the %s that the host program allows", cases[i].limit);
      CHECK(strstr(rille_error_message(fails(rt, run, RILLE_BUDGET)), words));
    } else {
      CHECK(rille_run_state(run) == RILLE_RUN_DONE);
    }
    ok(rille_shutdown(rt, 1000));
    rille_destroy(rt);
  }
}

static void* on_wrong_thread(void* rt) {
  refused(rille_turn(rt, 0, NULL), RILLE_STATE, "another thread");
  refused(rille_destroy(rt), RILLE_STATE, "another thread");
  return NULL;
}
static void turns_inside(void* rt) {
  refused(rille_turn(rt, 0, NULL), RILLE_STATE, "callback");
  refused(rille_destroy(rt), RILLE_STATE, "callback");
}

static void test_misuse(rille_runtime* rt) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, on_wrong_thread, rt) == 0);
  pthread_join(thread, NULL);
  ok(rille_post(rt, turns_inside, rt));
  ok(rille_turn(rt, 5, NULL));
  pid_t child = fork();
  if (child == 0) {
    refused(rille_turn(rt, 0, NULL), RILLE_STATE, "fork");
    refused(rille_destroy(rt), RILLE_STATE, "fork");
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  refused(rille_register_module(rt, "app", functions, 1), RILLE_STATE, "registered already");
  refused(rille_register_module(rt, "math", functions, 1), RILLE_INVALID, "Lua's");
  refused(rille_create(NULL, NULL), RILLE_INVALID, "NULL");
}

int main(void) {
  const char* folder = getenv("RILLE_HOME"); /* of the homes */
  CHECK(folder && rille_abi_check(RILLE_ABI_VERSION) && !rille_abi_check(RILLE_ABI_VERSION + 1));
  struct sigaction before[32], after;
  for (int s = 1; s < 32; ++s) sigaction(s, NULL, &before[s]);
  rille_runtime *a = create(folder, "a"), *b = create(folder, "b");
  test_two_runtimes(a, b);
  test_errors(a);
  test_limits(a);
  test_child_limits(a, folder);
  test_grants(a);
  test_interrupts(b);
  test_turns(b);
  test_misuse(a);
  test_resume(folder);
  test_grants_resumed(folder);
  test_spend_resumed(folder);
  ok(rille_shutdown(a, 5000));
  rille_run* late = NULL;
  refused(rille_run_from_source(a, "x.lua", "", 0, NULL, &late), RILLE_STATE, "shut down");
  rille_destroy(a);
  rille_destroy(b);
  for (int s = 1; s < 32; ++s) {
    sigaction(s, NULL, &after);
    CHECK(after.sa_handler == before[s].sa_handler);
  }
  printf("librille %s keeps its contract\n", rille_version());
  return 0;
}
