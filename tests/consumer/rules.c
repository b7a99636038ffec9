/* Rille inside another program: a script that stays loaded, called with values, and memory shared without a copy.
   cc rules.c $(pkg-config --cflags --libs rille) -o rules */
#include <rille.h>
#include <stdio.h>
#include <string.h>

static const char rules[] =
    "local seen = 0\n"
    "local M = {}\n"
    "function M.price(order) seen = seen + 1 return order.count * order.each, seen end\n"
    "function M.brighten(pixels) return pixels:tensor('u8') + 1 end\n"
    "return M\n";

static void given_back(void* data, void* payload) { printf("%s is free again\n", data ? (const char*)payload : ""); }

static int show(rille_error* error) {
  if (error) printf("%s\n%s\n", rille_error_message(error), rille_error_traceback(error));
  rille_error_free(error);
  return error != NULL;
}

int main(void) {
  static unsigned char image[4] = {10, 20, 30, 40};
  rille_runtime* runtime = NULL;
  rille_script* script = NULL;
  rille_script_function price = 0, brighten = 0;
  rille_error* error = rille_create(NULL, &runtime);
  if (!error) error = rille_script_load(runtime, "rules.lua", rules, strlen(rules), NULL, &script);
  if (!error) error = rille_script_find(script, "price", &price);
  if (!error) error = rille_script_find(script, "brighten", &brighten);

  for (int i = 1; i <= 2 && !error; ++i) { /* price({ count = i, each = 2.5 }) */
    rille_field fields[2] = {{"count", 5, {RILLE_VALUE_INTEGER, {0}}}, {"each", 4, {RILLE_VALUE_NUMBER, {0}}}};
    fields[0].value.as.integer = i, fields[1].value.as.number = 2.5;
    rille_table order = {NULL, 0, fields, 2};
    rille_value argument = {RILLE_VALUE_TABLE, {0}}, results[2];
    argument.as.table = &order;
    error = rille_script_call(runtime, price, &argument, 1, results, 2);
    if (!error) printf("order %g costs %g\n", results[1].as.number, results[0].as.number);
  }

  rille_value pixels = {RILLE_VALUE_HANDLE, {0}};
  if (!error) error = rille_buffer_wrap(runtime, image, sizeof image, given_back, "image", &pixels.as.handle);
  rille_value brighter; /* a tensor; its handle is borrowed until the next call */
  if (!error) error = rille_script_call(runtime, brighten, &pixels, 1, &brighter, 1);
  rille_view view = {sizeof view, NULL, 0, NULL, 0, {0}};
  if (!error) error = rille_handle_view(runtime, brighter.as.handle, &view);
  if (!error) printf("pixel 1 of %zu: %d\n", view.size, ((unsigned char*)view.data)[0]);
  int failed = show(error);
  rille_handle_drop(runtime, pixels.as.handle);
  rille_script_free(script), rille_destroy(runtime);
  return failed;
}
