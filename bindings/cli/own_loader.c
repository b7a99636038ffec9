/* The entry of the bundle's `rille`: maps the dynamic loader that lies beside it,
 * ../lib/ld-linux-x86-64.so.2, and jumps there, as the kernel does with a loader whose absolute path stands
 * in the program. So the program runs with its own C library wherever it was unpacked, on systems that have
 * none or another one, and stays the process's own executable: /proc/self/exe, the name in ps, and what
 * children inherit are those of any program. docs/design/bundle.md weighs it.
 *
 * It runs before relocation, thread storage and the C library: only its own static data, system calls, and no
 * call that the compiler could make of a loop (CMakeLists.txt sets the flags). It returns the loader's entry,
 * or ends the process with 127 and one line that names the file. x86-64 only. */
#include <elf.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define LOADER "lib/ld-linux-x86-64.so.2"
enum { page = 4096, headers_most = 32, added = 2 };
extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* the linker's: where the program begins */

/* The stack is the loader's in the end, exactly as the kernel made it; rdx is 0: nothing to call at exit. */
__asm__(
    ".globl rille_bundle_start\n"
    ".type rille_bundle_start, @function\n"
    "rille_bundle_start:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rsp, %rbx\n"
    "  mov %rsp, %rdi\n"
    "  lea _start(%rip), %rsi\n"
    "  and $-16, %rsp\n"
    "  call rille_bundle_load\n"
    "  mov %rbx, %rsp\n"
    "  xor %edx, %edx\n"
    "  jmp *%rax\n");

static char loader[PATH_MAX + sizeof LOADER]; /* its path: kept, since the loader takes it for its own name */
static Elf64_Phdr headers[added + headers_most];

