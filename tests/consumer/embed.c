/* Rille inside another program: a host function, a script that calls it, the program's own poll loop, an error. */
#include <poll.h>
#include <rille.h>
#include <stdio.h>
#include <string.h>

static void greet(rille_call* call, void* payload) {
  const char* who;
  size_t length;
  char text[100];
  rille_error* error = rille_call_text(call, 0, &who, &length);
  if (error) {
    rille_call_fail(call, error); /* raised in the script */
    return;
  }
  int n = snprintf(text, sizeof text, "%s, %.*s", (const char*)payload, (int)length, who);
  rille_call_return_text(call, text, (size_t)n);
}

static void print(const char* text, size_t length, void* file) { fwrite(text, 1, length, file); }

static int show(const rille_error* error) {
  printf("kind: %s\nmessage: %s\nhint: %s\nretryable: %d\n", rille_error_kind_name(error), rille_error_message(error),
         rille_error_hint(error), rille_error_retryable(error));
  return 1;
}

/* Any event loop will do: wait for the descriptor or the timeout, then turn. */
static rille_error* drive(rille_runtime* runtime) {
  rille_error* error = NULL;
  for (int busy = 1; busy && !error;) {
    struct pollfd ready = {rille_poll_fd(runtime), POLLIN, 0};
    poll(&ready, 1, rille_poll_timeout_ms(runtime));
    error = rille_turn(runtime, 10, &busy);
  }
  return error;
}

int main(int argc, char** argv) {
  const char* script = argc > 1 ? argv[1] : "print(require('app').greet('moon')) require('app').greet({})";
  rille_function_spec functions[] = {{sizeof *functions, "greet", RILLE_PURE, greet, "hello"}};
  rille_run_options options;
  rille_runtime* runtime = NULL;
  rille_run* run = NULL;
  rille_run_options_init(&options, sizeof options);
  options.print = print, options.payload = stdout;
  rille_error* error = rille_create(NULL, &runtime);
  if (!error) error = rille_register_module(runtime, "app", functions, 1);
  if (!error) error = rille_run_from_source(runtime, "embedded", script, strlen(script), &options, &run);
  if (!error) error = rille_run_start(run);
  if (!error) error = drive(runtime);
  if (!error && rille_run_error(run)) show(rille_run_error(run));
  if (!error) error = rille_shutdown(runtime, 5000);
  int failed = error ? show(error) : 0;
  rille_error_free(error), rille_run_free(run), rille_destroy(runtime);
  return failed;
}
