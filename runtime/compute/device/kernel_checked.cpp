// Checked launches: each argument's memory is copied far from the other arguments, so that an access outside one
// argument hits no other. Also makes the messages for violations.
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

#include "runtime/compute/device/apart/confined.hpp"
#include "runtime/compute/device/fiber_stack.hpp"
#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/kernel_ranges.hpp"
#include "runtime/compute/device/tool_output.hpp"
#include "runtime/core/base/places.hpp"

namespace rille::device {

namespace {

// The copies of a checked launch's ranges, each in its own part of the address space.
class Copies {
 public:
  explicit Copies(ArgumentRanges& ranges) : ranges_(ranges) {}
  ~Copies() {
    for (const auto& m : mapped_) ::munmap(m.at, m.bytes);
  }

  bool copy_in() {
    for (auto& r : ranges_.list()) {
      const std::size_t bytes = r.bytes + 2 * gap_bytes;
      void* m = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (m == MAP_FAILED) return false;
      mapped_.push_back({m, bytes});
      auto* copy = static_cast<std::byte*>(m) + gap_bytes;
      r.copy = std::uintptr_t(copy);
      std::memcpy(copy, r.from, r.bytes);
    }
    return true;
  }

  void copy_out() {
    for (const auto& r : ranges_.list())
      if (r.written) std::memcpy(r.from, reinterpret_cast<const void*>(r.copy), r.bytes);
  }

 private:
  struct Mapped {
    void* at;
    std::size_t bytes;
  };
  ArgumentRanges& ranges_;
  std::vector<Mapped> mapped_;
};

std::string thread_text(unsigned t, const LaunchShape& s) {
  return fmt::format("({},{},{})", t % s.block[0], t / s.block[0] % s.block[1], t / s.block[0] / s.block[1]);
}

std::string words_of_fault(const Violation& v) {
  if (v.number == SIGFPE) return "divides a whole number by zero, or the smallest one by -1";
  if (v.number == SIGILL) return "reaches code that the compiler takes to be unreachable";
  if (v.offset_bytes == 0) return "reads or writes at an address without memory";
  return fmt::format("reads or writes at {:#x}, an address without memory", std::uint64_t(v.offset_bytes));
}

const char* verb_of(unsigned access) {
  if (access == rille_abi::access_atomic) return "changes atomically";
  return access == rille_abi::access_read ? "reads" : "writes";
}

}  // namespace

void find_module(const void* inside, MemoryCheck& check) {
  struct Search {
    const void* inside;
    MemoryCheck* check;
  } search{inside, &check};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        std::uintptr_t low = ~std::uintptr_t(0), high = 0, locals = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& p = info->dlpi_phdr[i];
          if (p.p_type == PT_TLS) locals = p.p_memsz;
          if (p.p_type != PT_LOAD) continue;
          low = std::min(low, std::uintptr_t(info->dlpi_addr + p.p_vaddr));
          high = std::max(high, std::uintptr_t(info->dlpi_addr + p.p_vaddr + p.p_memsz));
        }
        if (std::uintptr_t(s.inside) < low || std::uintptr_t(s.inside) >= high) return 0;
        s.check->module = {reinterpret_cast<const std::byte*>(low), high - low};
        if (info->dlpi_tls_data) s.check->thread_locals = {static_cast<const std::byte*>(info->dlpi_tls_data), locals};
        return 1;
      },
      &search);
}

namespace {

void run_checked(const rille_abi::Kernel& kernel, const std::vector<rille_abi::Parameter>& parameters, KernelRun& run,
                 const std::vector<LaunchArgument>& arguments, RunnerPool& pool, RunReport& report) {
  MemoryCheck check;
  ArgumentRanges ranges(parameters, arguments);
  Copies copies(ranges);
  if (!copies.copy_in()) {
    report.out_of_memory = true;
    return;
  }
  std::vector<void*> pointers(arguments.size());
  std::vector<void*> values(arguments.size() + 1);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    values[i] = run.arguments[i];
    if (!parameters[i].pointer) continue;
    auto* at = reinterpret_cast<std::byte*>(arguments[i].pointer ? ranges.copy_of(arguments[i].pointer) : 0);
    pointers[i] = at;
    values[i] = &pointers[i];
    if (at)
      check.arguments.push_back({at, arguments[i].bytes, unsigned(i), parameters[i].constant != 0,
                                 std::max(1u, parameters[i].size / std::max(1u, parameters[i].lanes))});
  }
  rille_abi::Worker nobody{};
  kernel.locals(&nobody);  // allocates this OS thread's copy of the library's thread-local variables
  find_module(&kernel, check);
  run.arguments = values.data();
  check.watches_arguments = !run.cooperative;  // whose blocks wait for each other
  run.check = &check;
  run_kernel(run, pool, report);
  if (report.violation.kind == Violation::Kind::none) copies.copy_out();
}

