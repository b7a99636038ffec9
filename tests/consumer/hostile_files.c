/* The scripts of the folder hostile/, written from the manual without the code: each tries to exceed a limit or
   to reach something. Usage: hostile_files FOLDER [every N | NAME..]. Each runs in a process of its own under 64 MB, a
   slice of 200 ms and a wall of 2 s, without a grant but those of its third line ("-- grants: {..}"). Checked for each:
   - it ends as its second line says ("-- expect: memory or timeout", the kinds of error that may come first; "error":
   of any kind; "any": or none), within the wall and a grace, and says nowhere "ESCAPED";
   - the process makes no process, no connection, and neither reads nor writes outside of its home (watch.h);
   - memory stays below the limit and 32 MB;
   - with RILLE_TEST_TURN_MS: no rille_turn(10) computes for longer, or takes three times as long, but for the scripts
   of `long_turns`. What it computes is the same on a machine that other work keeps busy; it may also wait. Printed: the
   longest turns, and the longest gap of a 1 ms timer that another runtime keeps meanwhile. */
#define _GNU_SOURCE
#include <dirent.h>
#include <execinfo.h>
#include <pthread.h>
#include <rille.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "watch.h"

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { wall_ms = 2000 };
static int memory_mb = 64; /* RILLE_TEST_MEMORY_MB */
static int spare_mb = 32;  /* RILLE_TEST_SPARE_MB: what the process may have above the limit; sanitizers take more */
static int grace_ms = 250; /* RILLE_TEST_GRACE_MS: on a machine that is busy, and under sanitizers */
static int turn_ms = 0;    /* RILLE_TEST_TURN_MS: on a machine that is quiet */
static char home[400], scripts[400];

