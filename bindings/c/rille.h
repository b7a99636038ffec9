/* rille.h: Rille inside another program. C11; the only public header of librille. Manual: docs/manual/embedding.md.

   Conventions
   1. Handles are opaque. A result is "owned" (the caller frees it with the function named in its comment) or "borrowed"
      (valid until the object it came from is freed or changed). "transferred": the called function frees the argument.
      A getter of a NULL handle gives 0, "" or NULL, unless its comment says otherwise.
   2. A call that can fail returns a rille_error*, NULL for success. The error is owned: rille_error_free. Result
      parameters come last.
   3. Structs of options begin with struct_size. Set them up with their _init function; later versions add fields at
      the end. A struct_size of 0 is refused with `invalid`.
   4. Texts are UTF-8. A text passed with a length need not end in a zero; a text given out always does.
      Structured data is JSON; docs/manual/embedding.md says how NaN, binary strings and number keys are written.
   5. Threads. A runtime and what was made from it belong to the thread that created it, until rille_adopt. Marked [T]:
      any thread. Marked [S]: also inside a signal handler. Everything else fails with `state` on a foreign thread, and
      in a child made by fork. Callbacks run on the runtime's thread, inside rille_turn, rille_run_wait or
      rille_shutdown; they may call anything but those three and rille_destroy. They must not longjmp out or throw.
   6. The library has no global state, raises no SIGPIPE, and never exits. It installs no signal handler but
      for SIGURG, and with the first kernel on the CPU (docs/manual/embedding.md). Several runtimes may live in one
   process. The host must not ignore SIGCHLD, nor wait for children that it has not started. */
/* clang-format off */
#ifndef RILLE_H
#define RILLE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RILLE_API __attribute__((visibility("default")))
#else
#define RILLE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when programs built with an older header must be rebuilt. */
#define RILLE_ABI_VERSION 1

/* The version of this header, also as a number that grows: 0.1.0 is 100, 1.2.3 is 10203. */
#define RILLE_VERSION_MAJOR 0
#define RILLE_VERSION_MINOR 1
#define RILLE_VERSION_PATCH 0
#define RILLE_VERSION_NUMBER (RILLE_VERSION_MAJOR * 10000 + RILLE_VERSION_MINOR * 100 + RILLE_VERSION_PATCH)

RILLE_API const char *rille_version(void); /* [T] such as "0.1.0"; valid for ever */
/* [T] Call rille_abi_check(RILLE_ABI_VERSION): 1 if this library works with programs built with that header, else 0. */
RILLE_API int rille_abi_check(int abi_version);

typedef struct rille_runtime rille_runtime;
typedef struct rille_run rille_run;
typedef struct rille_error rille_error;
typedef struct rille_call rille_call;
typedef struct rille_completion rille_completion;

/* ---- errors. [T] Any thread may use an error, but only one at a time. */

typedef enum rille_kind {
  RILLE_INVALID, RILLE_CONFIG, RILLE_AUTH, RILLE_QUOTA, RILLE_CAPACITY, RILLE_NETWORK, RILLE_TIMEOUT, RILLE_CANCELLED,
  RILLE_BUDGET, RILLE_STATE, RILLE_IO, RILLE_INTEGRITY, RILLE_DEVICE, RILLE_MEMORY, RILLE_DIVERGENCE, RILLE_INTERNAL,
  RILLE_DENIED
} rille_kind;

/* Never returns NULL: if memory is exhausted, it returns a reserved error. message, hint: NULL means "". */
RILLE_API rille_error *rille_error_create(rille_kind kind, const char *message, const char *hint); /* owned */
RILLE_API rille_kind rille_error_kind(const rille_error *error);
RILLE_API const char *rille_error_kind_name(const rille_error *error); /* such as "invalid"; valid for ever */
RILLE_API const char *rille_error_message(const rille_error *error);   /* what failed; borrowed */
RILLE_API const char *rille_error_hint(const rille_error *error);      /* what the user can do next, or ""; borrowed */
RILLE_API const char *rille_error_code(const rille_error *error);      /* code of a service or Rille, or ""; borrowed */
RILLE_API const char *rille_error_traceback(const rille_error *error); /* stack frames of the script, or ""; borrowed */
RILLE_API int rille_error_retryable(const rille_error *error);
RILLE_API int64_t rille_error_retry_after_ms(const rille_error *error); /* -1: unknown */
RILLE_API int rille_error_http_status(const rille_error *error);        /* 0: no HTTP answer */
/* A text field: message hint code traceback provider operation request_id resource; NULL for another name. borrowed */
RILLE_API const char *rille_error_field(const rille_error *error, const char *name);
RILLE_API const rille_error *rille_error_cause(const rille_error *error); /* borrowed; NULL: no cause, or no memory */
RILLE_API const char *rille_error_to_json(const rille_error *error);      /* borrowed */
RILLE_API void rille_error_free(rille_error *error);                      /* NULL has no effect */

