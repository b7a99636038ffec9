#include "runtime/compute/device/kernel.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>

#include "runtime/compute/device/apart/kernel_process.hpp"
#include "runtime/compute/device/kernel_library.hpp"

namespace rille::device {

namespace {

// BlockRunners are few and large, so all kernels share one pool; it is freed with the last kernel.
std::shared_ptr<RunnerPool> shared_pool() {
  static std::mutex mutex;
  static std::weak_ptr<RunnerPool> current;
  const std::lock_guard lock(mutex);
  auto pool = current.lock();
  if (!pool) current = pool = std::make_shared<RunnerPool>();
  return pool;
}

std::string unique_suffix() {
  static std::atomic<unsigned> count{0};
  return fmt::format("-{}-{}", ::getpid(), count++);
}

// Tells the processor time of this thread, on which NVRTC compiles.
class ThreadTime {
 public:
  explicit ThreadTime(const std::function<void(std::int64_t ns)>& tell) : tell_(tell), began_ns_(now_ns()) {}
  ~ThreadTime() {
    if (tell_) tell_(now_ns() - began_ns_);
  }
  ThreadTime(const ThreadTime&) = delete;

 private:
  static std::int64_t now_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * std::int64_t(1'000'000'000) + t.tv_nsec;
  }
  const std::function<void(std::int64_t ns)>& tell_;
  const std::int64_t began_ns_;
};

}  // namespace

Kernel::~Kernel() {
  if (library_) ::dlclose(library_);
}

Result<std::shared_ptr<Kernel>> Kernel::compile(std::string_view source, const KernelOptions& options) {
  const ThreadTime own(options.computed);
  auto text = read_kernel_source(source);
  if (!text) {
    Error e = std::move(text).error();
    int line = 1, length = 0;  // replaces "line 3: .." of the source by the line in the user's script
    if (std::sscanf(e.message.c_str(), "line %d: %n", &line, &length) == 1 && length > 0) e.message.erase(0, length);
    e.message = fmt::format("{}:{}: {}", options.file, options.line + line - 1, e.message);
    return e;
  }
  RILLE_TRY(const auto name, choose_kernel(*text, options));
  std::shared_ptr<Kernel> k(new Kernel);
  k->options_ = options;
  k->name_ = name;
  k->source_ = source;
  k->pool_ = shared_pool();
  if (const auto* d = text->find(name.substr(0, name.find('<')))) {
    for (const auto& p : d->parameters) k->parameter_names_.push_back(p.name);
  }
  if (!options.arch.empty()) {
    RILLE_CHECK(k->build_for_gpu(*text));
    return k;
  }
  RILLE_TRY(auto built, build_for_cpu(*text, name, options));
  auto loaded = k->load(built.path, !options.cache.empty());
  // The cached file may be damaged or from another system: compile again.
  if (!loaded && built.cached && loaded.error().kind != ErrorKind::cancelled) {
    ::unlink(built.path.c_str());
    RILLE_TRY(built, build_for_cpu(*text, name, options));
    loaded = k->load(built.path, true);
  }
  RILLE_CHECK(std::move(loaded));
  k->cached_ = built.cached;
  RILLE_CHECK(k->set_constants());
  return k;
}

// Loads a copy of the file: dlopen() of the same file twice returns one library with shared __constant__ variables.
Result<> Kernel::load(const std::string& path, bool keep) {
  library_path_ = path;
  if (options_.apart) {
    auto process = KernelProcess::start(name_, path, options_);
    if (!keep) ::unlink(path.c_str());
    RILLE_TRY(process_, std::move(process));
    parameters_ = process_->parameters();
    return success();
  }
  const std::string copy = path + unique_suffix();
  std::error_code failed;
  if (keep) std::filesystem::copy_file(path, copy, failed);
  else std::filesystem::rename(path, copy, failed);
  if (failed) return errno_error("cannot write", copy, failed.value());
  auto loaded = load_library(copy, name_);
  std::filesystem::remove(copy, failed);
  if (!loaded) return std::move(loaded).error();
  library_ = loaded->handle;
  kernel_ = loaded->kernel;
  parameters_.assign(kernel_->parameter, kernel_->parameter + kernel_->parameters);
  return success();
}

namespace {

template <class T>
bool put(void* at, double v) {
  const T value = static_cast<T>(v);
  std::memcpy(at, &value, sizeof value);
  return static_cast<double>(value) == v;
}

// Converts to bfloat16, rounding to nearest, ties to even.
std::uint16_t bf16_of(float f) {
  std::uint32_t u;
  std::memcpy(&u, &f, 4);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return std::uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

std::uint16_t f16_of(float f) {
  std::uint32_t u, half;
  std::memcpy(&u, &f, 4);
  const std::uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return 0x7fff;
  if (a >= 0x477ff000) return std::uint16_t(sign | 0x7c00);
  if (a < 0x38800000) {  // the result is subnormal: adding 0.5 rounds to its last bit
    std::memcpy(&f, &a, 4);
    f += 0.5f;
    std::memcpy(&half, &f, 4);
    return std::uint16_t(sign | (half - 0x3f000000));
  }
  return std::uint16_t(sign | ((a + 0xc8000fff + (a >> 13 & 1)) >> 13));
}

}  // namespace

bool put_number(unsigned element, void* at, double v) {
  const float f = static_cast<float>(v);
  const auto two = [at](std::uint16_t bits) {
    std::memcpy(at, &bits, 2);
    return true;
  };
  if (element == rille_abi::f16) return two(f16_of(f));
  if (element == rille_abi::bf16) return two(bf16_of(f));
  switch (element) {
    case rille_abi::f32: std::memcpy(at, &f, 4); return true;
    case rille_abi::f64: std::memcpy(at, &v, 8); return true;
    case rille_abi::boolean: return put<bool>(at, v != 0 ? 1 : 0);
    default: break;
  }
  if (!(v >= -9223372036854775808.0 && v < 18446744073709551616.0)) return false;
  switch (element) {
    case rille_abi::i8: return v >= -128 && v < 128 && put<std::int8_t>(at, v);
    case rille_abi::u8: return v >= 0 && v < 256 && put<std::uint8_t>(at, v);
    case rille_abi::i16: return v >= -32768 && v < 32768 && put<std::int16_t>(at, v);
    case rille_abi::u16: return v >= 0 && v < 65536 && put<std::uint16_t>(at, v);
    case rille_abi::i32: return v >= -2147483648.0 && v < 2147483648.0 && put<std::int32_t>(at, v);
    case rille_abi::u32: return v >= 0 && v < 4294967296.0 && put<std::uint32_t>(at, v);
    case rille_abi::i64: return v < 9223372036854775808.0 && put<std::int64_t>(at, v);
    case rille_abi::u64_: return v >= 0 && put<std::uint64_t>(at, v);
    default: return false;
  }
}

namespace {

unsigned size_of_element(unsigned element) {
  switch (element) {
    case rille_abi::boolean:
    case rille_abi::i8:
    case rille_abi::u8: return 1;
    case rille_abi::i16:
    case rille_abi::u16:
    case rille_abi::f16:
    case rille_abi::bf16: return 2;
    case rille_abi::i32:
    case rille_abi::u32:
    case rille_abi::f32: return 4;
    case rille_abi::i64:
    case rille_abi::u64_:
    case rille_abi::f64: return 8;
    default: return 0;
  }
}

}  // namespace

Result<std::vector<std::byte>> Kernel::constant_bytes(const KernelConstant& given, unsigned element,
                                                      std::size_t room) const {
  const unsigned size = size_of_element(element);
  const auto fail = [&](std::string what) {
    return make_error(ErrorKind::invalid,
                      fmt::format("{}: kernel {}: constant {}: {}", place(), name_, given.name, what));
  };
  if (size == 0) return fail("only __constant__ variables of plain numbers can be set");
  std::vector<std::byte> bytes(given.values.size() * size);
  for (std::size_t n = 0; n < given.values.size(); ++n) {
    if (!put_number(element, bytes.data() + n * size, given.values[n])) {
      return fail(fmt::format("{} is not a value of type {}", given.values[n],
                              describe(rille_abi::Parameter{0, element, 1, 0, size})));
    }
  }
  if (room != 0 && bytes.size() != room)
    return fail(fmt::format("{} numbers for {} elements", given.values.size(), room / size));
  return bytes;
}

Result<> Kernel::set_constants() {
  for (std::size_t i = 0; i < options_.constants.size(); ++i) {
    const auto& given = options_.constants[i];
    const auto& symbol = process_ ? process_->symbols()[i] : kernel_->symbol[i];
    RILLE_TRY(const auto bytes, constant_bytes(given, symbol.element, symbol.bytes));
    if (process_) RILLE_CHECK(process_->set_constant(i, bytes));
    else std::memcpy(symbol.at, bytes.data(), bytes.size());
  }
  return success();
}

Result<> Kernel::build_for_gpu(const KernelSource& source) {
  if (options_.checked) {
    return make_error(
        ErrorKind::invalid,
        fmt::format("{}: kernel {}: the option checked, which finds wrong memory accesses, works on the CPU only",
                    place(), name_),
        "make it with rille.device(\"cpu\"):kernel(..), or leave checked out");
  }
  RILLE_TRY(built_, build_for_cuda(source_, source, name_, options_, options_.arch));
  parameters_ = built_.parameters;
  cached_ = built_.cached;
  for (std::size_t i = 0; i < options_.constants.size(); ++i) {
    const auto& given = options_.constants[i];
    const auto& there = built_.constants[i];
    RILLE_TRY(auto bytes, constant_bytes(given, there.element, there.bytes));
    constants_.push_back({given.name, there.symbol, std::move(bytes)});
  }
  return success();
}

std::shared_ptr<void> Kernel::loaded_on(const void* device) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [where, loaded] : loaded_)
    if (where == device) return loaded;
  return nullptr;
}

