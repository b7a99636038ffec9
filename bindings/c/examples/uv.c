/* Rille in a libuv loop: uv_poll for its descriptor, uv_timer for its timeout.
   cc uv.c $(pkg-config --cflags --libs rille libuv) -o uv; ./uv */
#include <rille.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

static const char script[] =
    "local rille = require 'rille'\n"
    "local answer = require('app').slow(20)\n"
    "print('the function answered ' .. answer)\n"
    "return answer\n";

static struct {
  rille_runtime* runtime;
  rille_run* run;
  uv_poll_t readable;
  uv_timer_t later;
} app;

static void wait_again(void);

static void turn(void) {
  int busy = 0;
  rille_error* error = rille_turn(app.runtime, 5, &busy);
  if (error) fprintf(stderr, "%s\n", rille_error_message(error));
  rille_error_free(error);
  if (busy) {
    wait_again();
    return;
  }
  uv_close((uv_handle_t*)&app.readable, NULL); /* the loop ends when nothing is left in it */
  uv_close((uv_handle_t*)&app.later, NULL);
}

static void on_readable(uv_poll_t* handle, int status, int events) {
  (void)handle, (void)status, (void)events;
  turn();
}

static void on_time(uv_timer_t* handle) {
  (void)handle;
  turn();
}

static void wait_again(void) {
  int timeout_ms = rille_poll_timeout_ms(app.runtime);
  if (timeout_ms < 0) uv_timer_stop(&app.later);
  else uv_timer_start(&app.later, on_time, (uint64_t)timeout_ms, 0);
}

/* slow(ms): lets the script wait, and answers from a timer of the host's loop. */
static void answer(uv_timer_t* timer) {
  rille_completion_resolve(timer->data, "42", 2);
  uv_close((uv_handle_t*)timer, NULL);
}

static void slow(rille_call* call, void* payload) {
  static uv_timer_t timer; /* one call at a time is enough here */
  double ms = 0;
  rille_error* error = rille_call_number(call, 0, &ms);
  if (error) {
    rille_call_fail(call, error);
    return;
  }
  rille_completion* completion = rille_call_suspend(call);
  if (!completion) return;
  uv_timer_init(payload, &timer);
  timer.data = completion;
  uv_timer_start(&timer, answer, (uint64_t)ms, 0);
}

static void print(const char* text, size_t length, void* payload) {
  (void)payload;
  fwrite(text, 1, length, stdout);
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  rille_function_spec functions[] = {{sizeof *functions, "slow", RILLE_STEP, slow, loop}};
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.print = print;
  rille_error* error = rille_create(NULL, &app.runtime);
  if (!error) error = rille_register_module(app.runtime, "app", functions, 1);
  if (!error) error = rille_run_from_source(app.runtime, "script", script, strlen(script), &options, &app.run);
  if (!error) error = rille_run_start(app.run);
  if (!error) {
    uv_poll_init(loop, &app.readable, rille_poll_fd(app.runtime));
    uv_timer_init(loop, &app.later);
    uv_poll_start(&app.readable, UV_READABLE, on_readable);
    wait_again();
    uv_run(loop, UV_RUN_DEFAULT);
    if (rille_run_result(app.run, NULL)) printf("result: %s\n", rille_run_result(app.run, NULL));
  }
  int failed = error != NULL || !app.run || rille_run_state(app.run) != RILLE_RUN_DONE;
  if (error) fprintf(stderr, "%s\n%s\n", rille_error_message(error), rille_error_hint(error));
  rille_error_free(error);
  rille_run_free(app.run);
  rille_destroy(app.runtime);
  uv_loop_close(loop);
  return failed;
}