/* [T] Frees a text that is marked "owned". NULL has no effect. */
RILLE_API void rille_free(void *text);

/* ---- the runtime */

typedef enum rille_log_level { RILLE_DEBUG, RILLE_INFO, RILLE_WARN, RILLE_ERROR } rille_log_level;
typedef void (*rille_log_function)(rille_log_level level, const char *line, size_t length, void *payload);
typedef void (*rille_text_function)(const char *text, size_t length, void *payload);
typedef void (*rille_done_function)(const rille_error *error, void *payload); /* error: borrowed; NULL on success */
typedef void (*rille_post_function)(void *payload);
/* As lua_Alloc: new_size 0 frees; else realloc, NULL if there is no memory. pointer NULL: old_size has no meaning. */
typedef void *(*rille_allocate_function)(void *payload, void *pointer, size_t old_size, size_t new_size);

typedef struct rille_options {
  size_t struct_size;
  const char *home;      /* folder of journal, runs and cache. NULL: $RILLE_HOME, else
                            $XDG_STATE_HOME/rille, else ~/.local/state/rille. ":memory:": nothing
                            on disk; runs end with the runtime, and what needs files (rent, rille.home)
                            is refused with `state` */
  const char *self_exe;  /* path of the `rille` command, run by agents on this machine. NULL: search $PATH */
  rille_log_function log; /* receives log lines, except of runs with an event callback. NULL: no log */
  void *log_payload;
  int full_tracebacks;   /* 1: tracebacks also show frames of Rille's Lua code */
  int runs_max;          /* limit of active runs; starting one more fails with `state` */
  rille_allocate_function allocate; /* memory of the scripts' Lua heaps; on the runtime's thread. NULL: malloc */
  void *allocate_payload;
} rille_options;

RILLE_API void rille_options_init(rille_options *options, size_t struct_size); /* [T] */
/* options: NULL for the defaults. The calling thread owns the runtime. Errors io, config: the home cannot be used. */
RILLE_API rille_error *rille_create(const rille_options *options, rille_runtime **runtime);
/* [T] Makes the calling thread the owner. The old owner must not be inside a call on this runtime. */
RILLE_API rille_error *rille_adopt(rille_runtime *runtime);
/* Cancels every run, lets scripts clean up and releases the runs' leases; blocks for at most deadline_ms, and until a
   tensor operation or a call of a C function that runs then is over. NULL: every run has ended, and nothing is being
   released. Else a `timeout` error names the runs that had not: suspended (rille_run_resume continues them) or, if
   they cannot be resumed, ended as `cancelled` without the rest of their cleanup. After this call no run can start. */
RILLE_API rille_error *rille_shutdown(rille_runtime *runtime, int64_t deadline_ms);
/* Frees the runtime; its rille_run handles and the memory of views become invalid. Active runs are suspended: their
   leases stay in the journal for rille_run_resume, `rille gc` or the end of their ttl. NULL has no effect.
   Completions stay valid. Error state, and no effect: on a foreign thread, in a callback, in a forked child. */
RILLE_API rille_error *rille_destroy(rille_runtime *runtime);

/* ---- driving the loop: wait until the descriptor is readable or the timeout passes, then call rille_turn.
   Or call rille_run_wait. */

