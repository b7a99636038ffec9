// build_for_cpu() of kernel_build.hpp: writes the shim's headers (kernels/shim) to a directory and compiles the
// rewritten source with the system's C++ compiler.
#include <cpuid.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "runtime/compute/device/apart/confined.hpp"
#include "runtime/compute/device/apart/messages.hpp"
#include "runtime/compute/device/kernel_build.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "runtime/compute/device/kernel_includes.hpp"
#include "runtime/compute/device/tree_time.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/loop/spawn.hpp"

namespace rille::device {

namespace shim {
#define RILLE_SHIM(name)    \
  extern const char name[]; \
  extern const std::size_t name##_bytes;
RILLE_SHIM(abi)
RILLE_SHIM(core)
RILLE_SHIM(warp) RILLE_SHIM(rille_math) RILLE_SHIM(bits) RILLE_SHIM(half) RILLE_SHIM(groups) RILLE_SHIM(checked)
#undef RILLE_SHIM
}  // namespace shim

namespace {

namespace fs = std::filesystem;

constexpr int compiler_limit_ms = 300'000, between_looks_ms = 50;
constexpr std::uintmax_t apart_cache_bytes_max = std::uintmax_t{1} << 30;

struct ShimFile {
  const char* name;
  std::string_view text;
};

std::vector<ShimFile> shim_files() {
  return {
      {"abi.h", {shim::abi, shim::abi_bytes}},          {"core.h", {shim::core, shim::core_bytes}},
      {"warp.h", {shim::warp, shim::warp_bytes}},       {"rille_math.h", {shim::rille_math, shim::rille_math_bytes}},
      {"bits.h", {shim::bits, shim::bits_bytes}},       {"half.h", {shim::half, shim::half_bytes}},
      {"groups.h", {shim::groups, shim::groups_bytes}}, {"checked.h", {shim::checked, shim::checked_bytes}}};
}

// Headers that CUDA sources include. They are written as empty files, because the shim already declares their contents.
constexpr const char* empty_headers[] = {"cuda.h",
                                         "cuda_runtime.h",
                                         "cuda_runtime_api.h",
                                         "device_launch_parameters.h",
                                         "cuda_fp16.h",
                                         "cuda_bf16.h",
                                         "cooperative_groups.h",
                                         "cooperative_groups/reduce.h",
                                         "vector_types.h",
                                         "vector_functions.h",
                                         "math_constants.h",
                                         "device_functions.h",
                                         "math_functions.h",
                                         "sm_60_atomic_functions.h",
                                         "math.h",
                                         "cmath",
                                         "stdio.h",
                                         "cstdio",
                                         "stdint.h",
                                         "cstdint",
                                         "stddef.h",
                                         "cstddef",
                                         "float.h",
                                         "cfloat",
                                         "limits.h",
                                         "climits",
                                         "assert.h",
                                         "cassert",
                                         "stdlib.h",
                                         "cstdlib",
                                         "string.h",
                                         "cstring",
                                         "stdbool.h",
                                         "inttypes.h",
                                         "cinttypes"};

const std::string& shim_key() {
  static const std::string key = [] {
    std::vector<std::string_view> pieces;
    for (const auto& f : shim_files()) pieces.push_back(f.text);
    for (const char* name : empty_headers) pieces.push_back(name);
    return kernel_key(pieces);
  }();
  return key;
}

// Describes the processor's model and instruction sets, on which the code of -march=native depends.
std::string processor() {
  std::string text;
  unsigned a, b, c, d;
  for (const unsigned leaf : {0u, 1u, 7u, 13u, 0x80000001u}) {
    if (!__get_cpuid_count(leaf, leaf == 13 ? 1 : 0, &a, &b, &c, &d)) continue;
    if (leaf == 1) {
      b = 0;
      c &= ~(1u << 27);
    }  // leaf 1: ignore the number of the core and the OSXSAVE bit
    text += fmt::format("{:x}.{:x}.{:x}.{:x};", a, b, c, d);
  }
  return text;
}

// Identifies the compiler by its path, size and modification time, without running it.
std::string identity_of(const std::string& program) {
  std::error_code failed;
  const auto real = fs::canonical(program, failed);
  struct stat st {};
  if (::stat(program.c_str(), &st) != 0) return program;
  return fmt::format("{}|{}|{}|{}.{}", program, failed ? program : real.string(), st.st_size, st.st_mtim.tv_sec,
                     st.st_mtim.tv_nsec);
}

// Returns the directory of the shim's headers; creates it if it is missing.
Result<std::string> shim_directory(const KernelFiles& files, const WorkDirectory& work) {
  const std::string name = "shim-" + shim_key();
  const bool keep = !files.directory().empty();
  const std::string place = keep ? files.path_of(name) : work.path() + "/" + name;
  std::error_code failed;
  if (fs::exists(place + "/checked.h", failed)) return place;
  const std::string made = work.path() + "/include";
  for (const char* folder : {"", "/cooperative_groups"}) {
    fs::create_directories(made + folder, failed);
    if (failed) return errno_error("cannot make", made, failed.value());
  }
  for (const char* header : empty_headers) RILLE_CHECK(write_small_file(made + "/" + header, ""));
  for (const auto& f : shim_files()) RILLE_CHECK(write_small_file(made + "/" + f.name, f.text));
  if (::rename(made.c_str(), place.c_str()) == 0 || fs::exists(place + "/checked.h", failed)) return place;
  return errno_error("cannot write", place, errno);
}

std::string log_of(const WorkDirectory& work) { return work.path() + "/log"; }

enum class Ended { by_itself, late, stopped };

// Waits until the compiler has ended, is late, or is to be stopped. Processes that it has left behind are ended.
Ended await_compiler(pid_t child, const std::function<bool()>& stopped, TreeTime& time) {
  const int handle = int(::syscall(SYS_pidfd_open, child, 0));
  if (handle < 0) return Ended::by_itself;
  Ended how = Ended::late;
  for (int left_ms = compiler_limit_ms; left_ms > 0; left_ms -= between_looks_ms) {
    pollfd wait{handle, POLLIN, 0};
    if (::poll(&wait, 1, between_looks_ms) > 0) how = Ended::by_itself;
    else if (time.look(); stopped && stopped()) how = Ended::stopped;
    if (how != Ended::late) break;
  }
  ::kill(-child, SIGKILL);  // the compiler has not been waited for, so its group's number is still its own
  ::close(handle);
  return how;
}

// Runs the compiler, writes its output to the file `log` and returns its exit status. A confined compiler gets nothing
// of this process's environment.
Result<int> run_compiler(const std::vector<std::string>& argv, const WorkDirectory& work,
                         const KernelOptions& options) {
  const std::string log = log_of(work);
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (file < 0 || nothing < 0) {
    const int error = errno;
    if (file >= 0) ::close(file);
    if (nothing >= 0) ::close(nothing);
    return errno_error("cannot open", log, error);
  }
  Spawn what;
  what.argv = argv;
  what.env = {{"LC_ALL", "C"}};
  if (options.confined) {
    what.without = environment_without({"PATH"});
    what.env.emplace_back("TMPDIR", work.path() + "/made");
  }
  what.files = {{nothing, 0}, {file, 1}, {file, 2}};
  what.die_with_us = true;
  what.session = true;  // so that the compiler's own children end with it
  auto child = spawn(what);
  ::close(file);
  ::close(nothing);
  if (!child) return std::move(child).error();
  TreeTime time(*child, options.computed);
  const Ended how = await_compiler(*child, options.stopped, time);
  int status = 0;
  rusage used{};
  pid_t ended;
  while ((ended = ::wait4(*child, &status, 0, &used)) < 0 && errno == EINTR) {}
  if (ended < 0) return stolen_child(*child);
  time.ended(used);
  if (how == Ended::stopped) return make_error(ErrorKind::cancelled, "the run ended while its kernel was compiled");
  if (how == Ended::late) {
    return make_error(ErrorKind::timeout,
                      fmt::format("the compiler {} has not finished in {} s", argv[0], compiler_limit_ms / 1000),
                      "simplify the kernel, or name another compiler in RILLE_CXX; on a busy machine try again");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool is_define(const std::string& flag) { return flag.size() > 2 && flag.starts_with("-D"); }

// The output of a confined compiler is kept in a separate folder, because no other process may load it.
KernelFiles files_for(const KernelOptions& options) {
  if (!options.confined || options.cache.empty()) return KernelFiles(options.cache);
  return KernelFiles(options.cache + "/apart", apart_cache_bytes_max);
}

// Whether the option only says how to compute. Others make a compiler start programs (-fmodule-mapper=), load plug-ins
// or write more files.
bool only_computes(const std::string& option) {
  for (const char* begin :
       {"-D", "-U", "-O", "-std=", "-g", "-march=", "-mtune=", "-mavx", "-mno-avx", "-msse", "-mno-sse", "-mfma",
        "-mno-fma", "-mf16c", "-mbmi", "-mprefer-vector-width=", "-ffp-contract="})
    if (option.starts_with(begin)) return true;
  if (!option.starts_with("-f")) return false;
  std::string_view name = std::string_view(option).substr(2);
  if (name.starts_with("no-")) name.remove_prefix(3);
  static constexpr std::string_view known[] = {"fast-math",
                                               "math-errno",
                                               "unsafe-math-optimizations",
                                               "finite-math-only",
                                               "associative-math",
                                               "signed-zeros",
                                               "reciprocal-math",
                                               "trapping-math",
                                               "rounding-math",
                                               "unroll-loops",
                                               "tree-vectorize",
                                               "slp-vectorize",
                                               "tree-slp-vectorize",
                                               "vectorize",
                                               "inline",
                                               "inline-functions",
                                               "strict-aliasing",
                                               "omit-frame-pointer",
                                               "wrapv",
                                               "peel-loops"};
  return std::find(std::begin(known), std::end(known), name) != std::end(known);
}

// Refuses what the process of a kernel does not take, and options of a confined compiler that do more than say how to
// compute.
Result<> check_apart(const std::string& name, const KernelOptions& options) {
  if (options.constants.size() > apart::symbols_max) {
    return make_error(ErrorKind::invalid,
                      fmt::format("kernel {}: {} constants; at most {} in a process of its own", name,
                                  options.constants.size(), apart::symbols_max),
                      "set several numbers as one constant that is an array");
  }
  if (!options.confined) return success();
  for (const auto& f : options.flags) {
    if (only_computes(f)) continue;
    return make_error(
        ErrorKind::denied, fmt::format("kernel {}: the option {} is not for kernels under limits", name, f),
        "allowed are -D, -U, -O, -g, -std=, -march=, -mtune= and those of instruction sets, and of -f those "
        "for mathematics and loops, such as -ffast-math and -funroll-loops");
  }
  return success();
}

// The text to compile: the user's source, followed by the table (rille_abi::Kernel) that the runtime reads.
std::string library_text(const KernelSource& source, const std::string& name, const KernelOptions& options) {
  bool flat = source.flat && !options.checked && options.flags.empty();
  for (const auto& [key, value] : options.defines)
    flat = flat && value.find("Idx") == value.npos && value.find("sync") == value.npos;
  // The user's macros (-DN=1024) are defined after our headers and undefined before our table, which may use the same
  // names.
  std::string text, undefined;
  const auto define = [&](const std::string& key, const std::string& value) {
    text += fmt::format("#define {} {}\n", key, value);
    undefined += fmt::format("#undef {}\n", key.substr(0, key.find('(')));
  };
  for (const auto& own : source.own_types) define(own, "rille_own_" + own);
  for (const auto& [key, value] : options.defines) define(key, value);
  for (const std::string& f : options.flags)
    if (const auto is = f.find('='); is_define(f)) define(f.substr(2, is - 2), is == f.npos ? "1" : f.substr(is + 1));
  text += line_mark(options) + source.cpu_text + "\n#line 1 \"the kernel's table\"\n";
  text += fmt::format("typedef rille_runner<&{0}, {1}> rille_the_kernel;\n{2}", name, flat, undefined);
  std::string symbols;
  for (const auto& c : options.constants) {
    symbols += fmt::format(
        "\n#line 1 \"the constant {0}\"\n{{\"{0}\", (void*)&{0}, sizeof {0}, "
        "rille_element<rille_plain<decltype({0})>::type>::of}}, ",
        c.name);
  }
  text += fmt::format("static const rille_abi::Symbol rille_symbols[] = {{{}{{}}}};\n", symbols);
  text += "#line 1 \"the kernel's table\"\n";
  text +=
      "RILLE_UNWATCHED static void* rille_locals(rille_abi::Worker* w) {\n#ifdef RILLE_CHECKED\n"
      "rille_worker = w; return &rille_worker;\n#else\nreturn w;\n#endif\n}\n";
  text += fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"), used)) const "
      "rille_abi::Kernel rille_kernel = {{rille_abi::version, rille_the_kernel::count, rille_the_kernel::parameter, "
      "&rille_the_kernel::run, rille_symbols, {0}, &rille_locals}};\n",
      options.constants.size());
  return text;
}

bool is_clang(const std::string& program) {
  std::error_code failed;
  return fs::canonical(program, failed).filename().string().find("clang") != std::string::npos;
}

std::vector<std::string> compiler_flags(const KernelOptions& options, bool gcc) {
  std::vector<std::string> flags = {"-x",
                                    "c++",
                                    "-std=gnu++17",
                                    "-w",
                                    "-march=native",
                                    "-fPIC",
                                    "-fvisibility=hidden",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fno-finite-loops",  // a loop without an end hangs, as on a GPU
                                    "-ffp-contract=fast",
                                    "-include",
                                    "checked.h"};
  const char* const without_carets = gcc ? "-fno-diagnostics-show-caret" : "-fno-caret-diagnostics";
  flags.emplace_back(without_carets);
  if (options.checked) {
    flags.insert(flags.end(), {"-O1", "-g1", "-fsanitize=thread,bounds,integer-divide-by-zero", "-DRILLE_CHECKED"});
  } else {
    flags.insert(flags.end(), {"-O3", "-g1"});  // -g1: line numbers for error messages
  }
  // Reserves register r15 for the pointer to the worker (kernels/shim/core.h).
  if (gcc && !options.checked) flags.insert(flags.end(), {"-ffixed-r15", "-mno-red-zone", "-DRILLE_R15"});
  for (const auto& f : options.flags)
    if (!is_define(f)) flags.push_back(f);
  return flags;
}

// In a bundle a kernel is not linked with a C library and uses the one that this process has loaded: the host's may be
// newer or not glibc, and linkers before binutils 2.38 cannot read the bundle's.
std::vector<std::string> linker_flags(const std::string& bundle) {
  if (bundle.empty()) return {};
  return {"-nodefaultlibs", "-lgcc"};
}

}  // namespace

std::string cpu_compiler() {
  if (const char* named = std::getenv("RILLE_CXX"); named && *named) {
    return std::string_view(named).find('/') == std::string_view::npos ? find_program(named) : named;
  }
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (auto found = find_program(name); !found.empty()) return found;
  }
  return "";
}

Result<> ask_disk(const KernelOptions& options, const std::string& file) {
  if (!options.disk) return success();
  std::error_code failed;
  const auto bytes = fs::file_size(file, failed);
  if (failed) return errno_error("cannot look at", file, failed.value());
  return options.disk(std::int64_t(bytes));
}

Result<BuiltLibrary> build_for_cpu(const KernelSource& source, const std::string& name, const KernelOptions& options) {
  const std::string compiler = cpu_compiler();
  if (compiler.empty()) {
    return make_error(
        ErrorKind::device, fmt::format("kernel {}: there is no C++ compiler on this machine", name),
        "a compiler is needed for user kernels on the CPU: install g++ or clang++, or name one in RILLE_CXX");
  }
  if (options.apart) RILLE_CHECK(check_apart(name, options));
  RILLE_TRY(const std::string included, included_files(source.cpu_text, options));
  const std::string text = library_text(source, name, options);
  auto flags = compiler_flags(options, !is_clang(compiler));
  if (!included.empty() && !options.folder.empty()) flags.insert(flags.end(), {"-iquote", options.folder});
  const std::string who = identity_of(compiler), cpu = processor();
  const std::string bundle = bundle_folder();
  std::vector<std::string_view> pieces = {"cpu", text, included, who, cpu, shim_key(), bundle.empty() ? "" : "bundle"};
  if (options.confined) pieces[0] = "apart";
  pieces.insert(pieces.end(), flags.begin(), flags.end());
  const KernelFiles files = files_for(options);
  BuiltLibrary built;
  built.key = kernel_key(pieces);
  const std::string file = built.key + ".so";
  built.path = files.path_of(file);
  if (files.find(file)) {
    built.cached = true;
    return built;
  }
  RILLE_TRY(const auto work, files.work());
  RILLE_TRY(const auto headers, shim_directory(files, work));
  const std::string input = work.path() + "/kernel.cpp", made = work.path() + "/made";
  const std::string object = made + "/kernel.o", library = made + "/kernel.so";
  RILLE_CHECK(write_small_file(input, text));
  if (::mkdir(made.c_str(), 0700) != 0) return errno_error("cannot make", made, errno);
  std::vector<std::string> front;
  if (options.confined) { RILLE_TRY(front, confined_compiler(compiler, made, {input, headers, options.folder})); }
  front.push_back(compiler);
  std::vector<std::string> argv = front;
  argv.insert(argv.end(), flags.begin(), flags.end());
  if (!is_clang(compiler)) argv.insert(argv.end(), {"-fno-gnu-unique", "-fno-diagnostics-show-option"});
  argv.insert(argv.end(), {"-I", headers});
  // Checked mode links in a separate step without -fsanitize, which would add the sanitizer's library.
  std::vector<std::string> link = {"-shared", "-Wl,-Bsymbolic", "-o", library, options.checked ? object : input};
  const auto libraries = linker_flags(bundle);
  link.insert(link.end(), libraries.begin(), libraries.end());
  if (options.checked) argv.insert(argv.end(), {"-c", "-o", object, input});
  else argv.insert(argv.end(), link.begin(), link.end());
  RILLE_TRY(int status, run_compiler(argv, work, options));
  if (status == 0 && options.checked) {
    link.insert(link.begin(), front.begin(), front.end());
    RILLE_TRY(status, run_compiler(link, work, options));
  }
  if (status != 0) {
    RILLE_TRY(auto said, read_small_file(log_of(work), 1 << 20));
    return compile_error(name, options, source.cpu_text, std::move(said));
  }
  if (options.cache.empty()) {  // no cache: a temporary file, deleted after loading
    built.path = fs::temp_directory_path().string() + "/rille-" + built.key + "-" + std::to_string(::getpid()) + ".so";
    if (::rename(library.c_str(), built.path.c_str()) != 0) return errno_error("cannot write", built.path, errno);
    return built;
  }
  RILLE_CHECK(ask_disk(options, library));
  RILLE_CHECK(files.put(library, file));
  return built;
}

}  // namespace rille::device
