/* Watches what a process asks of the system, for hostile_files.c: no process, no connection, no file but those of a
   home and what any program needs. A forbidden call fails with EPERM, and the first is remembered. x86-64 Linux. */
#pragma once

enum { watch_text_max = 400 };

/* Watches all threads of the process from now on. What is below `home` may be read and written, what is below `scripts`
   read, and the libraries in the folder of Rille's own. Whether a file is there may be asked (stat): the host itself
   does, to see where a path leads before it refuses it. */
void watch_begin(const char* home, const char* scripts);

/* Writes what was forbidden first ("openat /etc/passwd"), or "". */
void watch_end(char text[watch_text_max]);