RILLE_API int rille_poll_fd(const rille_runtime *runtime);         /* the descriptor to wait for; never read from it */
RILLE_API int rille_poll_timeout_ms(rille_runtime *runtime);       /* 0: call rille_turn at once; -1: no timeout */
/* Runs ready work for about budget_ms; does not wait for events. A script that computes is suspended where it is and
   goes on in a later turn; meanwhile no other fiber of its run continues. A turn takes longer for what is not
   suspended:
   - one call of a C function: the host's own, or Lua's and Rille's (("x"):rep(1e8), table.concat, load), with the Lua
     code that it or custom_grad calls; but patterns, sorting and pairs are suspended;
   - a large table that becomes data: a result, arguments, what is journaled;
   - one piece of Lua's own work: the collection of garbage, a table that grows;
   - machine code, which only rille_run_options.jit allows: a loop in it never returns;
   - at the end of a failed run, the tensor operation that is being computed.
   memory_bytes bounds the first three, but for functions of the host. docs/manual/embedding.md has figures.
   *busy is set to 1 while a run is active; may be NULL. */
RILLE_API rille_error *rille_turn(rille_runtime *runtime, int budget_ms, int *busy);
/* [T] Calls function(payload) on the runtime's thread, in the next turn; never if the runtime is destroyed before. */
RILLE_API rille_error *rille_post(rille_runtime *runtime, rille_post_function function, void *payload);
/* [T][S] Cancels every run of this runtime, even one in an endless loop. The runs clean up and end as `cancelled`. */
RILLE_API void rille_interrupt(rille_runtime *runtime);

/* ---- runs */

typedef enum rille_rules {
  RILLE_RULES_WORKFLOW, /* deterministic; io, os and other effects only in steps; journaled, can be resumed */
  RILLE_RULES_OPEN      /* io, os, require "ffi" everywhere, as far as granted; only leases are journaled; no resume */
} rille_rules;

typedef enum rille_state {
  RILLE_RUN_NEW, RILLE_RUN_RUNNING, RILLE_RUN_DONE, RILLE_RUN_FAILED, RILLE_RUN_CANCELLED,
  RILLE_RUN_SUSPENDED /* suspended by rille_shutdown; rille_run_resume continues it */
} rille_state;

/* spend_micros and leases_max, unless set: no limit if the grants are {"all": true}, else 0. */
#define RILLE_AS_GRANTED (-2)

typedef struct rille_run_options {
  size_t struct_size;
  rille_rules rules;
  const char *args_json;        /* the script's input: an object; NULL: none. Ignored on resume */
  const char *module_folder;    /* where require finds the script's modules. NULL: beside the file; none for a text */
  rille_text_function print;    /* what the script and its calls print, as written */
  rille_text_function progress; /* one JSON object: what done total unit loss rate seconds_left .. */
  rille_text_function event;    /* one JSON object with the member event: log rent live released retry .. */
  void *payload;                /* of the three above */
  /* Limits. Each failure names its limit: rille_error_code is the member's name, but for spend and leases.
     0: none. A run that exceeds a limit of time (slice, wall, cpu) ends with its error even if the script catches it.
     Child runs count with the run that starts them. */
  int64_t memory_bytes;         /* of Lua, tensors on the CPU, results and arguments on their way, fibers: `memory` */
  int64_t slice_ms;             /* of Lua without waiting: `timeout` */
  int64_t wall_ms;              /* of the whole run, counted anew on resume: `timeout` */
  int64_t spend_micros;         /* in millionths of a dollar; -1: no limit. rille.budget can only lower it: `budget`.
                                   On resume, unless set: what the run began with, else its budget in the journal */
  int64_t leases_max;           /* held at a time; -1: no limit: `quota` */
  int64_t cpu_ms;               /* of processors: Lua, tensors and kernels on the CPU, compilers: `timeout` */
  int64_t output_bytes;         /* of print: `quota` */
  int64_t fibers_max;           /* at a time: `quota` */
  /* What the run and its child runs may reach, as a JSON object: {"read": ["/data"], "network": ["example.org"]}, or
     {"all": true}. Anything else fails with `denied`. docs/manual/grants.md lists the grants. NULL: nothing is granted;
     on resume: what the run began with, while other grants hold until it is resumed again. With a struct_size from
     before this member, and no grants in the journal, everything is granted. */
  const char *grants;
  int64_t disk_bytes;           /* that the run writes: into the journal, files and caches: `quota` */
  int jit;                      /* 1: a script whose first lines have the comment `-- rille: jit` is compiled to
                                   machine code. No interrupt, cancel, turn or shutdown ends a loop of such code: the
                                   call that runs it does not return. 0, or any limit set: the comment has no effect */
} rille_run_options;

