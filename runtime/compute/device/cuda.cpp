#include "runtime/compute/device/cuda.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/compute/device/cuda_kernels.hpp"
#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "runtime/compute/device/lane.hpp"
#include "runtime/compute/device/nvrtc_library.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::device {

class CudaDevice::Sequence final : public Captured {
 public:
  Sequence(std::shared_ptr<CudaDevice> device, cuda::Sequence* handle) : device_(std::move(device)), handle_(handle) {}
  ~Sequence() override { device_->table_->drop(device_->handle_, handle_); }
  cuda::Sequence* handle() const { return handle_; }

 private:
  std::shared_ptr<CudaDevice> device_;
  cuda::Sequence* handle_;
};

namespace {

Result<CudaCard> choose_card(std::string_view name) {
  RILLE_TRY(const auto cards, cuda_cards());
  std::string known;
  for (const auto& c : cards) known += fmt::format("{}cuda:{} ({})", known.empty() ? "" : ", ", c.ordinal, c.info.name);
  const auto which = name.size() > 5 ? name.substr(5) : std::string_view("0");
  int ordinal = -1;
  const auto [end, failed] = std::from_chars(which.data(), which.data() + which.size(), ordinal);
  const bool number = failed == std::errc() && end == which.data() + which.size();
  for (const auto& c : cards)
    if (number ? c.ordinal == ordinal : which == c.info.uuid) return c;
  return make_error(
      ErrorKind::device, fmt::format("there is no device '{}' here", name),
      cards.empty() ? "the driver sees no GPU: look at CUDA_VISIBLE_DEVICES and at nvidia-smi" : "there are " + known);
}

}  // namespace

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(std::string_view name) {
  if (name != "cuda" && !name.starts_with("cuda:")) {
    return make_error(ErrorKind::invalid, fmt::format("'{}' is not the name of a CUDA device", name), "\"cuda:0\"");
  }
  auto chosen = choose_card(name);
  if (!chosen) {
    Error e = std::move(chosen).error();
    if (!e.message.starts_with("there is no device"))
      e.message = fmt::format("there is no device '{}' here: {}", name, e.message);
    return e;
  }
  const CudaCard card = *chosen;
  RILLE_TRY(const auto* table, cuda_plugin());
  cuda::Failure why;
  auto* const handle = table->open(card.ordinal, &why);
  if (!handle) return cuda_error(why);
  return std::shared_ptr<CudaDevice>(new CudaDevice(table, card, handle));
}

CudaDevice::CudaDevice(const cuda::Table* table, const CudaCard& card, cuda::Card* handle)
    : table_(table), card_(card), handle_(handle), lane_(Lane::of_device(fmt::format("rille-cuda{}", card.ordinal))) {}

CudaDevice::~CudaDevice() {
  release_all();
  table_->close(handle_);
}

std::string CudaDevice::name() const { return fmt::format("cuda:{}", card_.ordinal); }

std::string describe(const CudaCard& card) {
  const auto& i = card.info;
  return fmt::format("{}, sm_{}, {} multiprocessors, {}", i.name, i.architecture, i.multiprocessors,
                     format_size_bytes(i.memory_bytes));
}

Result<std::pair<std::int64_t, std::int64_t>> CudaDevice::card_memory() const {
  std::int64_t free_bytes = 0, total_bytes = 0;
  if (!table_->memory(handle_, &free_bytes, &total_bytes)) {
    RILLE_CHECK(usable());
    return make_error(ErrorKind::device, name() + " does not report how much memory is free",
                      "run nvidia-smi to see whether this GPU still answers");
  }
  return std::pair{free_bytes, total_bytes};
}

// The card's free memory, for the message of a failed allocation: other users of the card also take memory.
std::string CudaDevice::memory_beside() const {
  std::int64_t free_bytes = 0, total_bytes = 0;
  if (!table_->memory(handle_, &free_bytes, &total_bytes)) return "";
  return fmt::format("; the card has {} free of {}, which all its processes share (nvidia-smi)",
                     format_size_bytes(free_bytes), format_size_bytes(total_bytes));
}

