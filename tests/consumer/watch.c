/* seccomp traps the calls of all threads; the handler looks where the paths lead, and asks again in a way that is not
   trapped. What it finds is added to `readable` only if no script can choose it. */
#define _GNU_SOURCE
#include "watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <rille.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

static char home[PATH_MAX], scripts[PATH_MAX], rille[PATH_MAX] /* its folder */, own[64] /* /proc/PID/ */;

/* What libraries read for the host. An end of * is any rest; PROC is /proc/self. */
#define PROC "\1"
static const char* const readable[] = {
    "/dev",      /* its names: is there a GPU? */
    "/dev/null", /* the rest of the list: processors, memory and limits of this machine, time zones, OpenSSL */
    "/dev/urandom",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/*",
    "/sys/fs/cgroup/*",
    "/usr/share/zoneinfo/*",
    PROC "cgroup",
    PROC "maps",
    PROC "status",
};
/* Folders of libraries, with those of GPUs, which are looked for in all of them. */
static const char* const library_folders[] = {
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local", "/run/opengl-driver", rille};

/* ---- names */

enum { asked_again = 0x72696c6c }; /* as the sixth argument, which none of these calls has */

static long again(long number, long a, long b, long c, long d, long e) {
  return syscall(number, a, b, c, d, e, (long)asked_again);
}

/* The name of a file with no link in it; 0 if the file is not there. */
static int real_name(int folder, const char* path, int flags, char* out) {
  char entry[64];
  const long fd = again(SYS_openat, folder, (long)path, O_PATH | O_CLOEXEC | flags, 0, 0);
  if (fd < 0) return 0;
  snprintf(entry, sizeof entry, "/proc/self/fd/%ld", fd);
  const long length = again(SYS_readlinkat, AT_FDCWD, (long)entry, (long)out, PATH_MAX - 1, 0);
  close((int)fd);
  out[length > 0 ? length : 0] = 0;
  return length > 0;
}

/* The name that a file has or would have in its folder, whether or not it is there. */
static void name_in_folder(int folder, const char* path, char* out) {
  char parent[PATH_MAX];
  const char* last = strrchr(path, '/');
  snprintf(parent, sizeof parent, "%.*s", last ? (int)(last - path + 1) : 2, last ? path : "./");
  if (!real_name(folder, parent, O_DIRECTORY, out)) snprintf(out, PATH_MAX, "%s", parent); /* no folder: no file */
  const size_t length = strlen(out);
  snprintf(out + length, PATH_MAX - length, "/%s", last ? last + 1 : path);
}

static int is_link(int folder, const char* path) {
  char target[2];
  return again(SYS_readlinkat, folder, (long)path, (long)target, sizeof target, 0) > 0;
}

static int beneath(const char* name, const char* folder) {
  const size_t length = strlen(folder), end = strlen(name);
  if (strncmp(name, folder, length) != 0 || (name[length] != '/' && name[length] != 0)) return 0;
  return !strstr(name, "/../") && (end < 3 || strcmp(name + end - 3, "/..") != 0);
}

static int is_library(const char* name) {
  if (!strstr(name, ".so")) return 0;
  for (size_t i = 0; i < sizeof library_folders / sizeof *library_folders; ++i)
    if (beneath(name, library_folders[i])) return 1;
  return 0;
}

static int may_read(const char* name) {
  if (beneath(name, home) || beneath(name, scripts) || is_library(name)) return 1;
  const size_t in_own = strlen(own);
  for (size_t i = 0; i < sizeof readable / sizeof *readable; ++i) {
    const char *wanted = readable[i], *rest = name;
    if (*wanted == *PROC) {
      if (strncmp(name, own, in_own) != 0) continue;
      ++wanted, rest += in_own;
    }
    const size_t length = strcspn(wanted, "*");
    if (strncmp(rest, wanted, length) == 0 && (wanted[length] == '*' || rest[length] == 0)) return 1;
  }
  return 0;
}

static int may_write(const char* name) { return beneath(name, home) || strcmp(name, "/dev/null") == 0; }

/* ---- calls */

enum how { reads, writes, opens, opens_how /* openat2 */, links /* the last part of the path is not followed */ };
#define NO_FOLDER (-1)

static const struct call {
  int number, folder, path; /* which arguments */
  enum how how;
  const char* name;
} calls[] = {
    {SYS_open, NO_FOLDER, 0, opens, "open"},
    {SYS_openat, 0, 1, opens, "openat"},
    {SYS_openat2, 0, 1, opens_how, "openat2"},
    {SYS_creat, NO_FOLDER, 0, writes, "creat"},
    {SYS_truncate, NO_FOLDER, 0, writes, "truncate"},
    {SYS_unlink, NO_FOLDER, 0, links, "unlink"},
    {SYS_unlinkat, 0, 1, links, "unlinkat"},
    {SYS_rmdir, NO_FOLDER, 0, links, "rmdir"},
    {SYS_mkdir, NO_FOLDER, 0, links, "mkdir"},
    {SYS_mkdirat, 0, 1, links, "mkdirat"},
    {SYS_mknod, NO_FOLDER, 0, links, "mknod"},
    {SYS_mknodat, 0, 1, links, "mknodat"},
    {SYS_rename, NO_FOLDER, 0, links, "rename"},
    {SYS_rename, NO_FOLDER, 1, links, "rename"},
    {SYS_renameat, 0, 1, links, "renameat"},
    {SYS_renameat, 2, 3, links, "renameat"},
    {SYS_renameat2, 0, 1, links, "renameat2"},
    {SYS_renameat2, 2, 3, links, "renameat2"},
    {SYS_link, NO_FOLDER, 0, links, "link"},
    {SYS_link, NO_FOLDER, 1, links, "link"},
    {SYS_linkat, 0, 1, links, "linkat"},
    {SYS_linkat, 2, 3, links, "linkat"},
    {SYS_symlink, NO_FOLDER, 1, links, "symlink"},
    {SYS_symlinkat, 1, 2, links, "symlinkat"},
    {SYS_chmod, NO_FOLDER, 0, writes, "chmod"},
    {SYS_fchmodat, 0, 1, writes, "fchmodat"},
    {SYS_chown, NO_FOLDER, 0, writes, "chown"},
    {SYS_lchown, NO_FOLDER, 0, links, "lchown"},
    {SYS_fchownat, 0, 1, writes, "fchownat"},
    {SYS_utime, NO_FOLDER, 0, writes, "utime"},
    {SYS_utimes, NO_FOLDER, 0, writes, "utimes"},
    {SYS_utimensat, 0, 1, writes, "utimensat"},
    {SYS_setxattr, NO_FOLDER, 0, writes, "setxattr"},
    {SYS_lsetxattr, NO_FOLDER, 0, links, "lsetxattr"},
    {SYS_removexattr, NO_FOLDER, 0, writes, "removexattr"},
    {SYS_lremovexattr, NO_FOLDER, 0, links, "lremovexattr"},
    {SYS_getxattr, NO_FOLDER, 0, reads, "getxattr"},
    {SYS_chdir, NO_FOLDER, 0, reads, "chdir"},
    {SYS_inotify_add_watch, NO_FOLDER, 1, reads, "inotify_add_watch"},
};

/* What no script gets done, with any argument. */
static const struct {
  int number;
  const char* name;
} never[] = {
    {SYS_execve, "execve"},
    {SYS_execveat, "execveat"},
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
    {SYS_clone, "clone"},
    {SYS_socket, "socket"},
    {SYS_connect, "connect"},
    {SYS_bind, "bind"},
    {SYS_ptrace, "ptrace"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
    {SYS_kill, "kill"},
    {SYS_io_uring_setup, "io_uring_setup"},
    {SYS_open_by_handle_at, "open_by_handle_at"},
    {SYS_mount, "mount"},
    {SYS_chroot, "chroot"},
    {SYS_pivot_root, "pivot_root"},
};

static int forbidden(const struct call* call, const long* arguments, char* name) {
  const int folder = call->folder == NO_FOLDER ? AT_FDCWD : (int)arguments[call->folder];
  const char* path = (const char*)arguments[call->path];
  if (!path || !*path) return 0; /* of an open file */
  long flags = 0;
  if (call->how == opens) flags = arguments[call->path + 1];
  if (call->how == opens_how) flags = (long)*(const unsigned long long*)arguments[call->path + 1];
  const int creates = (flags & O_CREAT) != 0;
  const int changes = call->how == writes || call->how == links || (flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != 0;
  if (call->how == links || !real_name(folder, path, (int)(flags & O_NOFOLLOW), name)) {
    name_in_folder(folder, path, name);
    if (creates && is_link(folder, path)) return 1; /* it would be made where the link leads */
  }
  return changes ? !may_write(name) : !may_read(name);
}

static atomic_int noted; /* 0: nothing, 1: being written, 2: there */
static char note[watch_text_max];

static void remember(const char* call, const char* name) {
  int none = 0;
  if (!atomic_compare_exchange_strong(&noted, &none, 1)) return;
  snprintf(note, sizeof note, "%s %s", call, name);
  atomic_store(&noted, 2);
}

static const char* name_of(int number) {
  for (size_t i = 0; i < sizeof never / sizeof *never; ++i)
    if (never[i].number == number) return never[i].name;
  return "a system call";
}

static void caught(int signal, siginfo_t* info, void* context) {
  (void)signal;
  const int before = errno, number = info->si_syscall;
  greg_t* r = ((ucontext_t*)context)->uc_mcontext.gregs;
  const long arguments[] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8]};
  char name[PATH_MAX] = "";
  int known = 0, refused = 0;
  for (size_t i = 0; i < sizeof calls / sizeof *calls && !refused; ++i) {
    if (calls[i].number != number) continue;
    known = 1;
    refused = forbidden(&calls[i], arguments, name);
    if (refused) remember(calls[i].name, name);
  }
  if (!known) remember(name_of(number), "");
  if (known && !refused) {
    const long got = again(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
    r[REG_RAX] = got < 0 ? -errno : got;
  } else {
    r[REG_RAX] = -EPERM;
  }
  errno = before;
}

/* ---- the filter */

static struct sock_filter filter[1000];
static unsigned short filled;

static void add(struct sock_filter one) {
  CHECK(filled < sizeof filter / sizeof *filter);
  filter[filled++] = one;
}

#define ADD(...) add((struct sock_filter)__VA_ARGS__)
#define LOAD(field) ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field)))
#define UNLESS(test, value, skip) ADD(BPF_JUMP(BPF_JMP | (test) | BPF_K, (unsigned)(value), 0, skip))
#define END(action) ADD(BPF_STMT(BPF_RET | BPF_K, action))

/* Ends with `action` where the low half of an argument passes the test, else traps. */
static void add_when(int number, unsigned argument_offset, unsigned short test, unsigned value) {
  UNLESS(BPF_JEQ, number, 4);
  ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument_offset));
  UNLESS(test, value, 1);
  END(SECCOMP_RET_ALLOW);
  END(SECCOMP_RET_TRAP);
}

static void fill_filter(void) {
  LOAD(arch);
  UNLESS(BPF_JEQ, AUDIT_ARCH_X86_64, 2);
  LOAD(nr);
  UNLESS(BPF_JGE, 0x40000000 /* x32 */, 1);
  END(SECCOMP_RET_KILL_PROCESS);
  UNLESS(BPF_JEQ, SYS_clone3, 1);
  END(SECCOMP_RET_ERRNO | ENOSYS); /* the C library then uses clone, whose flags can be seen */
  add_when(SYS_clone, offsetof(struct seccomp_data, args[0]), BPF_JSET, CLONE_THREAD);
  add_when(SYS_socket, offsetof(struct seccomp_data, args[0]), BPF_JEQ, AF_UNIX);
  for (size_t i = 0; i < sizeof never / sizeof *never; ++i) {
    UNLESS(BPF_JEQ, never[i].number, 1);
    END(SECCOMP_RET_TRAP);
  }
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i)
    add_when(calls[i].number, offsetof(struct seccomp_data, args[5]), BPF_JEQ, asked_again);
  END(SECCOMP_RET_ALLOW);
}

void watch_begin(const char* home_folder, const char* scripts_folder) {
  Dl_info library;
  CHECK(dladdr((void*)rille_create, &library) && realpath(library.dli_fname, rille));
  *strrchr(rille, '/') = 0;
  CHECK(realpath(home_folder, home) && realpath(scripts_folder, scripts));
  snprintf(own, sizeof own, "/proc/%d/", (int)getpid());
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = caught;
  action.sa_flags = SA_SIGINFO;
  sigfillset(&action.sa_mask);
  CHECK(sigaction(SIGSYS, &action, NULL) == 0);
  fill_filter();
  struct sock_fprog program = {filled, filter};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

void watch_end(char text[watch_text_max]) {
  while (atomic_load(&noted) == 1) sched_yield();
  snprintf(text, watch_text_max, "%s", note);
}