RILLE_API void rille_run_options_init(rille_run_options *options, size_t struct_size); /* [T] */
/* Prepares a run: compiles the text. Error invalid: a syntax error, with file and line. name is shown in tracebacks
   and lists. options: NULL for the defaults. The run is owned: rille_run_free. */
RILLE_API rille_error *rille_run_from_source(rille_runtime *runtime, const char *name, const char *source,
                                             size_t length,
                                             const rille_run_options *options, rille_run **run);
RILLE_API rille_error *rille_run_from_file(rille_runtime *runtime, const char *path, const rille_run_options *options,
                                           rille_run **run);
/* Prepares to continue a run of this home with the run's original script; finished steps do not run again.
   id: the run's id, a unique prefix of it, or "last". Error state: the run has ended, another process runs it, or a
   module that was registered when it started is not registered here. */
RILLE_API rille_error *rille_run_resume(rille_runtime *runtime, const char *id, const rille_run_options *options,
                                        rille_run **run);
/* Starts a prepared run, once; it runs in later turns of the loop. Later failures are in rille_run_error. */
RILLE_API rille_error *rille_run_start(rille_run *run);
/* [T] Raises `cancelled` in the script, releases the run's leases. No effect on an ended run. reason may be NULL. On a
   foreign thread it takes effect in the next turn; until the call returns, the run must not be freed, nor its runtime
   destroyed. */
RILLE_API rille_error *rille_run_cancel(rille_run *run, const char *reason);
/* Turns the loop until the run has ended. Error timeout: timeout_ms have passed, the run continues. -1: no limit. */
RILLE_API rille_error *rille_run_wait(rille_run *run, int64_t timeout_ms);
/* Calls done once when the run has ended; in the next turn if it has ended already. Replaces an earlier callback. */
RILLE_API rille_error *rille_run_on_done(rille_run *run, void (*done)(rille_run *run, void *payload), void *payload);
RILLE_API const char *rille_run_id(const rille_run *run); /* borrowed */
RILLE_API rille_state rille_run_state(const rille_run *run);
/* The script's result as JSON; NULL unless the run's state is done. borrowed. length may be NULL. */
RILLE_API const char *rille_run_result(const rille_run *run, size_t *length);
RILLE_API const rille_error *rille_run_error(const rille_run *run); /* borrowed; NULL: not failed or cancelled */
/* Current size of the run's Lua heap; 0 once the run has ended. */
RILLE_API int64_t rille_run_memory_bytes(const rille_run *run);
/* [T] Frees the handle, on a foreign thread in the next turn. An active run continues, and its callbacks are still
   called. NULL has no effect. */
RILLE_API void rille_run_free(rille_run *run);
/* The newest `limit` runs of this home, as a JSON array of objects. owned: rille_free. */
RILLE_API rille_error *rille_runs(rille_runtime *runtime, int limit, char **json);
/* Removes an ended run and its child runs: record, files, lock; what they cost is kept. Calls done (may be NULL) with
   the outcome. Error state: it has not ended, or still rents something. Handles of the run stay valid. */
RILLE_API rille_error *rille_run_remove(rille_runtime *runtime, const char *run_id, rille_done_function done,
                                        void *payload);
/* Sends a message to a run that waits in rille.signal(name), in any process. payload_json: NULL means nil. */
RILLE_API rille_error *rille_signal(rille_runtime *runtime, const char *run_id, const char *name,
                                    const char *payload_json,
                                    rille_done_function done, void *payload);

/* ---- leases: the rented machines of runs */

/* The leases as a JSON array of objects. all: 1 includes released leases. owned: rille_free. */
RILLE_API rille_error *rille_leases(rille_runtime *runtime, int all, char **json);
/* Releases the lease, or all leases of the run, with this id; NULL: all leases of this home. A kept volume is deleted
   by its own id only. Calls done (may be NULL) when the providers confirm that the machines are gone, or with the
   first error. Error invalid: the id is unknown. */
