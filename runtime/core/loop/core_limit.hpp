// Disables core dumps of a process with keys in its memory: a core file, or a program that collects cores, would expose
// the keys. Programs that we start (spawn.hpp) get the original limit back.
#pragma once

namespace rille {

void keep_no_core();        // this process, from now on; main programs call it before they start threads
void restore_core_limit();  // in a child, between vfork and exec: makes system calls only

}  // namespace rille
