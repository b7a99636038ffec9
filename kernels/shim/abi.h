// The interface between Rille and a kernel compiled for the CPU. Both sides include it: Rille's own build, and the shim
// in front of a user's source (docs/design/kernels.md). Only plain data and function pointers, and no include. Every
// change must raise `version`, which is part of the key of the kernel cache.
//
// A Worker is one OS thread that runs blocks, one at a time. The kernel's side reads the first fields and calls the
// functions. They are called on the stack of the CUDA thread `thread` (index in the block, x fastest) and may run other
// threads of the block before they return, or never return (an error ends the block).
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
  unsigned pointer;      // 0: the parameter is passed by value
  unsigned element;      // type of the value or of what is pointed to; `other`: a type that only the kernel knows
  unsigned lanes;        // 1, or 2 to 4 for vectors such as float4
  unsigned constant;     // not 0: a pointer to const
  unsigned size;         // bytes of the value or of one element pointed to; 0: void
};

enum WarpKind : unsigned {
  warp_sync, exchange, ballot, add_u32, min_u32, max_u32, min_i32, max_i32, and_u32, or_u32, xor_u32, match, active
};

struct Worker {
  // A thread that has waited before waits at a barrier without a call (core.h) while `at` is below `limit`: it stores
  // its stack pointer in arrivals[at], continues the thread ready[at], and increments `at`. `barrier` is called for the
  // first wait of a thread, for the last wait of a block, and if no other thread can run.
  unsigned at, limit, count, result;
  void** ready;
  void** arrivals;
  void* own;                               // the module's data about the running thread (core.h)
  unsigned grid[3], block[3];
  unsigned block_at;                       // index of the running block in the grid, x fastest
  unsigned shared_bytes;                   // dynamic shared memory
  void* shared;
  // Waits for every thread of the block; returns how many had `predicate` != 0.
  unsigned (*barrier)(Worker*, unsigned thread, unsigned predicate, const void* site);
  // Waits for the lanes of `mask`. exchange returns the value of lane `from`; ballot, match and active return a mask.
  u64 (*warp)(Worker*, unsigned thread, WarpKind, unsigned mask, u64 value, unsigned from, const void* site);
  void (*grid_barrier)(Worker*, unsigned thread, const void* site);
  void (*say)(Worker*, const char* text, unsigned bytes);        // output of printf
  // Called in checked mode only.
  void (*access)(Worker*, unsigned thread, const void* at, unsigned bytes, unsigned kind, const void* site);
  void (*bad_index)(Worker*, unsigned thread, const char* type, u64 index, const char* file, unsigned line);
  void (*failed)(Worker*, unsigned thread, const char* text, const char* file, unsigned line);   // assert or trap
};
enum AccessKind : unsigned { access_read, access_write, access_atomic };

// Runs blocks [first, last) in a plain loop; block `first` begins at thread `thread`. Returns all_done if it ran to the
// end. Otherwise it returns a thread that has waited in between and has finished; other loops run the threads after it.
typedef unsigned (*Run)(Worker*, void** arguments, unsigned first, unsigned last, unsigned thread);

struct Symbol {                            // a __constant__ variable, named when the kernel was created
  const char* name;
  void* at;
  unsigned bytes;
  unsigned element;
};

// The only symbol that a compiled kernel exports, as "rille_kernel".
struct Kernel {
  unsigned version;
  unsigned parameters;
  const Parameter* parameter;
  Run run;
  const Symbol* symbol;
  unsigned symbols;
  void* (*locals)(Worker*);                // an address in the thread-local memory of the module
};

}  // namespace rille_abi
