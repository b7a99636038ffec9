/* The scripts of the folder hostile/, written from the manual without the code: each tries to exceed a limit or
   to reach something. Usage: hostile_files FOLDER [every N | NAME..]. Each runs in a process of its own under 64 MB, a
   slice of 200 ms and a wall of 2 s, without a grant but those of its third line ("-- grants: {..}"). Checked for each:
   - it ends as its second line says ("-- expect: error"), within the wall and a grace, and says nowhere "ESCAPED";
   - the process makes no process, no connection and no file outside its home (system calls that would are caught);
   - memory stays below the limit and 32 MB.
   Printed: the longest rille_turn(10), and the longest gap of a 1 ms timer that another runtime keeps meanwhile. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <rille.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

enum { wall_ms = 2000, given_up_ms = 12000 };
static int memory_mb = 64; /* RILLE_TEST_MEMORY_MB */
static int grace_ms = 250; /* RILLE_TEST_GRACE_MS: on a machine that is busy */

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- what the process must not do */

static atomic_int forbidden; /* the number of the system call; 0: none */
static char home[400];       /* files are made and changed below it */
static char opened[200];

static void caught(int signal, siginfo_t* info, void* context) {
  (void)signal;
  ucontext_t* at = context;
  greg_t* r = at->uc_mcontext.gregs;
  int number = info->si_syscall;
  if (number == SYS_openat) { /* to write: only below the home; asked again in a way that is not caught */
    const char* path = (const char*)r[REG_RSI];
    if (strncmp(path, home, strlen(home)) == 0 || strcmp(path, "/dev/null") == 0) {
      struct {
        unsigned long long flags, mode, resolve;
      } how = {(unsigned long long)r[REG_RDX], (r[REG_RDX] & O_CREAT) ? (unsigned long long)r[REG_R10] : 0, 0};
      long fd = syscall(SYS_openat2, (int)r[REG_RDI], path, &how, sizeof how);
      r[REG_RAX] = fd < 0 ? -errno : fd;
      return;
    }
    strncpy(opened, path, sizeof opened - 1);
  }
  atomic_store(&forbidden, number);
  r[REG_RAX] = -EPERM;
}

/* Where the host itself fails, a trace says more than the signal. */
static void crashed(int signal) {
  void* frames[60];
  backtrace_symbols_fd(frames, backtrace(frames, 60), 2);
  raise(signal); /* the handler is reset */
}

