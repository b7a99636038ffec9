/* Shared by values.c and scripts.c: making values and looking at them, the functions that scripts call, a runtime. */
#pragma once

#define _XOPEN_SOURCE 700 /* pthread_barrier_t */
#include <pthread.h>
#include <rille.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAYBE __attribute__((unused)) /* not every program needs all of this */
#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

#define ok(error) ok_at(__LINE__, error)
MAYBE static void ok_at(int line, rille_error* error) {
  if (error) fprintf(stderr, "line %d: %s\n", line, rille_error_to_json(error));
  CHECK(!error);
}

#define refused(error, kind, words) refused_at(__LINE__, error, kind, words)
MAYBE static void refused_at(int line, rille_error* error, rille_kind kind, const char* words) {
  if (!error || rille_error_kind(error) != kind || !strstr(rille_error_message(error), words)) {
    fprintf(stderr, "line %d: expected '%s', got %s\n", line, words, error ? rille_error_to_json(error) : "none");
    exit(1);
  }
  rille_error_free(error);
}

MAYBE static rille_value number(double n) {
  rille_value v = {RILLE_VALUE_NUMBER, {0}};
  v.as.number = n;
  return v;
}

MAYBE static rille_value integer(int64_t n) {
  rille_value v = {RILLE_VALUE_INTEGER, {0}};
  v.as.integer = n;
  return v;
}

MAYBE static rille_value text(const char* s) {
  rille_value v = {RILLE_VALUE_BYTES, {0}};
  v.as.bytes.data = s, v.as.bytes.size = strlen(s);
  return v;
}

MAYBE static rille_value table(const rille_table* t) {
  rille_value v = {RILLE_VALUE_TABLE, {0}};
  v.as.table = t;
  return v;
}

MAYBE static rille_value handle(rille_handle h) {
  rille_value v = {RILLE_VALUE_HANDLE, {0}};
  v.as.handle = h;
  return v;
}

MAYBE static rille_value function(rille_script_function f) {
  rille_value v = {RILLE_VALUE_FUNCTION, {0}};
  v.as.function = f;
  return v;
}

MAYBE static rille_field field(const char* name, rille_value value) {
  rille_field f = {name, strlen(name), value};
  return f;
}

MAYBE static const rille_value* get(const rille_value* v, const char* name) {
  CHECK(v->kind == RILLE_VALUE_TABLE);
  for (size_t i = 0; i < v->as.table->field_count; ++i)
    if (strcmp(v->as.table->fields[i].name, name) == 0) return &v->as.table->fields[i].value;
  return NULL;
}

MAYBE static int is_text(const rille_value* v, const char* s) {
  return v && v->kind == RILLE_VALUE_BYTES && v->as.bytes.size == strlen(s) && strcmp(v->as.bytes.data, s) == 0;
}

MAYBE static int is_number(const rille_value* v, double n) {
  return v && v->kind == RILLE_VALUE_NUMBER && v->as.number == n;
}

/* ---- the functions that scripts call */

MAYBE static rille_runtime* runtime; /* the one under test */

MAYBE static void echo(rille_call* call, void* payload) {
  (void)payload;
  rille_value v;
  rille_error* error = rille_call_value(call, 0, &v);
  if (error) rille_call_fail(call, error);
  else rille_call_return_value(call, &v);
}

/* A table with a list, a name, and three kinds of numbers. */
MAYBE static void make(rille_call* call, void* payload) {
  (void)payload;
  rille_value list[] = {number(1), text("two"), {RILLE_VALUE_NIL, {0}}, number(4)};
  rille_table inner = {list, 4, NULL, 0};
  rille_field fields[] = {field("list", table(&inner)), field("whole", integer(1LL << 53)), field("half", number(0.5))};
  rille_table t = {NULL, 0, fields, 3};
  rille_value v = table(&t);
  rille_call_return_value(call, &v);
  memset(fields, 0x55, sizeof fields); /* it was copied */
  memset(list, 0x55, sizeof list);
}

MAYBE static const rille_value* bad_value;
MAYBE static void bad(rille_call* call, void* payload) {
  (void)payload;
  rille_call_return_value(call, bad_value);
}