void* CudaDevice::system_allocate(std::size_t bytes) { return table_->allocate(handle_, bytes); }
void CudaDevice::system_free(void* data, std::size_t) { table_->release(handle_, data); }
void CudaDevice::before_frees() { table_->settle(handle_); }
std::uint64_t CudaDevice::stamp() const { return table_->stamp(handle_); }

namespace {

// Demangles a C++ symbol and drops the parameter list: "scale<float>".
std::string kernel_name(const char* symbol) {
  int status = 0;
  const bool mangled = std::strncmp(symbol, "_Z", 2) == 0;  // the demangler reads a plain "f" as the type float
  char* const text = mangled ? abi::__cxa_demangle(symbol, nullptr, nullptr, &status) : nullptr;
  if (!text) return symbol;
  std::string out = text;
  std::free(text);
  if (out.starts_with("void ")) out.erase(0, 5);
  int depth = 0;  // depth of <>: parentheses in template arguments do not end the name
  for (std::size_t i = 0; i < out.size(); ++i) {
    depth += out[i] == '<' ? 1 : out[i] == '>' ? -1 : 0;
    if (out[i] == '(' && depth == 0 && out.compare(i, 11, "(anonymous ") != 0) out.resize(i);
  }
  return out;
}

// Calls call(Failure*) and turns a failure into an Error.
template <class Call>
Result<> checked(const Call& call) {
  cuda::Failure why;
  if (call(&why)) return success();
  return cuda_error(why);
}

// Adds a hint to the error of a kernel that does not load: NVRTC is probably newer than the driver.
Error not_loaded(const std::string& kernel, const std::string& arch, Error e) {
  e.message = fmt::format("kernel {}: {}", kernel, e.message);
  const auto driver = cuda_driver();
  const int made = nvrtc_version();  // 0: NVRTC is not loaded, the kernel came from the disk cache
  // Codes 200 to 299: CUDA_ERROR_INVALID_IMAGE and similar.
  if (!driver || made == 0 || !e.code.starts_with("cuda_2")) return e;
  const int known = driver->version;
  e.hint = fmt::format(
      "NVRTC of CUDA {}.{} compiled it for {}, and the driver knows CUDA {}.{}: update the driver, or let "
      "RILLE_CUDA_PATH name a folder with the NVRTC of CUDA {}",
      made / 1000, made % 1000 / 10, arch, known / 1000, known % 1000 / 10, known / 1000);
  return e;
}

}  // namespace

Result<> CudaDevice::usable() const {
  return checked([&](auto* f) { return table_->alive(handle_, f); });
}

Result<> CudaDevice::upload(const Buffer& to, const void* from, std::size_t bytes) {
  if (bytes == 0) return success();
  return checked([&](auto* f) { return table_->upload(handle_, to.data(), from, bytes, to.stamp(), f); });
}

Result<> CudaDevice::download(void* to, const void* from, std::size_t bytes) {
  return checked([&](auto* f) { return table_->download(handle_, to, from, bytes, f); });
}

Result<> CudaDevice::clear(void* at, std::size_t bytes) {
  return checked([&](auto* f) { return table_->clear(handle_, at, bytes, f); });
}

Result<> CudaDevice::send(Device& other, const Buffer& to, const void* from, std::size_t bytes) {
  auto* const there = static_cast<CudaDevice&>(other).handle_;
  return checked([&](auto* f) { return table_->send(handle_, there, to.data(), from, bytes, to.stamp(), f); });
}

Result<> CudaDevice::finish() {
  return checked([&](auto* f) { return table_->finish(handle_, f); });
}

bool CudaDevice::knows(kernels::OpId op) const { return op == kernels::OpId::launch || table_->knows(op); }

// Called before the first operation: if no built-in image fits the GPU, compiles Rille's kernels for it. A failure is
// stored in no_kernels_ and returned again by later calls.
Result<> CudaDevice::make_kernels() {
  if (no_kernels_) return *no_kernels_;
  const auto give = [this]() -> Result<> {
    RILLE_TRY(const auto sources, CudaSources::of_plugin());
    RILLE_TRY(const auto images, compile_kernels(sources, card_.info.architecture, KernelFiles::default_directory(),
                                                 int(std::thread::hardware_concurrency())));
    for (const auto& image : images)
      RILLE_CHECK(checked([&](auto* f) { return table_->give_kernels(handle_, image.data(), f); }));
    return success();
  };
  if (table_->wants_kernels(handle_)) {
    if (Result<> given = give(); !given) {
      no_kernels_ = given.error();
      return given;
    }
  }
  has_kernels_ = true;
  return success();
}