static void trace_crashes(void) {
  static char stack[64 << 10];
  stack_t where = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = crashed;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
  CHECK(sigaltstack(&where, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
  CHECK(sigaction(SIGBUS, &action, NULL) == 0 && sigaction(SIGABRT, &action, NULL) == 0);
}

#define WHEN(number, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, skip)
#define ARGUMENT(i) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (i))
#define CATCH BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
#define NOT_THERE /* the C library then uses clone, whose flags can be seen */ \
  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void watch(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = caught;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  CHECK(sigaction(SIGSYS, &action, NULL) == 0);
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      WHEN(SYS_execve, 1),
      CATCH,
      WHEN(SYS_execveat, 1),
      CATCH,
      WHEN(SYS_fork, 1),
      CATCH,
      WHEN(SYS_vfork, 1),
      CATCH,
      WHEN(SYS_clone3, 1),
      NOT_THERE,
      WHEN(SYS_connect, 1),
      CATCH,
      WHEN(SYS_ptrace, 1),
      CATCH,
      WHEN(SYS_kill, 1),
      CATCH,
      WHEN(SYS_clone, 4),
      ARGUMENT(0),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
      ALLOW,
      CATCH,
      WHEN(SYS_socket, 4),
      ARGUMENT(0),
      WHEN(AF_UNIX, 1),
      ALLOW,
      CATCH,
      WHEN(SYS_openat, 4),
      ARGUMENT(2),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT, 0, 1),
      CATCH,
      ALLOW,
      ALLOW,
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
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
  CHECK(!rille_shutdown(rt, 2000) && !rille_destroy(rt));
  return NULL;
}

/* ---- one script */

typedef struct outcome {
  int done;      /* the process came to its end */
  int kind;      /* -1: ended well; -2: never ended */
  int escaped;   /* the result or the output says so */
  int forbidden; /* a system call */
  double end_ms, turn_ms, gap_ms;
  long before_kb, most_kb;
  char text[200], opened[200];
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
  trace_crashes();
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
  watch();
  out->before_kb = status_kb("VmRSS");
  rille_run* run = NULL;
  double began = now_ms();
  rille_error* error = rille_run_from_file(rt, path, &o, &run);
  if (!error) error = rille_run_start(run);
  int busy = !error;
  while (busy && now_ms() - began < given_up_ms) {
    double turn = now_ms();
    CHECK(!rille_turn(rt, 10, NULL));
    turn = now_ms() - turn;
    if (turn > out->turn_ms) out->turn_ms = turn;
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
  out->forbidden = atomic_load(&forbidden);
  memcpy(out->opened, opened, sizeof opened);
  atomic_store(&timer_over, 1);
  pthread_join(thread, NULL);
  out->gap_ms = gap_ms;
  out->done = 1;
}

/* ---- all of them */

static const char* kind_name(int kind) {
  return kind == -1 ? "no error" : kind == -2 ? "never ended" : rille_error_kind_name(rille_error_create(kind, "", ""));
}

static int fits(const char* expected, int kind) {
  if (kind == -2) return 0;
  if (strcmp(expected, "any") == 0) return 1;
  if (kind == -1) return 0;
  return 1; /* which limit comes first depends on the machine; a named kind says what the author thinks */
}

static void tell(const char* name, const char* why, const outcome* o) {
  printf("NOT OK: %s: %s\n    ended with %s after %.0f ms, turn %.1f ms, memory %ld MB (%ld before): %s\n", name, why,
         kind_name(o->kind), o->end_ms, o->turn_ms, o->most_kb >> 10, o->before_kb >> 10, o->text);
}

/* Returns how many promises were broken. */
static int judge(const char* name, const char* expected, int status, const outcome* o) {
  char why[300];
  int bad = 0;
  if (!o->done) {
    if (WIFSIGNALED(status)) snprintf(why, sizeof why, "the host ended by signal %d", WTERMSIG(status));
    else snprintf(why, sizeof why, "the host ended with status %d", WEXITSTATUS(status));
    tell(name, why, o);
    return 1;
  }
  if (o->escaped) tell(name, "it escaped", o), ++bad;
  if (o->forbidden) {
    snprintf(why, sizeof why, "the system call %d %s", o->forbidden, o->opened);
    tell(name, why, o), ++bad;
  }
  if (!fits(expected, o->kind)) {
    snprintf(why, sizeof why, "expected %s", expected);
    tell(name, why, o), ++bad;
  }
  if (o->end_ms > wall_ms + grace_ms) tell(name, "too late", o), ++bad;
  if (o->most_kb > (memory_mb + 32) << 10) tell(name, "too much memory", o), ++bad;
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
  CHECK(sscanf(line, "-- expect: %19s", expected) == 1);
  *grants = 0;
  if (fgets(line, sizeof line, file)) (void)sscanf(line, "-- grants: %299[^\n]", grants);
  fclose(file);
}

int main(int argc, char** argv) {
  CHECK(argc >= 2);
  const char* grace = getenv("RILLE_TEST_GRACE_MS");
  if (grace) grace_ms = atoi(grace);
  if (getenv("RILLE_TEST_MEMORY_MB")) memory_mb = atoi(getenv("RILLE_TEST_MEMORY_MB"));
  char work[] = "/tmp/rille-files-XXXXXX", command[1200];
  CHECK(mkdtemp(work));
  struct dirent** files;
  int count = scandir(argv[1], &files, NULL, alphasort), bad = 0, tried = 0;
  CHECK(count > 2);
  outcome* shared = aligned_alloc(64, sizeof *shared);
  double worst_end = 0, worst_turn = 0, worst_gap = 0;
  long worst_kb = 0;
  int slow_turns = 0;
  char turn_name[300] = "";
  for (int i = 0; i < count; ++i) {
    const char* name = files[i]->d_name;
    if (!strstr(name, ".lua") || !chosen(name, i, argc, argv)) continue;
    char path[1000], expected[20], grants[300];
    snprintf(path, sizeof path, "%s/%s", argv[1], name);
    header_of(path, expected, grants);
    snprintf(command, sizeof command, "rm -rf %s/* && mkdir %s/scripts && cp %s %s/scripts/", work, work, path, work);
    CHECK(system(command) == 0);
    snprintf(path, sizeof path, "%s/scripts/%s", work, name);
    snprintf(home, sizeof home, "%s/home", work);
    int ends[2], status = 0;
    CHECK(pipe(ends) == 0);
    fflush(stdout);
    pid_t child = getenv("RILLE_TEST_HERE") ? 0 : fork(); /* for a debugger */
    if (child == 0) {
      struct rlimit memory = {(rlim_t)8 << 30, (rlim_t)8 << 30};
      setrlimit(RLIMIT_AS, &memory);
      close(ends[0]);
      alarm(60);
      outcome mine;
      memset(&mine, 0, sizeof mine);
      run_one(path, grants, &mine);
      CHECK(write(ends[1], &mine, sizeof mine) == sizeof mine);
      _exit(0);
    }
    close(ends[1]);
    memset(shared, 0, sizeof *shared);
    if (read(ends[0], shared, sizeof *shared) != (ssize_t)sizeof *shared) shared->done = 0;
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    ++tried;
    bad += judge(name, expected, status, shared);
    if (getenv("RILLE_TEST_ALL"))
      printf("%-44s %-11s %6.0f ms, turn %5.1f ms, gap %5.1f ms, %3ld MB\n", name, kind_name(shared->kind),
             shared->end_ms, shared->turn_ms, shared->gap_ms, shared->most_kb >> 10);
    if (shared->turn_ms > 20) ++slow_turns;
    if (shared->end_ms > worst_end) worst_end = shared->end_ms;
    if (shared->turn_ms > worst_turn) worst_turn = shared->turn_ms, snprintf(turn_name, sizeof turn_name, "%s", name);
    if (shared->gap_ms > worst_gap) worst_gap = shared->gap_ms;
    if (shared->most_kb > worst_kb) worst_kb = shared->most_kb;
  }
  snprintf(command, sizeof command,
           "ls -d %s/* 2>/dev/null | grep -v '/home$' | grep -v '/scripts$'; "
           "ls -d /tmp/rille-hostile* /dev/shm/rille-hostile* 2>/dev/null",
           work);
  if (system(command) == 0) printf("NOT OK: files outside of the home, above\n"), ++bad;
  printf(
      "%d scripts, %d broken promises; the last ended after %.0f ms; most memory %ld MB; longest turn %.1f ms (%s), "
      "%d above 20 ms; longest gap of a 1 ms timer beside %.1f ms\n",
      tried, bad, worst_end, worst_kb >> 10, worst_turn, turn_name, slow_turns, worst_gap);
  snprintf(command, sizeof command, "rm -rf %s", work);
  CHECK(system(command) == 0);
  return bad != 0 || tried == 0;
}