void Kernel::keep_loaded(const void* device, std::shared_ptr<void> loaded) const {
  const std::lock_guard lock(mutex_);
  loaded_.emplace_back(device, std::move(loaded));
}

Result<Cubin> Kernel::cubin(const std::string& arch) const {
  const ThreadTime own(options_.computed);
  RILLE_TRY(const auto source, read_kernel_source(source_));
  return build_for_cuda(source_, source, name_, options_, arch);
}

std::string Kernel::parameter_name(std::size_t i) const {
  if (i < parameter_names_.size() && parameter_names_.size() == parameters_.size() && !parameter_names_[i].empty()) {
    return parameter_names_[i];
  }
  return fmt::format("argument {}", i + 1);
}

std::string Kernel::signature() const {
  std::string text = name_ + "(";
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto name = parameter_name(i);
    text += (i ? ", " : "") + describe(parameters_[i]) + (name.find(' ') == name.npos ? " " + name : "");
  }
  return text + ")";
}

std::string Kernel::place() const { return fmt::format("{}:{}", options_.file, options_.line); }

Result<> Kernel::check_shape(const LaunchShape& s) const {
  const auto fail = [&](std::string what, std::string hint = {}) {
    return make_error(ErrorKind::invalid, fmt::format("kernel {}: {}", name_, what), std::move(hint));
  };
  for (int i = 0; i < 3; ++i) {
    if (s.grid[i] == 0 || s.block[i] == 0) return fail("grid and block must not be 0 in any dimension");
  }
  const auto count = [](const unsigned(&v)[3]) { return std::uint64_t(v[0]) * v[1] * v[2]; };
  const std::string block = fmt::format("a block of {} x {} x {} threads", s.block[0], s.block[1], s.block[2]);
  if (s.block[0] > 1024 || s.block[1] > 1024 || count(s.block) > rille_abi::threads_max) {
    return fail(block + "; at most 1024", "more blocks of fewer threads, as in block = 256");
  }
  if (s.block[2] > 64) return fail(block + "; at most 64 in z", "this is CUDA's limit: put the threads into x or y");
  const std::string grid = fmt::format("a grid of {} x {} x {} blocks", s.grid[0], s.grid[1], s.grid[2]);
  if (s.grid[1] > grid_yz_max || s.grid[2] > grid_yz_max) {
    return fail(fmt::format("{}; at most {} in y and z", grid, grid_yz_max),
                "this is CUDA's limit: use the x direction for the long side, which takes 2^31 - 1");
  }
  if (std::uint64_t(s.grid[0]) * s.grid[1] > 0x7fffffffu || count(s.grid) > 0x7fffffffu) {
    return fail(grid + "; at most 2^31 - 1", "launch fewer blocks, each with more work");
  }
  if (s.shared_bytes > shared_bytes_max) {
    return fail(fmt::format("{} bytes of shared memory; at most {}", s.shared_bytes, shared_bytes_max),
                "lower the launch's option shared");
  }
  if (s.cooperative && arch().empty() && count(s.grid) > cooperative_blocks_max) {
    return fail(fmt::format("a cooperative launch of {} blocks; at most {} run at once on a CPU", count(s.grid),
                            cooperative_blocks_max),
                "launch fewer blocks, each with more work");
  }
  return success();
}

Result<> Kernel::run(const LaunchShape& shape, const std::vector<LaunchArgument>& arguments, std::string& said,
                     const std::function<bool()>& stopped) const {
  RunReport report;
  KernelProcess::Texts texts;  // of the report
  if (process_) RILLE_CHECK(process_->run(shape, arguments, stopped, report, texts));
  else run_loaded(*kernel_, parameters_, options_.checked, shape, arguments, *pool_, report);
  said = std::move(report.said);
  if (report.out_of_memory) {
    return make_error(ErrorKind::memory,
                      fmt::format("kernel {}: no memory for the stacks of its threads{}", name_,
                                  checked() ? " or for copies of its arguments, which the option checked makes" : ""),
                      "launch fewer threads in a block, or on smaller tensors, or free memory on this machine");
  }
  if (report.violation.kind != Violation::Kind::none) return error_of(report.violation, shape, arguments, stopped);
  return success();
}

}  // namespace rille::device
