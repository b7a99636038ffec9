/* A server's loop with epoll: its own timer and a run of Rille side by side.
   cc epoll.c $(pkg-config --cflags --libs rille) -o epoll; ./epoll [SCRIPT.lua] */
#include <rille.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static const char greeting[] =
    "local rille = require 'rille'\n"
    "for i = 1, 3 do print('script: ' .. i) rille.sleep('60ms') end\n"
    "return { sum = 6 }\n";

static void print(const char* text, size_t length, void* payload) {
  (void)payload;
  fwrite(text, 1, length, stdout);
}

static int report(rille_error* error) {
  if (!error) return 0;
  fprintf(stderr, "%s: %s\n%s\n", rille_error_kind_name(error), rille_error_message(error), rille_error_hint(error));
  rille_error_free(error);
  return 1;
}

/* Until the run has ended: epoll waits for the timer of this program and for Rille's descriptor, whichever is first. */
static rille_error* loop(rille_runtime* runtime, int* ticks) {
  int ready = epoll_create1(EPOLL_CLOEXEC), tick = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  struct itimerspec every = {{0, 50000000}, {0, 50000000}};
  struct epoll_event for_tick = {EPOLLIN, {.fd = tick}}, for_rille = {EPOLLIN, {.fd = rille_poll_fd(runtime)}};
  timerfd_settime(tick, 0, &every, NULL);
  epoll_ctl(ready, EPOLL_CTL_ADD, tick, &for_tick);
  epoll_ctl(ready, EPOLL_CTL_ADD, for_rille.data.fd, &for_rille);
  rille_error* error = NULL;
  for (int busy = 1; busy && !error;) {
    struct epoll_event events[8];
    int n = epoll_wait(ready, events, 8, rille_poll_timeout_ms(runtime));
    for (int i = 0; i < n; ++i) {
      uint64_t passed;
      if (events[i].data.fd == tick && read(tick, &passed, sizeof passed) == sizeof passed) *ticks += (int)passed;
    }
    error = rille_turn(runtime, 5, &busy); /* also without an event: a timeout of Rille's may be over */
  }
  close(tick), close(ready);
  return error;
}

int main(int argc, char** argv) {
  rille_runtime* runtime = NULL;
  rille_run* run = NULL;
  rille_run_options options;
  int ticks = 0;
  rille_run_options_init(&options, sizeof options);
  options.print = print;
  rille_error* error = rille_create(NULL, &runtime);
  if (!error && argc > 1) error = rille_run_from_file(runtime, argv[1], &options, &run);
  if (!error && argc < 2)
    error = rille_run_from_source(runtime, "greeting", greeting, strlen(greeting), &options, &run);
  if (!error) error = rille_run_start(run);
  if (!error) error = loop(runtime, &ticks);
  if (!error && rille_run_error(run)) printf("failed: %s\n", rille_error_message(rille_run_error(run)));
  if (!error && rille_run_result(run, NULL)) printf("result: %s\n", rille_run_result(run, NULL));
  if (!error) printf("the program's own timer went on: %s\n", ticks > 0 ? "yes" : "no");
  int failed = report(error);
  rille_run_free(run);
  failed |= report(rille_shutdown(runtime, 5000));
  rille_destroy(runtime);
  return failed;
}
