/* Machine code, which nothing can stop: a script's comment asks for it, and only the host program allows it. */
#define _GNU_SOURCE /* nanosleep */
#include <pthread.h>
#include <rille.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

enum { stuck_s = 60 /* then SIGALRM ends the program */, compiled_ms = 100 /* until a loop is machine code */ };

static void ok(rille_error* error) {
  if (error) fprintf(stderr, "%s\n", rille_error_to_json(error));
  CHECK(!error);
}

static rille_runtime* create(const char* name) {
  char home[600];
  snprintf(home, sizeof home, "%s/%s", getenv("RILLE_HOME"), name);
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = home;
  rille_runtime* rt = NULL;
  ok(rille_create(&options, &rt));
  return rt;
}

static atomic_int began;
static void note(const char* text, size_t length, void* payload) {
  (void)text, (void)length, (void)payload;
  began = 1;
}

/* What ends a script that never waits. */
enum { BY_INTERRUPT, BY_CANCEL, BY_SHUTDOWN, WAYS };

struct End {
  rille_runtime* rt;
  rille_run* run;
  int way;
};

static void* end_it(void* payload) {
  const struct End* end = payload;
  const struct timespec wait = {0, compiled_ms * 1000000L};
  while (!began) nanosleep(&wait, NULL);
  nanosleep(&wait, NULL);
  if (end->way == BY_INTERRUPT) rille_interrupt(end->rt);
  else ok(rille_run_cancel(end->run, "enough"));
  return NULL;
}

static void ends(const char* source, const rille_run_options* options, int way) {
  rille_runtime* rt = create("ends");
  rille_run_options o = *options;
  o.print = note;
  began = 0;
  rille_run* run = NULL;
  ok(rille_run_from_source(rt, "endless.lua", source, strlen(source), &o, &run));
  ok(rille_run_start(run));
  alarm(stuck_s);
  if (way == BY_SHUTDOWN) {
    const struct timespec wait = {0, compiled_ms * 1000000L};
    while (!began) ok(rille_turn(rt, 10, NULL));
    nanosleep(&wait, NULL);
    ok(rille_turn(rt, 10, NULL));
    ok(rille_shutdown(rt, 5000));
  } else {
    struct End end = {rt, run, way};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, end_it, &end) == 0);
    ok(rille_run_wait(run, -1));
    pthread_join(thread, NULL);
  }
  alarm(0);
  CHECK(rille_run_state(run) == RILLE_RUN_CANCELLED);
  rille_run_free(run);
  ok(rille_destroy(rt));
}

static void test_ends(void) {
  static const char* const sources[] = {
      "-- rille: jit\nprint('began') while true do end",
      "print('began') load('-- rille: jit\\nlocal n = 0 while true do n = n + 1 end')()",
      "print('began') table.move({}, 1, 2^53, 2)", /* a loop of LuaJIT's own Lua code */
  };
  rille_run_options cases[5];
  for (int i = 0; i < 5; ++i) rille_run_options_init(&cases[i], sizeof cases[i]);
  cases[1].memory_bytes = 64 << 20;
  cases[2].output_bytes = 1 << 20;
  cases[3].grants = "{\"all\": true}";
  cases[4].jit = 1, cases[4].memory_bytes = 64 << 20; /* off under any limit */
  for (int way = 0; way < WAYS; ++way)
    for (size_t s = 0; s < sizeof sources / sizeof *sources; ++s)
      for (int i = 0; i < 5; ++i)
        if (s == 0 || i == 0) ends(sources[s], &cases[i], way);
}

/* Whether LuaJIT has compiled the loop. */
static int compiled(rille_runtime* rt, const rille_run_options* options) {
  static const char source[] =
      "-- rille: jit\n"
      "local traces = 0\n"
      "require('jit').attach(function(what) if what == 'stop' then traces = traces + 1 end end, 'trace')\n"
      "local x = 0 for i = 1, 1e5 do x = x + i end\n"
      "return traces > 0";
  rille_run_options o = *options;
  o.rules = RILLE_RULES_OPEN, o.grants = "{\"all\": true}";
  rille_run* run = NULL;
  ok(rille_run_from_source(rt, "loop.lua", source, strlen(source), &o, &run));
  ok(rille_run_start(run));
  ok(rille_run_wait(run, -1));
  if (rille_run_error(run)) fprintf(stderr, "%s\n", rille_error_to_json(rille_run_error(run)));
  CHECK(rille_run_state(run) == RILLE_RUN_DONE);
  const int yes = strcmp(rille_run_result(run, NULL), "true") == 0;
  rille_run_free(run);
  return yes;
}

static void test_allowed(void) {
  rille_runtime* rt = create("allowed");
  rille_run_options o;
  rille_run_options_init(&o, sizeof o);
  CHECK(o.jit == 0 && !compiled(rt, &o));
  o.jit = 1;
  CHECK(compiled(rt, &o));
  o.struct_size = offsetof(rille_run_options, jit); /* a program that was built before */
  CHECK(!compiled(rt, &o));
  rille_run_options_init(&o, sizeof o);
  o.jit = 1, o.fibers_max = 10;
  CHECK(!compiled(rt, &o));
  o.fibers_max = 0, o.jit = 2;
  rille_run* run = NULL;
  rille_error* error = rille_run_from_source(rt, "x.lua", "", 0, &o, &run);
  CHECK(error && rille_error_kind(error) == RILLE_INVALID && strstr(rille_error_message(error), "jit = 2"));
  rille_error_free(error);
  ok(rille_destroy(rt));
}

int main(void) {
  test_ends();
  test_allowed();
  printf("machine code where the host allows it\n");
  return 0;
}