RILLE_API rille_error *rille_release(rille_runtime *runtime, const char *lease_or_run_id, rille_done_function done,
                                     void *payload);

/* ---- host functions: modules that scripts get by require "NAME" */

typedef enum rille_effect {
  RILLE_PURE,     /* result depends on the arguments only, no effect: called again on resume */
  RILLE_STEP,     /* any effect; result or error is journaled. Resume reuses it, or fails if arguments differ */
  RILLE_VOLATILE  /* any effect; never journaled; workflow code may call it only inside rille.step */
} rille_effect;

/* Must call one of rille_call_return_*, rille_call_fail or rille_call_suspend before it returns.
   Otherwise the result is nil. */
typedef void (*rille_function)(rille_call *call, void *payload);

typedef struct rille_function_spec {
  size_t struct_size;
  const char *name;
  rille_effect effect;
  rille_function function;
  void *payload;
} rille_function_spec;

/* Registers a module for runs prepared later. Names must be Lua names; payloads must live as long as the runtime.
   Errors: state (already registered), invalid (not a Lua name, or the name of one of Rille's modules). */
RILLE_API rille_error *rille_register_module(rille_runtime *runtime, const char *name,
                                             const rille_function_spec *functions,
                                             size_t count);

/* A rille_call, and texts borrowed from it, are valid until the function returns. Arguments count from 0. */
RILLE_API const char *rille_call_name(const rille_call *call);   /* such as "app.greet" */
RILLE_API const char *rille_call_run_id(const rille_call *call);
RILLE_API size_t rille_call_count(const rille_call *call);
/* The argument as JSON; "null" for nil and for a missing argument. length may be NULL. */
RILLE_API const char *rille_call_json(rille_call *call, size_t index, size_t *length);
/* Typed getters. Error invalid, naming function and argument: the argument is missing or of another type. */
RILLE_API rille_error *rille_call_number(const rille_call *call, size_t index, double *value);
RILLE_API rille_error *rille_call_integer(const rille_call *call, size_t index, int64_t *value); /* at most 2^53 */
RILLE_API rille_error *rille_call_bool(const rille_call *call, size_t index, int *value);
/* The argument must be a string; it may contain any bytes. */
RILLE_API rille_error *rille_call_text(const rille_call *call, size_t index, const char **text, size_t *length);

/* If json is not valid JSON, the call fails with `invalid`. */
RILLE_API void rille_call_return_json(rille_call *call, const char *json, size_t length);
RILLE_API void rille_call_return_number(rille_call *call, double value);
RILLE_API void rille_call_return_bool(rille_call *call, int value);
RILLE_API void rille_call_return_text(rille_call *call, const char *text, size_t length); /* text: any bytes */
RILLE_API void rille_call_fail(rille_call *call, rille_error *error); /* error: transferred; the script raises it */

/* Lets the calling fiber wait; other fibers continue. The completion is owned: resolving or rejecting frees it. It may
   outlive the call, the run and the runtime; then it has no effect. NULL: the call has a result, or the script cannot
   wait here, or no memory; the script gets the error. */
RILLE_API rille_completion *rille_call_suspend(rille_call *call);
/* [T] Both functions end the fiber's wait and free the completion. json: NULL means nil. */
RILLE_API void rille_completion_resolve(rille_completion *completion, const char *json, size_t length);
RILLE_API void rille_completion_reject(rille_completion *completion, rille_error *error); /* error: transferred */
/* [T] 1 if nothing waits for the result (a RILLE_STEP was cancelled, the runtime destroyed): reject it with NULL. */
RILLE_API int rille_completion_abandoned(const rille_completion *completion);

/* ---- values: what host functions and scripts pass, without JSON

   A rille_value describes data and owns none. What it points to (bytes, tables) is borrowed, both ways:
   - Rille copies what it is given before the call returns.
   - What it gives is valid: as argument of a host function until that returns; as result of rille_script_call until
     the next rille_script_call of the same script, at the same depth of calls; in a rille_values_function until that
     returns.
   Buffers, tensors and functions are numbers, each given out once: a number that is no longer valid is refused with
   `state`. One that was received is borrowed like bytes; hold it to keep it, and drop it in the end.
   Refused with `invalid`, naming the place (argument 1 of app.add.x[2]): tables within themselves, more than 100
   levels of tables, more than 10 million values, keys that are neither 1, 2 .. nor strings, integers beyond 2^53, and
   coroutines and objects other than tensors and buffers.
   rille.null in a table is nil, as is an item that a list leaves out. */

