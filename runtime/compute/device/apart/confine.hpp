// Confines this process before it runs code of a script: limits of the system, Landlock for files, seccomp for system
// calls. Rights that are dropped are never regained, and the limits also apply to every child process. Needs Linux 5.13
// or newer with Landlock; on others an error of kind device is returned, and the process must not go on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::device::apart {

struct Confinement {
  // paths of folders and files; read: may be read and executed; write: may also be written
  std::vector<std::string> read, write;
  std::int64_t memory_bytes = 0;   // private memory of a process; 0: no limit
  std::int64_t address_bytes = 0;  // its address space; 0: no limit
  std::int64_t file_bytes = 0;     // size of each file that it writes
  int processor_s = 0;             // processor time of a process; 0: no limit
};

Result<> confine(const Confinement& what);

// Keeps only the system calls that computing, threads and an open socket need. New files can still be opened for
// reading where confine() allows it.
Result<> drop_system_calls();

// For a program that needs files and child processes: denies the network, access to other processes, and changes of the
// whole system.
Result<> drop_calls_beyond_files();

}  // namespace rille::device::apart
