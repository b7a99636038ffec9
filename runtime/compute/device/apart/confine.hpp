// Confines this process before it runs code of a script: limits of the system, Landlock for files, seccomp for system
// calls. What is given up is never got back, and holds for all that the process starts. Linux 5.13 or newer with
// Landlock; without, an error of kind device and the process must not go on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::device::apart {

struct Confinement {
  std::vector<std::string> read, write;  // folders and files that may be read and executed, or also written
  std::int64_t memory_bytes = 0;         // private memory of a process; 0: no limit
  std::int64_t address_bytes = 0;        // its address space; 0: no limit
  std::int64_t file_bytes = 0;           // size of a file that it writes
  int processor_s = 0;                   // processor time of a process; 0: no limit
};

Result<> confine(const Confinement& what);

// Leaves the system calls that computing, threads and an open socket need. Reading new files stays possible as far as
// confine() allows it.
Result<> drop_system_calls();

// For a program that needs files and processes of its own: denies the network, other processes, and what changes the
// system for others.
Result<> drop_calls_beyond_files();

}  // namespace rille::device::apart