static long call6(long n, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static size_t length(const char* text) {
  size_t n = 0;
  while (text[n]) ++n;
  return n;
}

static void say(const char* text) { call6(SYS_write, 2, (long)text, (long)length(text), 0, 0, 0); }

__attribute__((noreturn)) static void give_up(const char* what, const char* hint) {
  say("rille: ");
  say(what);
  say(loader);
  say(hint);
  for (;;) call6(SYS_exit_group, 127, 0, 0, 0, 0, 0);
}

static char* map(uintptr_t at, size_t size, int protection, int flags, int fd, size_t offset) {
  long got = call6(SYS_mmap, (long)at, (long)size, protection, MAP_PRIVATE | flags, fd, (long)offset);
  if (got < 0 && got > -page) give_up("cannot map ", ": no memory, or the file system is mounted noexec\n");
  return (char*)got;
}

/* BUNDLE/bin/rille, links resolved -> BUNDLE/lib/ld-linux-x86-64.so.2 */
static void find_loader(void) {
  long size = call6(SYS_readlink, (long)"/proc/self/exe", (long)loader, PATH_MAX, 0, 0, 0);
  if (size <= 0 || size >= PATH_MAX) {
    loader[0] = 0;
    give_up("/proc/self/exe cannot be read", ": /proc must be mounted\n");
  }
  for (int slashes = 0; size > 0; --size)
    if (loader[size - 1] == '/' && ++slashes == 2) break;
  for (size_t i = 0; i < sizeof LOADER; ++i) loader[(size_t)size + i] = LOADER[i];
}

static int protection_of(const Elf64_Phdr* p) {
  return (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
         (p->p_flags & PF_X ? PROT_EXEC : 0);
}

/* One segment of the loader: the file's pages, then zeroes up to the end of the last page, where the loader's
 * own first malloc expects them. */
static void map_segment(char* base, const Elf64_Phdr* p, int fd) {
  size_t lead = p->p_vaddr % page;
  uintptr_t at = (uintptr_t)base + p->p_vaddr - lead;
  if (p->p_filesz) map(at, lead + p->p_filesz, protection_of(p), MAP_FIXED, fd, p->p_offset - lead);
  uintptr_t from = (uintptr_t)base + p->p_vaddr + p->p_filesz, to = (uintptr_t)base + p->p_vaddr + p->p_memsz;
  uintptr_t next = (from + page - 1) / page * page;
  if (p->p_flags & PF_W)
    for (volatile char* zero = (volatile char*)from; (uintptr_t)zero < next; ++zero) *zero = 0;
  if (to > next) map(next, to - next, protection_of(p), MAP_FIXED | MAP_ANONYMOUS, -1, 0);
}

/* Maps the loader; its first page, with its headers, is its first segment. */
static char* map_loader(uintptr_t* entry) {
  long fd = call6(SYS_open, (long)loader, O_RDONLY | O_CLOEXEC, 0, 0, 0, 0);
  if (fd < 0) give_up("cannot open ", ": this `rille` works inside its bundle only; move or link the whole folder\n");
  const Elf64_Ehdr* file = (const Elf64_Ehdr*)map(0, page, PROT_READ, 0, (int)fd, 0);
  if (*(const uint32_t*)file->e_ident != 0x464c457f || file->e_machine != EM_X86_64 ||
      file->e_phoff + (size_t)file->e_phnum * sizeof(Elf64_Phdr) > page)
    give_up("the file is not a program loader: ", "\n");
  const Elf64_Phdr* p = (const Elf64_Phdr*)((const char*)file + file->e_phoff);
  size_t size = 0;
  for (int i = 0; i < file->e_phnum; ++i)
    if (p[i].p_type == PT_LOAD) size = p[i].p_vaddr + p[i].p_memsz;
  char* base = map(0, size, PROT_NONE, MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < file->e_phnum; ++i)
    if (p[i].p_type == PT_LOAD) map_segment(base, &p[i], (int)fd);
  *entry = (uintptr_t)base + file->e_entry;
  call6(SYS_munmap, (long)file, page, 0, 0, 0, 0);
  call6(SYS_close, fd, 0, 0, 0, 0, 0);
  return base;
}

/* A program that the kernel shall start alone has neither a PT_INTERP nor a PT_PHDR. The loader asserts the
 * one and finds the program's base by the other, so it gets a copy of the headers that begins with both. */
static void copy_headers(Elf64_auxv_t* phdr, Elf64_auxv_t* phnum) {
  const char* from = (const char*)phdr->a_un.a_val;
  size_t count = phnum->a_un.a_val;
  if (count > headers_most) give_up("too many program headers, before ", "\n");
  uintptr_t base = (uintptr_t)__ehdr_start;
  size_t name = length(loader) + 1, size = (count + added) * sizeof headers[0];
  headers[0] = (Elf64_Phdr){.p_type = PT_PHDR, .p_flags = PF_R, .p_align = 8, .p_filesz = size, .p_memsz = size};
  headers[0].p_vaddr = headers[0].p_paddr = (uintptr_t)headers - base;
  headers[1] = (Elf64_Phdr){.p_type = PT_INTERP, .p_flags = PF_R, .p_align = 1, .p_filesz = name, .p_memsz = name};
  headers[1].p_vaddr = headers[1].p_paddr = (uintptr_t)loader - base;
  volatile char* to = (volatile char*)&headers[added];
  for (size_t i = 0; i < count * sizeof headers[0]; ++i) to[i] = from[i];
  phdr->a_un.a_val = (uintptr_t)headers;
  phnum->a_un.a_val = count + added;
}

__attribute__((used, visibility("hidden"))) uintptr_t rille_bundle_load(uintptr_t* stack, uintptr_t start) {
  uintptr_t* at = stack + 1 + stack[0] + 1; /* past argc, argv and its end */
  while (*at) ++at;                         /* past the environment */
  Elf64_auxv_t *phdr = NULL, *phnum = NULL, *loader_base = NULL;
  for (Elf64_auxv_t* a = (Elf64_auxv_t*)(at + 1); a->a_type != AT_NULL; ++a) {
    if (a->a_type == AT_PHDR) phdr = a;
    if (a->a_type == AT_PHNUM) phnum = a;
    if (a->a_type == AT_BASE) loader_base = a;
    if (a->a_type == AT_ENTRY) a->a_un.a_val = start;
  }
  find_loader();
  if (!phdr || !phnum) give_up("the kernel names no program headers, before ", "\n");
  copy_headers(phdr, phnum);
  uintptr_t entry;
  char* base = map_loader(&entry);
  if (loader_base) loader_base->a_un.a_val = (uintptr_t)base;
  return entry;
}
