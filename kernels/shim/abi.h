// What Rille and a kernel that was compiled for the CPU say to each other. Included by both sides: by Rille's own
// build, and by the shim in front of a user's source (see docs/design/kernels.md). Plain data and function pointers
// only; no include. Whoever changes anything here raises `version`: it is part of the cache's key.
//
// A Worker stands for one OS thread that runs blocks, one block at a time. The kernel's side reads its first fields and
// calls its functions; they are called on the stack of the CUDA thread `thread` (its place in the block, x fastest) and
// may run other threads of the block before they return, or never return (an error ends the block).
#pragma once

namespace rille_abi {

constexpr unsigned version = 2;
constexpr unsigned all_done = 0xffffffffu;
constexpr unsigned threads_max = 1024;
constexpr unsigned parameters_max = 64;

typedef unsigned long long u64;

enum Element : unsigned {
  other, boolean, i8, u8, i16, u16, i32, u32, i64, u64_, f16, bf16, f32, f64, nothing
};

struct Parameter {
  unsigned pointer;      // 0: by value
  unsigned element;      // of the value, or of what is pointed to; `other`: a type that only the kernel knows
  unsigned lanes;        // 1, or 2 to 4 for float4 and its kin
  unsigned constant;     // a pointer to const
  unsigned size;         // bytes of the value, or of one element pointed to; 0 for void
};

enum WarpKind : unsigned {
  warp_sync, exchange, ballot, add_u32, min_u32, max_u32, min_i32, max_i32, and_u32, or_u32, xor_u32, match, active
};

struct Worker {
  // A thread that has waited before waits at the barrier without a call (core.h) while `at` is below `limit`: it notes
  // its stack pointer in arrivals[at], goes on with ready[at] and counts `at` up. The first wait of a thread, the last
  // one of all and one with nobody to go on with call `barrier`.
  unsigned at, limit, count, result;
  void** ready;
  void** arrivals;
  void* own;                               // the module's notes about the thread that runs (core.h)
  unsigned grid[3], block[3];
  unsigned block_at;                       // of the block that runs, x fastest
  unsigned shared_bytes;                   // dynamic
  void* shared;
  // Every thread of the block; tells how many had `predicate` != 0.
  unsigned (*barrier)(Worker*, unsigned thread, unsigned predicate, const void* site);
  // The lanes of `mask`. exchange gives the value of lane `from`; ballot, match and active a mask.
  u64 (*warp)(Worker*, unsigned thread, WarpKind, unsigned mask, u64 value, unsigned from, const void* site);
  void (*grid_barrier)(Worker*, unsigned thread, const void* site);
  void (*say)(Worker*, const char* text, unsigned bytes);        // printf
  // Checked mode only.
  void (*access)(Worker*, unsigned thread, const void* at, unsigned bytes, unsigned kind, const void* site);
  void (*bad_index)(Worker*, unsigned thread, const char* type, u64 index, const char* file, unsigned line);
  void (*failed)(Worker*, unsigned thread, const char* text, const char* file, unsigned line);   // assert, trap
};
enum AccessKind : unsigned { access_read, access_write, access_atomic };

// Runs blocks [first, last), the first one from thread `thread` on, as a plain loop. all_done: it ran through. Else the
// thread that it returns has waited in between, is finished now, and the ones after it are somebody else's.
typedef unsigned (*Run)(Worker*, void** arguments, unsigned first, unsigned last, unsigned thread);

struct Symbol {                            // a __constant__ that was named when the kernel was made
  const char* name;
  void* at;
  unsigned bytes;
  unsigned element;
};

// The one thing that a compiled kernel exports, as "rille_kernel".
struct Kernel {
  unsigned version;
  unsigned parameters;
  const Parameter* parameter;
  Run run;
  const Symbol* symbol;
  unsigned symbols;
  void* (*locals)(Worker*);                // an address in this OS thread's memory of the module, its shared memory
};

}  // namespace rille_abi