static double clock_ms(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double now_ms(void) { return clock_ms(CLOCK_MONOTONIC); }

/* Where the host itself fails, a trace says more than the signal. */
static void crashed(int signal) {
  void* frames[60];
  backtrace_symbols_fd(frames, backtrace(frames, 60), 2);
  raise(signal); /* the handler is reset */
}

__attribute__((unused)) static void trace_crashes(void) {
  static char stack[64 << 10];
  stack_t where = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = crashed;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
  CHECK(sigaltstack(&where, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
  CHECK(sigaction(SIGBUS, &action, NULL) == 0 && sigaction(SIGABRT, &action, NULL) == 0);
}

/* ---- another runtime of the process, which keeps a timer of 1 ms */

static atomic_int timer_over;
static double gap_ms; /* the longest time between two ticks */
static double last_tick;

static void tick(rille_call* call, void* payload) {
  (void)call, (void)payload;
  double now = now_ms();
  if (last_tick > 0 && now - last_tick > gap_ms) gap_ms = now - last_tick;
  last_tick = now;
}

static void* keep_timer(void* ready) {
  static const char source[] =
      "local tick = require('clock').tick while true do tick() require('rille').sleep(0.001) end";
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = ":memory:";
  rille_runtime* rt = NULL;
  CHECK(!rille_create(&options, &rt));
  rille_function_spec spec = {sizeof spec, "tick", RILLE_PURE, tick, NULL};
  CHECK(!rille_register_module(rt, "clock", &spec, 1));
  rille_run_options o;
  rille_run_options_init(&o, sizeof o);
  o.rules = RILLE_RULES_OPEN;
  rille_run* run = NULL;
  CHECK(!rille_run_from_source(rt, "timer.lua", source, strlen(source), &o, &run) && !rille_run_start(run));
  CHECK(!rille_turn(rt, 10, NULL));
  atomic_store((atomic_int*)ready, 1);
  while (!atomic_load(&timer_over)) {
    struct timespec wait = {0, 200 * 1000};
    nanosleep(&wait, NULL);
    CHECK(!rille_turn(rt, 10, NULL));
  }
  CHECK(rille_run_state(run) == RILLE_RUN_RUNNING && last_tick > 0);
  CHECK(!rille_run_cancel(run, NULL));
  rille_run_free(run);
  CHECK(!rille_shutdown(rt, 2000 + grace_ms) && !rille_destroy(rt));
  return NULL;
}

/* ---- one script */

typedef struct outcome {
  int done;    /* the process came to its end */
  int kind;    /* -1: ended well; -2: never ended */
  int escaped; /* the result or the output says so */
  double end_ms, turn_ms, turn_cpu_ms /* the most that this thread computed in a turn */, gap_ms;
  long before_kb, most_kb;
  char text[200], forbidden[watch_text_max];
} outcome;

static long status_kb(const char* field) {
  char line[200];
  long kb = 0;
  FILE* status = fopen("/proc/self/status", "r");
  CHECK(status);
  while (fgets(line, sizeof line, status))
    if (strncmp(line, field, strlen(field)) == 0) sscanf(line + strlen(field), ": %ld", &kb);
  fclose(status);
  return kb;
}

static void look(const char* text, size_t length, void* out) {
  if (memmem(text, length, "ESCAPED", 7)) ((outcome*)out)->escaped = 1;
}

static void run_one(const char* path, const char* grants, outcome* out) {
  pthread_t thread;
  atomic_int ready = 0;
  CHECK(pthread_create(&thread, NULL, keep_timer, &ready) == 0);
#if !SANITIZED /* a sanitizer has its own trace */
  trace_crashes();
#endif
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = home;
  rille_runtime* rt = NULL;
  CHECK(!rille_create(&options, &rt));
  rille_run_options o;
  rille_run_options_init(&o, sizeof o);
  o.memory_bytes = (int64_t)memory_mb << 20, o.slice_ms = 200, o.wall_ms = wall_ms, o.print = look, o.payload = out;
  if (*grants) o.grants = grants;
  while (!atomic_load(&ready)) sched_yield();
  watch_begin(home, scripts);
  out->before_kb = status_kb("VmRSS");
  rille_run* run = NULL;
  double began = now_ms();
  rille_error* error = rille_run_from_file(rt, path, &o, &run);
  if (!error) error = rille_run_start(run);
  int busy = !error;
  while (busy && now_ms() - began < wall_ms + grace_ms + 10000) {
    double turn = now_ms(), cpu = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    CHECK(!rille_turn(rt, 10, NULL));
    turn = now_ms() - turn, cpu = clock_ms(CLOCK_THREAD_CPUTIME_ID) - cpu;
    if (turn > out->turn_ms) out->turn_ms = turn;
    if (cpu > out->turn_cpu_ms) out->turn_cpu_ms = cpu;
    rille_state state = rille_run_state(run);
    busy = state == RILLE_RUN_NEW || state == RILLE_RUN_RUNNING;
    struct timespec wait = {0, 200 * 1000};
    if (busy && rille_poll_timeout_ms(rt) != 0) nanosleep(&wait, NULL);
  }
  out->end_ms = now_ms() - began;
  out->most_kb = status_kb("VmHWM");
  const rille_error* failed = error ? error : rille_run_error(run);
  out->kind = busy ? -2 : failed ? (int)rille_error_kind(failed) : -1;
  size_t length = 0;
  const char* result = failed ? rille_error_message(failed) : rille_run_result(run, &length);
  if (failed) length = strlen(result);
  if (result) look(result, length, out), snprintf(out->text, sizeof out->text, "%.*s", (int)length, result);
  watch_end(out->forbidden);
  atomic_store(&timer_over, 1);
  pthread_join(thread, NULL);
  out->gap_ms = gap_ms;
  out->done = 1;
}

/* ---- what all of them needed */

/* Turns that may be longer than RILLE_TEST_TURN_MS: what docs/manual/embedding.md ("Whose loop") says finishes first. A
   script is known by the number that it begins with. */
static const struct {
  const char *reason, *scripts;
} long_turns[] = {
    {"a C function makes or reads a text of megabytes (gsub, format, print, a plain find)",
     "003 005 011 017 018 021 038 057 088 117 125 143"},
    {"a large table or text becomes data (results, arguments, log, errors)", "096 102 104 106 118 123 154"},
    {"Lua's own work on a large table, or a collection", "013 014 037 042 045 053 056 065 084 085 086 157 180 181 190"},
    {"a C function of Rille's: a statement of SQL, a tokenizer, a batch, tensors",
     "152 159 162 186 219 221 222 223 225 226"},
    {"the tensor operation that is being computed when the run fails", "171"},
    {"the function of a custom_grad", "187"},
    {"sorting texts with long common beginnings", "046 054"},
};

static int may_be_long(const char* name) {
  char number[4];
  snprintf(number, sizeof number, "%s", name);
  for (size_t i = 0; i < sizeof long_turns / sizeof *long_turns; ++i)
    if (strstr(long_turns[i].scripts, number)) return 1;
  return 0;
}

enum { shown_max = 20 };
typedef struct turn {
  char name[100];
  double ms, cpu_ms;
} turn;
static turn turns[shown_max]; /* the longest, the longest first */
static int above_20, tried;
static double worst_end, worst_gap;
static long worst_kb;

static void count(const char* name, const outcome* o) {
  ++tried;
  if (o->turn_cpu_ms > 20) ++above_20;
  if (o->end_ms > worst_end) worst_end = o->end_ms;
  if (o->gap_ms > worst_gap) worst_gap = o->gap_ms;
  if (o->most_kb > worst_kb) worst_kb = o->most_kb;
  int place = shown_max;
  while (place > 0 && o->turn_cpu_ms > turns[place - 1].cpu_ms) --place;
  if (place == shown_max) return;
  memmove(&turns[place + 1], &turns[place], sizeof *turns * (size_t)(shown_max - 1 - place));
  turns[place].ms = o->turn_ms, turns[place].cpu_ms = o->turn_cpu_ms;
  snprintf(turns[place].name, sizeof turns[place].name, "%s", name);
}

static void summary(int bad) {
  printf(
      "%d scripts, %d broken promises; the last ended after %.0f ms; most memory %ld MB; %d had a turn that computed "
      "for more than 20 ms; longest gap of a 1 ms timer beside %.1f ms\n"
      "the longest turns of those that computed longest, and how long a turn of theirs computed:\n",
      tried, bad, worst_end, worst_kb >> 10, above_20, worst_gap);
  for (int i = 0; i < shown_max && turns[i].ms > 0; ++i)
    printf("  %6.1f ms %6.1f ms  %s%s\n", turns[i].ms, turns[i].cpu_ms, turns[i].name,
           may_be_long(turns[i].name) ? " (may be long)" : "");
}

/* ---- all of them */

static const char* kind_name(int kind) {
  if (kind < 0) return kind == -1 ? "no error" : "never ended";
  rille_error* error = rille_error_create((rille_kind)kind, "", "");
  const char* name = rille_error_kind_name(error); /* outlives it */
  rille_error_free(error);
  return name;
}

/* Is the kind one of the words of "memory or timeout"? */
static int fits(const char* expected, int kind) {
  if (kind == -2) return 0;
  if (strcmp(expected, "any") == 0) return 1;
  if (kind == -1) return 0;
  if (strcmp(expected, "error") == 0) return 1;
  if (SANITIZED && kind == RILLE_TIMEOUT && strstr(expected, "memory")) return 1; /* everything is slow */
  const char *name = kind_name(kind), *at = strstr(expected, name);
  return at && (at == expected || at[-1] == ' ') && (at[strlen(name)] == 0 || at[strlen(name)] == ' ');
}

static void tell(const char* name, const char* why, const outcome* o) {
  printf("NOT OK: %s: %s\n    ended with %s after %.0f ms, turn %.1f ms, memory %ld MB (%ld before): %s\n", name, why,
         kind_name(o->kind), o->end_ms, o->turn_ms, o->most_kb >> 10, o->before_kb >> 10, o->text);
}

/* Returns how many promises were broken. */
static int judge(const char* name, const char* expected, int status, const outcome* o) {
  char why[300];
  int bad = 0;
  if (!o->done || status != 0) {
    if (WIFSIGNALED(status)) snprintf(why, sizeof why, "the host ended by signal %d", WTERMSIG(status));
    else snprintf(why, sizeof why, "the host ended with status %d", WEXITSTATUS(status));
    tell(name, why, o);
    return 1;
  }
  if (o->escaped) tell(name, "it escaped", o), ++bad;
  if (*o->forbidden) tell(name, o->forbidden, o), ++bad;
  if (!fits(expected, o->kind)) {
    snprintf(why, sizeof why, "expected %s", expected);
    tell(name, why, o), ++bad;
  }
  if (o->end_ms > wall_ms + grace_ms) tell(name, "too late", o), ++bad;
  if (o->most_kb > (long)(memory_mb + spare_mb) << 10) tell(name, "too much memory", o), ++bad;
  if (turn_ms && (o->turn_cpu_ms > turn_ms || o->turn_ms > 3 * turn_ms) && !may_be_long(name)) {
    snprintf(why, sizeof why, "a turn above %d ms", turn_ms);
    tell(name, why, o), ++bad;
  }
  return bad;
}

static int chosen(const char* name, int index, int argc, char** argv) {
  if (argc < 3) return 1;
  if (strcmp(argv[2], "every") == 0) return index % atoi(argv[3]) == 0;
  for (int i = 2; i < argc; ++i)
    if (strncmp(name, argv[i], strlen(argv[i])) == 0) return 1;
  return 0;
}

static void header_of(const char* path, char* expected, char* grants) {
  char line[300];
  FILE* file = fopen(path, "r");
  CHECK(file && fgets(line, sizeof line, file) && fgets(line, sizeof line, file));
  CHECK(sscanf(line, "-- expect: %39[^\n]", expected) == 1);
  *grants = 0;
  if (fgets(line, sizeof line, file)) (void)sscanf(line, "-- grants: %299[^\n]", grants);
  fclose(file);
}

static void set_from(const char* variable, int* value) {
  if (getenv(variable)) *value = atoi(getenv(variable));
}

static void in_child(const char* path, const char* grants, int out) {
#if !SANITIZED /* a sanitizer reserves terabytes */
  struct rlimit memory = {(rlim_t)8 << 30, (rlim_t)8 << 30};
  setrlimit(RLIMIT_AS, &memory);
#endif
  alarm((unsigned)(60 + grace_ms / 1000));
  outcome mine;
  memset(&mine, 0, sizeof mine);
  run_one(path, grants, &mine);
  CHECK(write(out, &mine, sizeof mine) == sizeof mine);
  _exit(0);
}

/* Runs a script of the folder `scripts` in a process of its own, with an empty home. Returns its status. */
static int in_process(const char* path, const char* grants, outcome* told) {
  int ends[2], status = 0;
  CHECK(pipe(ends) == 0);
  fflush(stdout);
  pid_t child = getenv("RILLE_TEST_HERE") ? 0 : fork(); /* for a debugger */
  if (child == 0) in_child(path, grants, ends[1]);
  close(ends[1]);
  memset(told, 0, sizeof *told);
  if (read(ends[0], told, sizeof *told) != (ssize_t)sizeof *told) told->done = 0;
  close(ends[0]);
  CHECK(waitpid(child, &status, 0) == child);
  return status;
}

/* A script that is granted what the watch forbids is caught. */
static int watches(const char* work) {
  char path[600];
  outcome told;
  snprintf(path, sizeof path, "%s/planted.lua", work);
  FILE* file = fopen(path, "w");
  CHECK(file && fputs("require('rille').step('x', function() io.open('/etc/passwd') end)", file) >= 0);
  CHECK(fclose(file) == 0);
  snprintf(home, sizeof home, "%s/home", work), snprintf(scripts, sizeof scripts, "%s", work);
  in_process(path, "{\"read\": [\"/\"]}", &told);
  if (told.done && strstr(told.forbidden, "/etc/passwd")) return 0;
  printf("NOT OK: a file that a script reads outside of its home was not caught\n");
  return 1;
}

/* Runs the script `folder`/`name` below `work`. Returns how many promises were broken. */
static int try_file(const char* folder, const char* name, const char* work) {
  char path[1000], command[2500], expected[40], grants[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  header_of(path, expected, grants);
  snprintf(home, sizeof home, "%s/home", work), snprintf(scripts, sizeof scripts, "%s/scripts", work);
  snprintf(command, sizeof command, "rm -rf %s/* && mkdir %s && cp %s %s/", work, scripts, path, scripts);
  CHECK(system(command) == 0);
  snprintf(path, sizeof path, "%s/%s", scripts, name);
  outcome told;
  const int status = in_process(path, grants, &told);
  count(name, &told);
  if (getenv("RILLE_TEST_ALL"))
    printf("%-44s %-11s %6.0f ms, turn %5.1f ms (%5.1f ms), gap %5.1f ms, %3ld MB\n", name, kind_name(told.kind),
           told.end_ms, told.turn_ms, told.turn_cpu_ms, told.gap_ms, told.most_kb >> 10);
  return judge(name, expected, status, &told);
}

/* Besides what was caught: nothing is left of what the scripts want to write. */
static int left_outside(const char* work) {
  char command[300];
  snprintf(command, sizeof command,
           "ls -d %s/* 2>/dev/null | grep -v '/home$' | grep -v '/scripts$'; "
           "ls -d /tmp/rille-hostile* /dev/shm/rille-hostile* 2>/dev/null",
           work);
  if (system(command) != 0) return 0;
  printf("NOT OK: files outside of the home, above\n");
  return 1;
}

int main(int argc, char** argv) {
  CHECK(argc >= 2);
  set_from("RILLE_TEST_GRACE_MS", &grace_ms);
  set_from("RILLE_TEST_MEMORY_MB", &memory_mb);
  set_from("RILLE_TEST_SPARE_MB", &spare_mb);
  set_from("RILLE_TEST_TURN_MS", &turn_ms);
  char work[] = "/tmp/rille-files-XXXXXX", command[300];
  CHECK(mkdtemp(work));
  struct dirent** files;
  int found = scandir(argv[1], &files, NULL, alphasort), bad = 0;
  CHECK(found > 2);
  bad += watches(work);
  for (int i = 0; i < found; ++i) {
    const char* name = files[i]->d_name;
    if (strstr(name, ".lua") && chosen(name, i, argc, argv)) bad += try_file(argv[1], name, work);
    free(files[i]);
  }
  free(files);
  bad += left_outside(work);
  summary(bad);
  snprintf(command, sizeof command, "rm -rf %s", work);
  CHECK(system(command) == 0);
  return bad != 0 || tried == 0;
}