typedef uint64_t rille_handle;          /* a buffer or a tensor; 0: none */
typedef uint64_t rille_script_function; /* a function of a script; 0: none */

typedef enum rille_value_kind
#ifdef __cplusplus
    : unsigned /* as in C, so that a wrong kind can be refused */
#endif
{
  RILLE_VALUE_NIL, RILLE_VALUE_BOOL,
  RILLE_VALUE_NUMBER,  /* the kind of all numbers that a script passes */
  RILLE_VALUE_INTEGER, /* only given, never received: becomes a number of the script */
  RILLE_VALUE_BYTES,   /* a Lua string: any bytes. Received ones end in a zero, which size does not count */
  RILLE_VALUE_TABLE, RILLE_VALUE_HANDLE, RILLE_VALUE_FUNCTION
} rille_value_kind;

typedef struct rille_value rille_value;
typedef struct rille_field rille_field;
typedef struct rille_table {
  const rille_value *items; /* t[1] .. t[item_count]; may be NULL if there are none */
  size_t item_count;
  const rille_field *fields; /* t.name, in any order; may be NULL if there are none */
  size_t field_count;
} rille_table;

struct rille_value {
  rille_value_kind kind;
  union {
    int boolean;
    double number;
    int64_t integer;
    struct { const char *data; size_t size; } bytes;
    const rille_table *table;
    rille_handle handle;
    rille_script_function function;
  } as;
};

struct rille_field {
  const char *name; /* any bytes; received ones end in a zero, which name_size does not count */
  size_t name_size;
  rille_value value;
};

/* The argument of a host function; nil for a missing one. A RILLE_STEP of a journaled run has no handles and
   functions. */
RILLE_API rille_error *rille_call_value(rille_call *call, size_t index, rille_value *value);
/* As rille_call_return_json. value: NULL means nil. What a RILLE_STEP returns to a journaled run is journaled: no
   handle and no function. If the value is refused, the call fails with that error. */
RILLE_API void rille_call_return_value(rille_call *call, const rille_value *value);
/* [T] As rille_completion_resolve. Handles in the value are held until the script has them; functions must stay valid
   until then. */
RILLE_API void rille_completion_resolve_value(rille_completion *completion, const rille_value *value);

/* ---- memory that the host program and scripts share */

/* Called once when neither the host program nor a script uses the memory any more: on the runtime's thread, inside
   rille_turn, rille_run_wait, rille_shutdown, rille_script_call, rille_script_free or rille_destroy and not inside
   another callback; after rille_destroy, by the thread of the last use. */
typedef void (*rille_release_function)(void *data, void *payload);

/* [T] Both give memory of the host program to scripts without a copy. The handle is owned: rille_handle_drop. The
   memory must stay valid until release (may be NULL), and scripts may write to it: by a tensor's operations in
   place, which are seen in it once rille_handle_view, or the script, has read the tensor. On an error release is not
   called. A script sees a buffer as a Buffer (docs/reference), a tensor as a Tensor of the CPU, row-major. dtype:
   such as "f32" or "i64". Errors invalid: data is NULL, an unknown dtype, a size below 0, more than 8 dimensions. */
RILLE_API rille_error *rille_buffer_wrap(rille_runtime *runtime, void *data, size_t size,
                                         rille_release_function release, void *payload, rille_handle *handle);
RILLE_API rille_error *rille_tensor_wrap(rille_runtime *runtime, void *data, const char *dtype, const int64_t *shape,
                                         size_t rank, rille_release_function release, void *payload,
                                         rille_handle *handle);

typedef struct rille_view {
  size_t struct_size;
  void *data;        /* valid until the handle is dropped or the runtime destroyed */
  size_t size;       /* in bytes */
  const char *dtype; /* of a tensor, such as "f32"; NULL: a buffer. Valid for ever */
  size_t rank;
  int64_t shape[8];
} rille_view;

