/* Two runtimes in one process, and what a library must leave alone: signal handlers, the working folder, the locale. */
#define _GNU_SOURCE /* NSIG */
#include <locale.h>
#include <rille.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failures = 0;

static void expect(int ok, const char* what) {
  if (!ok) printf("not so: %s\n", what), ++failures;
}

static volatile sig_atomic_t urgent = 0; /* calls of this program's own handler */
static void on_urgent(int number) { (void)number, ++urgent; }
static struct sigaction below; /* what this program's second handler passes on to */
static void on_urgent_too(int number, siginfo_t* info, void* context) { below.sa_sigaction(number, info, context); }

static int same_handlers(const struct sigaction* before, int but) {
  int same = 1;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction now;
    if (number == but || sigaction(number, NULL, &now)) continue;
    if (now.sa_handler != before[number].sa_handler) printf("signal %d has another handler\n", number), same = 0;
  }
  return same;
}

static rille_run* start(rille_runtime* runtime, const char* source) {
  rille_run* run = NULL;
  rille_error* error = rille_run_from_source(runtime, "script", source, strlen(source), NULL, &run);
  if (!error) error = rille_run_start(run);
  if (error) printf("%s\n", rille_error_message(error)), ++failures;
  rille_error_free(error);
  return run;
}

static void finish(rille_run* run, const char* wanted) {
  rille_error* error = rille_run_wait(run, 20000);
  expect(!error, "the run ends");
  const char* result = rille_run_result(run, NULL);
  expect(result && !strcmp(result, wanted), wanted);
  rille_error_free(error);
  rille_run_free(run);
}

int main(void) {
  struct sigaction before[NSIG];
  char folder_before[4096], folder_after[4096];
  memset(before, 0, sizeof before);
  signal(SIGURG, on_urgent);
  for (int number = 1; number < NSIG; ++number) sigaction(number, NULL, &before[number]);
  expect(getcwd(folder_before, sizeof folder_before) != NULL, "there is a working folder");
  expect(rille_abi_check(RILLE_ABI_VERSION), "the library serves this header");

  rille_runtime *first = NULL, *second = NULL;
  rille_error_free(rille_create(NULL, &first));
  rille_error_free(rille_create(NULL, &second));
  expect(first && second, "two runtimes share a process and a home");
  if (!first || !second) return 1;
  rille_run* one = start(first, "x = 1 require('rille').sleep('20ms') return x");
  rille_run* two = start(second, "x = 2 require('rille').sleep('10ms') return x");
  finish(one, "1");
  finish(two, "2");
  expect(same_handlers(before, SIGURG), "no signal handler but that of SIGURG is installed while runtimes live");
  raise(SIGURG);
  expect(urgent == 1, "SIGURG is passed on to the handler that was there before");
  struct sigaction above;
  memset(&above, 0, sizeof above);
  above.sa_sigaction = on_urgent_too;
  above.sa_flags = SA_SIGINFO;
  sigaction(SIGURG, &above, &below);
  rille_run* three = start(first, "return 3"); /* its handler is installed above, and passes on to the other two */
  finish(three, "3");
  raise(SIGURG);
  expect(urgent == 2, "handlers that pass on to each other end");
  sigaction(SIGURG, &below, NULL);
  rille_destroy(second);
  rille_destroy(first);
  expect(same_handlers(before, 0), "no signal handler is left behind");
  expect(getcwd(folder_after, sizeof folder_after) && !strcmp(folder_before, folder_after), "the folder is the same");
  expect(!strcmp(setlocale(LC_ALL, NULL), "C"), "the locale is the same");
  printf("%d failures\n", failures);
  return failures != 0;
}
