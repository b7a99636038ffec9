#include "runtime/compute/device/apart/confine.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace rille::device::apart {

namespace {

Error unable(const char* what) {
  return make_error(
      ErrorKind::device,
      std::string("this system cannot confine native code: ") + what +
          (errno == ENOSYS || errno == EOPNOTSUPP ? " is missing" : " fails with errno " + std::to_string(errno)),
      "a kernel under limits needs Linux 5.13 or newer with Landlock; without limits, or on a GPU, it runs unconfined");
}

// The rights of Landlock's first version, which every version supports.
constexpr std::uint64_t read_rights =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t all_rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

// Of later versions, which Debian 12's headers do not name.
constexpr std::uint64_t truncate_right = 1 << 14;                     // version 3
constexpr std::uint64_t bind_tcp = 1 << 0, connect_tcp = 1 << 1;      // version 4
constexpr std::uint64_t abstract_sockets = 1 << 0, signals = 1 << 1;  // version 6: to processes that are not confined
struct Ruleset {
  std::uint64_t files = 0, network = 0, scoped = 0;
};

// Makes a ruleset of everything that this system's Landlock can deny; files: the rights on files that it handles.
int make_ruleset(std::uint64_t& files) {
  const auto version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  Ruleset denied;
  denied.files = files = version >= 3 ? all_rights | truncate_right : all_rights;
  std::size_t size = sizeof denied.files;
  if (version >= 4) denied.network = bind_tcp | connect_tcp, size = 2 * sizeof denied.files;
  if (version >= 6) denied.scoped = abstract_sockets | signals, size = sizeof denied;
  return int(::syscall(SYS_landlock_create_ruleset, &denied, size, 0));
}
constexpr std::uint64_t file_rights =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | truncate_right;

// A path that does not exist needs no rule.
bool allow(int ruleset, const std::string& path, std::uint64_t rights) {
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return true;
  struct stat st {};
  landlock_path_beneath_attr rule{};
  rule.parent_fd = fd;
  rule.allowed_access = ::fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? rights : rights & file_rights;
  const bool done = ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  ::close(fd);
  return done;
}

bool limit(int what, std::int64_t value) {
  const rlimit at{rlim_t(value), rlim_t(value)};
  return ::setrlimit(__rlimit_resource_t(what), &at) == 0;
}

}  // namespace

Result<> confine(const Confinement& what) {
  bool limited = limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, what.file_bytes);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve terabytes
  if (what.memory_bytes) limited = limited && limit(RLIMIT_DATA, what.memory_bytes);
  if (what.address_bytes) limited = limited && limit(RLIMIT_AS, what.address_bytes);
#endif
  if (what.processor_s) limited = limited && limit(RLIMIT_CPU, what.processor_s);
  if (!limited) return unable("setrlimit");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return unable("no_new_privs");
  std::uint64_t handled = 0;
  const int ruleset = make_ruleset(handled);
  if (ruleset < 0) return unable("Landlock");
  bool allowed = true;
  for (const auto& path : what.read) allowed = allowed && allow(ruleset, path, read_rights);
  for (const auto& path : what.write) allowed = allowed && allow(ruleset, path, handled);
  const bool held = allowed && ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  if (!held) return unable("Landlock");
  ::close(ruleset);
  return success();
}

namespace {

using Filter = std::vector<sock_filter>;

const sock_filter yes BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

sock_filter no(int error) { return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | unsigned(error)); }
sock_filter read_word(std::size_t at) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, unsigned(at)); }
sock_filter unless(unsigned value, unsigned char skip) { return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip); }
std::size_t argument(int i) { return offsetof(seccomp_data, args) + 8 * unsigned(i); }

// Ends calls of another architecture; afterwards the system call's number is loaded.
Filter begin_filter() {
  return {read_word(offsetof(seccomp_data, arch)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), read_word(offsetof(seccomp_data, nr))};
}

Result<> install(Filter f) {
  const sock_fprog program{static_cast<unsigned short>(f.size()), f.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) return unable("seccomp");
  return success();
}

}  // namespace

