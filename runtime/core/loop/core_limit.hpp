// Disables core dumps of a process with keys in its memory: a core file, or a program that collects cores, would expose
// the keys. Programs started with spawn.hpp get the original limit back.
#pragma once

namespace rille {

void keep_no_core();        // for this process; call in main() before starting threads
void restore_core_limit();  // call in a child between vfork and exec; makes system calls only

}  // namespace rille