Result<> CudaDevice::run(kernels::OpId op, const kernels::Call& call) {
  if (op == kernels::OpId::launch) {  // the payload calls launch()
    call.payload->run(call);
    return success();
  }
  if (!has_kernels_) RILLE_CHECK(make_kernels());
  if (op == kernels::OpId::fused) prepare(static_cast<const Group&>(*call.payload), call);
  const auto run = [&](auto* f) { return table_->run(handle_, op, &call, f); };
  auto ran = checked(run);
  if (ran || ran.error().kind != ErrorKind::memory) return ran;
  release_cache();  // cached buffers cannot serve as scratch memory: free them and try again
  ran = checked(run);
  if (ran || ran.error().kind != ErrorKind::memory) return ran;
  Error e = std::move(ran).error();
  e.message = fmt::format("{}: {}", kernels::kernel_name(op), e.message);
  e.hint = "live by size: " + memory_summary() + ". Use a smaller batch, or free tensors";
  return e;
}

class CudaDevice::LoadedKernel {
 public:
  LoadedKernel(std::shared_ptr<CudaDevice> device, cuda::Function* function)
      : device_(std::move(device)), function_(function) {}
  ~LoadedKernel() { device_->table_->unload(device_->handle_, function_); }
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;
  cuda::Function* function() const { return function_; }

 private:
  std::shared_ptr<CudaDevice> device_;
  cuda::Function* function_;
};

std::string CudaDevice::arch() const { return fmt::format("sm_{}", card_.info.architecture); }

Result<std::shared_ptr<void>> CudaDevice::load(const Kernel& kernel) {
  cuda::Failure why;
  auto* const function = table_->load(handle_, kernel.built().image.data(), kernel.built().lowered_name.c_str(), &why);
  if (!function) return not_loaded(kernel.name(), arch(), cuda_error(why));
  auto loaded = std::make_shared<LoadedKernel>(std::static_pointer_cast<CudaDevice>(shared_from_this()), function);
  for (const auto& c : kernel.constants()) {
    auto set = checked([&](auto* f) {
      return table_->set_constant(handle_, function, c.symbol.c_str(), c.bytes.data(), c.bytes.size(), f);
    });
    if (set) continue;
    Error e = std::move(set).error();
    e.message = fmt::format("kernel {}: constant {}", kernel.name(), e.message);
    return e;
  }
  kernel.keep_loaded(this, loaded);
  return std::shared_ptr<void>(std::move(loaded));
}

std::string CudaDevice::why_one_by_one() const {
  const std::lock_guard lock(mutex_);
  return one_by_one_;
}

std::vector<Fallback> CudaDevice::fallbacks() const {
  std::vector<Fallback> out;
  const auto each = [](void* to, const cuda::Fallback* f) {
    static_cast<std::vector<Fallback>*>(to)->push_back({f->library, f->operation, f->why, f->calls});
  };
  table_->fallbacks(handle_, each, &out);
  return out;
}

// Compiles a group's kernel before its first run. If this fails, the group's operations run one by one.
void CudaDevice::prepare(const Group& group, const kernels::Call& call) {
  if (std::exchange(group.tried, true)) return;
  const std::string source = group_source(group, call);
  auto& known = groups_[source];
  group.loaded = known.lock();
  if (!group.loaded) {
    auto made = load_group(source);
    if (!made) {
      const std::lock_guard lock(mutex_);
      if (one_by_one_.empty()) one_by_one_ = made.error().message;
      return;
    }
    known = group.loaded = *made;
  }
  group.function = static_cast<LoadedKernel*>(group.loaded.get())->function();
}

Result<std::shared_ptr<void>> CudaDevice::load_group(const std::string& source) {
  RILLE_TRY(const auto built, build_group(source, arch(), KernelFiles::default_directory()));
  cuda::Failure why;
  auto* const function = table_->load(handle_, built.image.data(), built.lowered_name.c_str(), &why);
  if (!function) return not_loaded("rille_group", arch(), cuda_error(why));
  return std::shared_ptr<void>(
      std::make_shared<LoadedKernel>(std::static_pointer_cast<CudaDevice>(shared_from_this()), function));
}

