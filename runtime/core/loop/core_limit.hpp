// No core dump of a process with keys in its memory: a core is a file, or is handed to a program that keeps it, and
// whoever reads it has the keys. Programs that are started (spawn.hpp) get the limit back that was there before.
#pragma once

namespace rille {

void keep_no_core();        // of this process, from now on; for main programs, before they start threads
void restore_core_limit();  // in a child, between vfork and exec: system calls only

}  // namespace rille
