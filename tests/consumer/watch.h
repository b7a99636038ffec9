/* Watches the system calls of a process, for hostile_files.c. Refused are new processes, connections, and files outside
   of a home, except files that any program reads. A refused call fails with EPERM; the first is kept. x86-64 Linux. */
#pragma once

enum { watch_text_max = 400 };

/* Watches all threads of the process from now on. What is below `home` may be read and written, what is below `scripts`
   read, and the libraries in the folder of Rille's own. Whether a file is there may be asked (stat): the host itself
   does, to see where a path leads before it refuses it. */
void watch_begin(const char* home, const char* scripts);

/* Writes what was forbidden first ("openat /etc/passwd"), or "". */
void watch_end(char text[watch_text_max]);