Result<> CudaDevice::launch(const Kernel& kernel, const LaunchShape& shape,
                            const std::vector<LaunchArgument>& arguments) {
  auto loaded = kernel.loaded_on(this);
  if (!loaded) { RILLE_TRY(loaded, load(kernel)); }
  void* values[rille_abi::parameters_max + 1];
  if (arguments.size() > rille_abi::parameters_max) {
    return make_error(ErrorKind::invalid,
                      fmt::format("kernel {} has {} parameters; at most {} can be launched", kernel.name(),
                                  arguments.size(), rille_abi::parameters_max),
                      "pass several of the numbers in one tensor");
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto& a = const_cast<LaunchArgument&>(arguments[i]);
    values[i] = kernel.parameters()[i].pointer ? static_cast<void*>(&a.pointer) : static_cast<void*>(a.value);
  }
  const cuda::Shape s{{shape.grid[0], shape.grid[1], shape.grid[2]},
                      {shape.block[0], shape.block[1], shape.block[2]},
                      shape.shared_bytes,
                      shape.cooperative,
                      chosen_};
  auto* const function = static_cast<LoadedKernel*>(loaded.get())->function();
  auto launched = checked([&](auto* f) { return table_->launch(handle_, function, &s, values, f); });
  if (launched) return launched;
  Error e = std::move(launched).error();
  e.message = fmt::format("kernel {}: {}", kernel.name(), e.message);
  return e;
}

Result<int> CudaDevice::suggested_block(const Kernel& kernel) {
  auto loaded = kernel.loaded_on(this);
  if (!loaded) { RILLE_TRY(loaded, load(kernel)); }
  int threads = 0;
  auto* const function = static_cast<LoadedKernel*>(loaded.get())->function();
  RILLE_CHECK(checked([&](auto* f) { return table_->suggest_block(handle_, function, &threads, f); }));
  return threads;
}

Result<> CudaDevice::copy(void* to, const void* from, std::size_t bytes) {
  return checked([&](auto* f) { return table_->copy(handle_, to, from, bytes, f); });
}

Result<> CudaDevice::begin_capture() {
  return checked([&](auto* f) { return table_->begin_capture(handle_, f); });
}

Result<std::shared_ptr<Captured>> CudaDevice::end_capture() {
  cuda::Failure why;
  auto* const handle = table_->end_capture(handle_, &why);
  if (!handle) return cuda_error(why);
  return std::shared_ptr<Captured>(
      std::make_shared<Sequence>(std::static_pointer_cast<CudaDevice>(shared_from_this()), handle));
}

Result<> CudaDevice::replay(Captured& captured, std::uint64_t seed, std::uint64_t step) {
  auto* const handle = static_cast<Sequence&>(captured).handle();
  return checked([&](auto* f) { return table_->replay(handle_, handle, seed, step, f); });
}

Result<> CudaDevice::pace() {
  return checked([&](auto* f) { return table_->pace(handle_, f); });
}

Result<> CudaDevice::start_clock() {
  return checked([&](auto* f) { return table_->start_clock(handle_, f); });
}

Result<> CudaDevice::trace_start() {
  return checked([&](auto* f) { return table_->trace_start(handle_, f); });
}

void CudaDevice::trace_call(std::uint64_t call) { table_->trace_call(handle_, call); }

Result<std::vector<Traced>> CudaDevice::trace_stop() {
  std::vector<Traced> out;
  const auto each = [](void* to, const cuda::TraceRecord* r) {
    static_cast<std::vector<Traced>*>(to)->push_back({r->call, kernel_name(r->name), r->ns, r->bytes});
  };
  RILLE_CHECK(checked([&](auto* f) { return table_->trace_stop(handle_, each, &out, f); }));
  return out;
}

Result<std::int64_t> CudaDevice::stop_clock_ns() {
  std::int64_t ns = 0;
  RILLE_CHECK(checked([&](auto* f) { return table_->stop_clock(handle_, &ns, f); }));
  return ns;
}

}  // namespace rille::device