Result<> drop_system_calls() {
  static constexpr int allowed[] = {
      SYS_read,
      SYS_close,
      SYS_fstat,
      SYS_newfstatat,
      SYS_lseek,
      SYS_pread64,
      SYS_mmap,
      SYS_mprotect,
      SYS_munmap,
      SYS_mremap,
      SYS_madvise,
      SYS_brk,
      SYS_futex,
      SYS_rt_sigaction,
      SYS_rt_sigprocmask,
      SYS_rt_sigreturn,
      SYS_sigaltstack,
      SYS_sched_yield,
      SYS_sched_getaffinity,
      SYS_nanosleep,
      SYS_clock_nanosleep,
      SYS_clock_gettime,
      SYS_clock_getres,
      SYS_getpid,
      SYS_gettid,
      SYS_sendto,
      SYS_recvfrom,
      SYS_set_robust_list,
      SYS_rseq,
      SYS_getrandom,
      SYS_membarrier,
      SYS_exit,
      SYS_exit_group,
      SYS_set_tid_address,
  };
  Filter f = begin_filter();
  for (const int call : allowed) f.insert(f.end(), {unless(unsigned(call), 1), yes});
  // Allows threads, but not processes. clone3 fails with ENOSYS, so that the C library falls back to clone, whose flags
  // this filter can see.
  f.insert(f.end(), {unless(SYS_clone3, 1), no(ENOSYS)});
  f.insert(f.end(), {unless(SYS_clone, 4), read_word(argument(0)),
                     sock_filter BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1), yes, no(EPERM)});
  // Files are opened for reading only.
  f.insert(f.end(), {unless(SYS_openat, 4), read_word(argument(2)),
                     sock_filter BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_ACCMODE | O_CREAT | O_TRUNC | O_PATH, 1, 0),
                     yes, no(EPERM)});
  // Limits can be read, but not changed: the third argument, a pointer, must be null.
  f.insert(f.end(), {unless(SYS_prlimit64, 6), read_word(argument(2)), unless(0, 3), read_word(argument(2) + 4),
                     unless(0, 1), yes, no(EPERM)});
  f.push_back(no(EPERM));
  return install(std::move(f));
}

namespace {

constexpr unsigned other_abi = 0x40000000;  // system calls of the x32 ABI have this bit
constexpr int fchmodat2 = 452;              // not in Debian 12's headers
// What a program that works with files does not need.
constexpr int beyond_files[] = {
    SYS_socket,
    SYS_socketpair,
    SYS_kill,
    SYS_tkill,
    SYS_tgkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_send_signal,
    SYS_setsid,  // a process that leaves the group would outlive the compiler
    SYS_setpgid,
    SYS_ptrace,
    SYS_kcmp,
    SYS_process_vm_readv,
    SYS_pidfd_open,
    SYS_setpriority,
    SYS_process_vm_writev,
    SYS_sched_setparam,
    SYS_sched_setattr,
    SYS_sched_setscheduler,
    SYS_ioprio_set,
    SYS_migrate_pages,
    SYS_sched_setaffinity,
    SYS_move_pages,
    SYS_io_uring_setup,
    SYS_perf_event_open,
    SYS_bpf,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_mq_open,
    SYS_unshare,
    SYS_setns,
    SYS_init_module,
    SYS_finit_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_swapon,
    SYS_swapoff,
    // of files, what Landlock does not cover
    SYS_truncate,
    SYS_chmod,
    SYS_fchmod,
    SYS_fchmodat,
    fchmodat2,
    SYS_chown,
    SYS_fchown,
    SYS_lchown,
    SYS_fchownat,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_quotactl,
    // for a compiler that root has started
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_mount_setattr,
    SYS_delete_module,
    SYS_kexec_file_load,
    SYS_acct,
    SYS_syslog,
    SYS_iopl,
    SYS_ioperm,
};

}  // namespace

Result<> drop_calls_beyond_files() {
  Filter f = begin_filter();
  f.insert(f.end(), {BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, other_abi, 0, 1), no(EPERM)});
  for (const int call : beyond_files) f.insert(f.end(), {unless(unsigned(call), 1), no(EPERM)});
  // The system sends the signals of a descriptor to the process that F_SETOWN names.
  for (const unsigned command : {F_SETOWN, F_SETSIG, F_SETOWN_EX})
    f.insert(f.end(), {unless(SYS_fcntl, 4), read_word(argument(1)), unless(command, 1), no(EPERM),
                       read_word(offsetof(seccomp_data, nr))});
  // Only the limits of this process can be changed.
  f.insert(f.end(), {unless(SYS_prlimit64, 4), read_word(argument(0)), unless(0, 1), yes, no(EPERM), yes});
  return install(std::move(f));
}

}  // namespace rille::device::apart