// Converts a site for line_of(): an address in the library becomes an offset, so that another process can look it up.
const void* told_site(const void* site, const MemoryRange& module) {
  const auto at = std::uintptr_t(site);
  if (at < site_offset) return site;
  const auto offset = at - std::uintptr_t(module.begin);
  return offset < module.bytes ? reinterpret_cast<const void*>(site_offset + offset) : nullptr;
}

}  // namespace

void run_loaded(const rille_abi::Kernel& kernel, const std::vector<rille_abi::Parameter>& parameters, bool checked,
                const LaunchShape& shape, const std::vector<LaunchArgument>& arguments, RunnerPool& pool,
                RunReport& report) {
  void* values[rille_abi::parameters_max + 1];
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto& a = const_cast<LaunchArgument&>(arguments[i]);
    values[i] = parameters[i].pointer ? static_cast<void*>(&a.pointer) : static_cast<void*>(a.value);
  }
  KernelRun run;
  run.kernel = &kernel;
  std::memcpy(run.grid, shape.grid, sizeof run.grid);
  std::memcpy(run.block, shape.block, sizeof run.block);
  run.shared_bytes = shape.shared_bytes;
  run.cooperative = shape.cooperative;
  run.arguments = values;
  if (checked) run_checked(kernel, parameters, run, arguments, pool, report);
  else run_kernel(run, pool, report);
  if (report.violation.kind == Violation::Kind::none) return;
  MemoryCheck where;
  find_module(&kernel, where);
  report.violation.site = told_site(report.violation.site, where.module);
  report.violation.other_site = told_site(report.violation.other_site, where.module);
}

namespace {

constexpr auto line_limit = std::chrono::seconds(1);  // for a tool that looks up a line of a confined kernel

// The line that `tool` reports for an address in the library. The library of a confined kernel is untrusted, and so is
// the output of a tool that has read it.
std::string told_line(std::vector<std::string> argv, const std::string& library, bool confined,
                      const std::function<bool()>& stopped) {
  Spawn what;
  what.env = {{"LC_ALL", "C"}};
  if (!confined) {
    what.argv = std::move(argv);
    return output_of(std::move(what), 1);
  }
  auto front = confined_reader(library);
  if (!front) return "";
  what.argv = std::move(*front);
  what.argv.insert(what.argv.end(), argv.begin(), argv.end());
  what.without = environment_without({});
  what.die_with_us = true;
  const auto until = std::chrono::steady_clock::now() + line_limit;
  return output_of(std::move(what), 1,
                   [&] { return (stopped && stopped()) || std::chrono::steady_clock::now() > until; });
}

}  // namespace

std::string Kernel::line_of(const void* site, const std::function<bool()>& stopped) const {
  // In checked mode a barrier's site is not an address: its low 20 bits are the line number in the source.
  if (const auto place = std::uintptr_t(site); place && place < site_offset) {
    return fmt::format(" ({}:{})", options_.file, place & 0xfffff);
  }
  if (!site || options_.cache.empty()) return "";
  const auto offset = std::uintptr_t(site) - site_offset;
  if (offset == 0) return "";
  for (const char* tool : {"addr2line", "llvm-addr2line"}) {
    const std::string program = find_program(tool);
    if (program.empty()) continue;
    // A return address is one past the call, hence - 1. Of several inlined frames take the first in the user's file.
    const std::string text = told_line({program, "-i", "-e", library_path_, fmt::format("{:#x}", offset - 1)},
                                       library_path_, options_.confined, stopped);
    for (std::size_t at = 0; at < text.size();) {
      const auto end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      if (const auto more = line.find(" ("); more != line.npos) line.resize(more);
      const auto file = line.rfind('/');
      const std::string wanted = options_.file.substr(options_.file.rfind('/') + 1);
      if (file != line.npos) line = line.substr(file + 1);
      if (line.starts_with(wanted + ":") && !line.ends_with(":?") && !line.ends_with(":0"))
        return fmt::format(" ({})", options_.file.substr(0, options_.file.rfind('/') + 1) + line);
      at = end + 1;
    }
  }
  return "";
}