/* The memory itself, without a copy, row-major; a copy only of a tensor on a GPU or not row-major (transposed,
   narrowed). Of a tensor it blocks until the values are computed, and gives the error of computing them. Set
   view->struct_size to sizeof(rille_view). */
RILLE_API rille_error *rille_handle_view(rille_runtime *runtime, rille_handle handle, rille_view *view);
/* [T] Each hold needs one more drop. Error state: the handle is no longer valid. */
RILLE_API rille_error *rille_handle_hold(rille_runtime *runtime, rille_handle handle);
RILLE_API void rille_handle_drop(rille_runtime *runtime, rille_handle handle); /* [T] no effect if it is not valid */

/* ---- scripts that stay loaded: the host program calls their functions

   A script keeps its globals, modules and upvalues between calls; nothing is journaled, and steps simply run. It
   cannot rent machines nor start child runs: runs do. Its rules are options->rules. memory_bytes holds for all of
   the script; each call has the other limits for itself, together with the fibers that it spawns. A call that
   exceeds a limit fails, and the script stays usable. */

typedef struct rille_script rille_script;

/* Compiles the text and runs it once; the text must not wait. options: as for a run; args_json is rille.args.
   Errors: invalid (syntax), or the error that the script raises. The script is owned: rille_script_free. */
RILLE_API rille_error *rille_script_load(rille_runtime *runtime, const char *name, const char *source, size_t length,
                                         const rille_run_options *options, rille_script **script);
RILLE_API rille_error *rille_script_load_file(rille_runtime *runtime, const char *path,
                                              const rille_run_options *options, rille_script **script);
/* A function by name: of the table that the script returned, else a global. "a.b" is the field b of the table a; "" is
   what the script returned. Error invalid: there is none. The function is owned: rille_script_function_drop. */
RILLE_API rille_error *rille_script_find(rille_script *script, const char *name, rille_script_function *function);
/* Calls a function and waits for its end, without turning the loop: what would have to wait (rille.sleep, scopes,
   fibers, suspended host functions) fails with `state`. Stores result_count results: as many as the function
   returns, then nil. Also for functions that a host function received: those of an open run while the run is active,
   those of a journaled run only inside the host function that received them. An error has the traceback of the
   script. May be called in callbacks. */
RILLE_API rille_error *rille_script_call(rille_runtime *runtime, rille_script_function function,
                                         const rille_value *arguments, size_t argument_count, rille_value *results,
                                         size_t result_count);

/* error: borrowed; NULL on success. values: what the function returned. */
typedef void (*rille_values_function)(const rille_error *error, const rille_value *values, size_t count, void *payload);

/* Calls a function of a loaded script in a fiber of its own, which may wait; it begins in a later turn of the loop.
   done (may be NULL) is called once in the turn in which it has ended, unless the runtime is destroyed before. call,
   for rille_script_cancel, may be NULL. Error state: more than 10,000 calls are active. */
RILLE_API rille_error *rille_script_begin(rille_runtime *runtime, rille_script_function function,
                                          const rille_value *arguments, size_t argument_count,
                                          rille_values_function done, void *payload, uint64_t *call);
/* Raises `cancelled` in a call that rille_script_begin began. No effect on an ended call. reason may be NULL. */
RILLE_API rille_error *rille_script_cancel(rille_script *script, uint64_t call, const char *reason);
/* Each hold needs one more drop. Error state: the function is no longer valid. */
RILLE_API rille_error *rille_script_function_hold(rille_runtime *runtime, rille_script_function function);
/* [T] On a foreign thread in the next turn. */
RILLE_API void rille_script_function_drop(rille_runtime *runtime, rille_script_function function);
/* Current size of the script's Lua heap. */
RILLE_API int64_t rille_script_memory_bytes(const rille_script *script);
/* [T] Frees the script, on a foreign thread in the next turn; its functions are no longer valid. Active calls are
   cancelled: they clean up in later turns, and their done is called with `cancelled`. Inside a call of this script it
   takes effect when the call has returned. */
RILLE_API void rille_script_free(rille_script *script);

#ifdef __cplusplus
}
#endif

#endif
