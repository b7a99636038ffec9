/* Preloaded into a runner: kills it at its N-th boundary. A boundary is the end of a commit to the journal (its log is
 * on the disk), a request that has left for the provider, or a piece of an answer that has arrived: between two of
 * these nothing happens that another process could see, or that outlasts this one.
 * BOUNDARY_PORT: the provider's; BOUNDARY_KILL: N, 0 for never; BOUNDARY_LOG: a file that gets a letter for each, in
 * order (c, s, r); BOUNDARY_ONLY: one of these letters: the others are not counted. With BOUNDARY_COMMANDS, where the
 * provider is reached by commands, as ssh and sbatch: one that has been started (x), and one whose end was seen (e).
 * What the runner starts is left alone. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int port, log_fd = -1, commands;
static long kill_at;
static char only;
static atomic_long count;

__attribute__((constructor)) static void begin(void) {
  const char* text = getenv("BOUNDARY_PORT");
  port = text ? atoi(text) : 0;
  commands = getenv("BOUNDARY_COMMANDS") != NULL;
  text = getenv("BOUNDARY_KILL");
  kill_at = text ? atol(text) : 0;
  text = getenv("BOUNDARY_ONLY");
  only = text ? text[0] : '\0';
  text = getenv("BOUNDARY_LOG");
  if (text) log_fd = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  unsetenv("LD_PRELOAD");
}

static void boundary(char what) {
  const int saved = errno;
  const long n = only && only != what ? 0 : atomic_fetch_add(&count, 1) + 1;
  if (log_fd >= 0 && write(log_fd, &what, 1) != 1) abort();
  if (n > 0 && n == kill_at) kill(getpid(), SIGKILL);
  errno = saved;
}

static int is_provider(int fd) {
  struct sockaddr_in to;
  socklen_t size = sizeof to;
  if (port == 0 || getpeername(fd, (struct sockaddr*)&to, &size) != 0) return 0;
  return to.sin_family == AF_INET && ntohs(to.sin_port) == port;
}

static int is_journal(int fd) {
  char name[64], path[4096];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(name, path, sizeof path - 1);
  if (n <= 0) return 0;
  path[n] = '\0';
  return strstr(path, "journal.db-wal") != NULL;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fdatasync(int fd) {
  const int r = REAL(fdatasync)(fd);
  if (r == 0 && is_journal(fd)) boundary('c');
  return r;
}

int fsync(int fd) {
  const int r = REAL(fsync)(fd);
  if (r == 0 && is_journal(fd)) boundary('c');
  return r;
}

ssize_t send(int fd, const void* data, size_t size, int flags) {
  const ssize_t n = REAL(send)(fd, data, size, flags);
  if (n > 0 && is_provider(fd)) boundary('s');
  return n;
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  const ssize_t n = REAL(sendmsg)(fd, message, flags);
  if (n > 0 && is_provider(fd)) boundary('s');
  return n;
}

ssize_t recv(int fd, void* data, size_t size, int flags) {
  const ssize_t n = REAL(recv)(fd, data, size, flags);
  if (n > 0 && is_provider(fd)) boundary('r');
  return n;
}

/* The runner asks for this right after a program was started (loop/subprocess.cpp). */
long syscall(long number, ...) {
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  const long r = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (commands && number == SYS_pidfd_open && r >= 0) boundary('x');
  return r;
}

int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  const int r = REAL(waitid)(type, id, info, options);
  if (commands && r == 0 && info && info->si_pid != 0) boundary('e');
  return r;
}