/* Calls the function that it is given with the second argument plus one. */
MAYBE static void apply(rille_call* call, void* payload) {
  (void)payload;
  rille_value f, argument, result;
  rille_error* error = rille_call_value(call, 0, &f);
  if (!error) error = rille_call_value(call, 1, &argument);
  if (!error) {
    CHECK(f.kind == RILLE_VALUE_FUNCTION);
    if (argument.kind == RILLE_VALUE_NUMBER) argument.as.number += 1;
    error = rille_script_call(runtime, f.as.function, &argument, 1, &result, 1);
  }
  if (error) rille_call_fail(call, error);
  else rille_call_return_value(call, &result);
}

MAYBE static rille_script_function kept_function, lent_function;
static rille_handle kept_handle;
MAYBE static void keep(rille_call* call, void* payload) {
  (void)payload;
  rille_value v;
  rille_error* error = rille_call_value(call, 0, &v);
  if (error) {
    rille_call_fail(call, error);
    return;
  }
  if (v.kind == RILLE_VALUE_FUNCTION) {
    kept_function = v.as.function;
    ok(rille_script_function_hold(runtime, kept_function));
  } else if (v.kind == RILLE_VALUE_HANDLE) {
    kept_handle = v.as.handle;
    ok(rille_handle_hold(runtime, kept_handle));
  }
}

MAYBE static void borrow(rille_call* call, void* payload) {
  (void)payload;
  rille_value v;
  ok(rille_call_value(call, 0, &v));
  lent_function = v.as.function;
}

/* The first number of a tensor. */
MAYBE static void first(rille_call* call, void* payload) {
  (void)payload;
  rille_value v;
  rille_view view = {sizeof view, NULL, 0, NULL, 0, {0}};
  rille_error* error = rille_call_value(call, 0, &v);
  if (!error) error = rille_handle_view(runtime, v.as.handle, &view);
  if (error) {
    rille_call_fail(call, error);
    return;
  }
  v = number(*(const float*)view.data);
  rille_call_return_value(call, &v);
}

MAYBE static rille_completion* waiting;
MAYBE static void later(rille_call* call, void* payload) {
  (void)payload;
  waiting = rille_call_suspend(call);
}

MAYBE static const rille_function_spec functions[] = {
    {sizeof(rille_function_spec), "echo", RILLE_PURE, echo, NULL},
    {sizeof(rille_function_spec), "make", RILLE_PURE, make, NULL},
    {sizeof(rille_function_spec), "bad", RILLE_PURE, bad, NULL},
    {sizeof(rille_function_spec), "apply", RILLE_PURE, apply, NULL},
    {sizeof(rille_function_spec), "keep", RILLE_PURE, keep, NULL},
    {sizeof(rille_function_spec), "borrow", RILLE_PURE, borrow, NULL},
    {sizeof(rille_function_spec), "first", RILLE_PURE, first, NULL},
    {sizeof(rille_function_spec), "later", RILLE_PURE, later, NULL},
    {sizeof(rille_function_spec), "later_step", RILLE_STEP, later, NULL},
    {sizeof(rille_function_spec), "echo_step", RILLE_STEP, echo, NULL},
    {sizeof(rille_function_spec), "make_step", RILLE_STEP, make, NULL},
};

MAYBE static rille_runtime* create(const char* name) {
  char home[512];
  snprintf(home, sizeof home, "%s/%s", getenv("RILLE_HOME"), name);
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = home;
  rille_runtime* rt = NULL;
  ok(rille_create(&options, &rt));
  ok(rille_register_module(rt, "app", functions, sizeof functions / sizeof *functions));
  return rt;
}

#define APP "local app, rille = require 'app', require 'rille' "

MAYBE static rille_script* load(const char* source, const rille_run_options* options) {
  rille_script* script = NULL;
  ok(rille_script_load(runtime, "script.lua", source, strlen(source), options, &script));
  return script;
}

MAYBE static rille_script_function find(rille_script* script, const char* name) {
  rille_script_function f = 0;
  ok(rille_script_find(script, name, &f));
  CHECK(f);
  return f;
}

MAYBE static rille_error* call1(rille_script_function f, rille_value argument, rille_value* result) {
  return rille_script_call(runtime, f, &argument, 1, result, 1);
}