namespace {

struct Words {
  std::string what, hint;
};

// For the violations of memory; empty for the others. `who`: the thread. other_line: of v.other_site.
Words memory_words(const Kernel& kernel, const Violation& v, const LaunchShape& s,
                   const std::vector<LaunchArgument>& arguments, const std::string& who,
                   const std::string& other_line) {
  using Kind = Violation::Kind;
  const bool of_argument = v.kind == Kind::outside || v.kind == Kind::writes_constant || v.kind == Kind::beyond ||
                           v.kind == Kind::global_race;
  std::string element, has;
  if (of_argument) {
    const std::int64_t size = std::max<std::int64_t>(1, kernel.parameters()[v.parameter].size);
    const std::int64_t index = v.offset_bytes >= 0 ? v.offset_bytes / size : -((-v.offset_bytes + size - 1) / size);
    element = fmt::format("{}[{}]", kernel.parameter_name(v.parameter), index);
    has = fmt::format("which has {} elements", arguments[v.parameter].bytes / std::size_t(size));
  }
  const std::string other =
      fmt::format("thread {}{} {} since the last barrier", thread_text(v.other_thread, s), other_line,
                  v.other_access == rille_abi::access_read ? "has read" : "has written");
  const std::string does = fmt::format("{} {}", who, verb_of(v.access));
  switch (v.kind) {
    case Kind::outside: return {fmt::format("{} {}, {}", does, element, has), ""};
    case Kind::writes_constant: return {fmt::format("{} {}, which is const", does, element), ""};
    case Kind::wild:
      return {does + " memory that belongs to none of its arguments", "the pointer was nil, or was computed wrongly"};
    case Kind::shared_outside:
      return {
          fmt::format("{} byte {} of the dynamic shared memory, which has {}", does, v.offset_bytes, s.shared_bytes),
          "the launch's option shared sets how many bytes a block has"};
    case Kind::race:
      return {fmt::format("{} shared memory that {}", does, other), "a __syncthreads() is missing between the two"};
    case Kind::global_race:
      if (v.number)
        return {fmt::format("{} {}, which a thread of another block{} has written", does, element, other_line),
                "another order of the blocks gives another result: use an atomic, such as atomicAdd(&x[i], ..)"};
      return {fmt::format("{} {}, which {}", does, element, other),
              "use an atomic, such as atomicAdd(&x[i], ..), or a __syncthreads() between the two"};
    case Kind::beyond:
      return {fmt::format("{} {}, {}", v.access == rille_abi::access_read ? "reaches" : "writes", element, has),
              "threads beyond the last element must do nothing: if (i < n); checked = true names the thread"};
    default: return {};
  }
}

}  // namespace

Error Kernel::error_of(const Violation& v, const LaunchShape& s, const std::vector<LaunchArgument>& arguments,
                       const std::function<bool()>& stopped) const {
  using Kind = Violation::Kind;
  const std::string who = fmt::format("thread {} of block ({},{},{})", thread_text(v.thread, s), v.block % s.grid[0],
                                      v.block / s.grid[0] % s.grid[1], v.block / s.grid[0] / s.grid[1]);
  const std::string other_line = v.other_site ? line_of(v.other_site, stopped) : "";
  auto [what, hint] = memory_words(*this, v, s, arguments, who, other_line);
  switch (v.kind) {
    case Kind::none:
    case Kind::outside:
    case Kind::writes_constant:
    case Kind::wild:
    case Kind::shared_outside:
    case Kind::race:
    case Kind::global_race:
    case Kind::beyond: break;
    case Kind::index: what = fmt::format("{}: index {} of {}", who, std::int64_t(v.number), v.text); break;
    case Kind::failed: what = fmt::format("{}: {}", who, v.text); break;
    case Kind::deadlock:
      what = v.number ? fmt::format("{} waits for lanes {:#010x} of its warp, but some of these lanes never arrive",
                                    who, v.number)
                      : fmt::format("{} waits for other threads that never arrive", who);
      hint = v.bytes ? fmt::format("{} other threads wait at a barrier: all threads must come to the same operation",
                                   v.bytes)
                     : "each lane that the mask names must call the same warp operation";
      break;
    case Kind::barriers:
      what = v.number ? fmt::format("{} waits at a __syncthreads() that thread {} has gone past", who,
                                    thread_text(v.other_thread, s))
                      : fmt::format("{} waits at another __syncthreads() than thread {}{}", who,
                                    thread_text(v.other_thread, s), other_line);
      hint = "all threads of a block must reach the same __syncthreads()";
      break;
    case Kind::grid:
      what = fmt::format("{} waits for the other blocks of the grid, in a launch that is not cooperative", who);
      hint = "grid.sync() needs a launch with cooperative = true";
      break;
    case Kind::fault:
      what = words_of_fault(v);
      if (!options_.checked)
        hint = "make the kernel with checked = true: it names the thread, the argument and the index";
      break;
    case Kind::stack:
      what = fmt::format("a thread needs more than the {} kB of its stack", FiberStacks::stack_bytes >> 10);
      hint = "avoid recursion and large local arrays: put them into shared or global memory";
      break;
    case Kind::lane:
      what = fmt::format("{} passes the mask {:#010x} to a warp operation, but the mask lacks the thread's own lane",
                         who, v.number);
      break;
  }
  std::string line = v.file ? fmt::format(" ({}:{})", v.file, v.line) : line_of(v.site, stopped);
  Error e = make_error(ErrorKind::device, fmt::format("kernel {}: {}{}", name_, what, line), std::move(hint));
  e.code = "kernel_check";
  return e;
}

}  // namespace rille::device
