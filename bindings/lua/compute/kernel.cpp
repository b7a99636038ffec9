// dev:kernel(source, options): compiles CUDA C++ from a script. The compiler runs on another thread; only the calling
// fiber waits.
#include "bindings/lua/compute/kernel.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "bindings/lua/compute/contained.hpp"
#include "runtime/compute/device/apart/confined.hpp"
#include "runtime/compute/device/cuda.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "runtime/compute/device/kernel_listing.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/loop/thread_job.hpp"

namespace rille::lua {

namespace {

using device::Kernel;
using device::KernelOptions;

// The line in `text` where `source` begins. If `source` occurs several times: the line nearest to `called`. 0:
// absent.
int line_in(std::string_view text, const std::string& source, int called) {
  int best = 0, line = 1;
  std::size_t counted = 0;
  for (auto at = text.find(source); at != text.npos; at = text.find(source, at + 1)) {
    line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                        text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    counted = at;
    if (best == 0 || std::abs(line - called) < std::abs(best - called)) best = line;
  }
  return best;
}

// Finds the line of the script where the kernel source begins, so that compiler messages name the script's lines. The
// calling chunk is searched first; after a tail call its frame is gone, so the other chunks are searched as well. For
// a source that the script composed at run time, lines count from 1.
void find_source(lua_State* L, const std::string& source, KernelOptions& options) {
  options.file = "kernel source";
  if (source.empty()) return;
  std::string shown = script_position(L);
  const auto colon = shown.rfind(':');
  const int called = colon == shown.npos ? 1 : std::atoi(shown.c_str() + colon + 1);
  if (colon != shown.npos) shown.resize(colon);
  for (const bool caller : {true, false}) {
    for (const auto& [name, chunk] : LuaHost::of(L).chunks()) {
      const std::string file = name.substr(name.find_first_not_of("@="));
      if ((file == shown) != caller) continue;
      const int line = line_in(LuaHost::of(L).source_of(chunk), source, called);
      if (!line) continue;
      options.file = file;
      options.line = line;
      return;
    }
  }
}

std::string define_value(lua_State* L, const std::string& name) {
  switch (lua_type(L, -1)) {
    case LUA_TBOOLEAN: return lua_toboolean(L, -1) ? "1" : "0";
    case LUA_TNUMBER: {
      const double n = lua_tonumber(L, -1);
      return n == std::floor(n) && std::fabs(n) < 1e15 ? fmt::format("{:.0f}", n) : fmt::format("{:.17g}", n);
    }
    case LUA_TSTRING: {
      const std::string text(check_text(L, -1, "a define"));
      if (text.find('\n') != text.npos)
        raise_invalid(L, fmt::format("kernel: the define {} has more than one line", name),
                      "put that text into the kernel source instead");
      return text;
    }
    default:
      raise_invalid(L, fmt::format("kernel: the define {} is {}", name, describe(L, -1)),
                    "use a number, a boolean, or a string, whose text the compiler sees");
  }
}

// Calls f(name) for each string key of the options' table `key`, with the entry's value on top of the stack.
template <class F>
void each_named(lua_State* L, int options, const char* key, F f) {
  lua_getfield(L, options, key);
  if (!lua_isnil(L, -1)) {
    check_table(L, -1, key);
    const int table = lua_gettop(L);
    std::vector<std::string> names;
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
      if (lua_type(L, -2) != LUA_TSTRING)
        raise_invalid(L, fmt::format("kernel: {} has the key {}", key, describe(L, -2)),
                      "this option is a table of names and values: { NAME = 1 }");
      names.emplace_back(lua_tostring(L, -2));
    }
    // sorted names give the same text, and so the same cache file, in every process
    std::sort(names.begin(), names.end());
    for (const auto& name : names) {
      const bool plain =
          name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == name.npos;
      if (!plain) raise_invalid(L, fmt::format("kernel: {}: '{}' is not a valid name", key, name));
      lua_getfield(L, table, name.c_str());
      f(name);
      lua_pop(L, 1);
    }
  }
  lua_pop(L, 1);
}

std::vector<double> numbers_of(lua_State* L, const std::string& name) {
  std::vector<double> out;
  const std::string what = "the constant " + name;
  if (!lua_istable(L, -1)) return {check_number(L, -1, what.c_str())};
  for (std::size_t i = 1, n = lua_objlen(L, -1); i <= n; ++i) {
    lua_rawgeti(L, -1, static_cast<int>(i));
    if (lua_istable(L, -1)) {
      const auto inner = numbers_of(L, name);
      out.insert(out.end(), inner.begin(), inner.end());
    } else {
      out.push_back(check_number(L, -1, what.c_str()));
    }
    lua_pop(L, 1);
  }
  return out;
}

// Returns the kernel's name: name = "scale", template = {"float", 4} gives "scale<float, 4>".
std::string name_of_options(lua_State* L, int options) {
  std::string name = option_text(L, options, "name").value_or("");
  lua_getfield(L, options, "template");
  if (!lua_isnil(L, -1)) {
    check_table(L, -1, "kernel: template");
    if (name.empty())
      raise_invalid(L, "kernel: the option template needs the option name",
                    "name = \"scale\", template = {\"float\", 4}");
    name += "<";
    for (std::size_t i = 1, n = lua_objlen(L, -1); i <= n; ++i) {
      lua_rawgeti(L, -1, static_cast<int>(i));
      name += (i > 1 ? ", " : "") + define_value(L, "template");
      lua_pop(L, 1);
    }
    name += ">";
  }
  lua_pop(L, 1);
  return name;
}

KernelOptions read_options(lua_State* L, int index, const char* verb) {
  KernelOptions out;
  const std::string home = default_home();
  out.cache = home.empty() ? "" : home + "/cache/kernels";
  if (lua_isnoneornil(L, index)) return out;
  check_table(L, index, verb);
  check_known(L, index, verb, {"name", "template", "defines", "constants", "options", "checked", "file"}, false);
  out.name = name_of_options(L, index);
  out.checked = option_bool(L, index, "checked", false);
  each_named(L, index, "defines", [&](const std::string& key) { out.defines.emplace_back(key, define_value(L, key)); });
  each_named(L, index, "constants", [&](const std::string& key) {
    out.constants.push_back({key, numbers_of(L, key)});
  });
  lua_getfield(L, index, "options");
  if (!lua_isnil(L, -1)) {
    check_table(L, -1, "kernel: options");
    for (std::size_t i = 1, n = lua_objlen(L, -1); i <= n; ++i) {
      lua_rawgeti(L, -1, static_cast<int>(i));
      out.flags.emplace_back(check_text(L, -1, "kernel: an option"));
      lua_pop(L, 1);
    }
  }
  lua_pop(L, 1);
  return out;
}

// Compiles for the architecture of the device that `kernel` was called on.
void choose_device(lua_State* L, KernelOptions& options) {
  const auto& device = device_graph(L, 1, "kernel").device();
  if (const auto* cuda = dynamic_cast<const device::CudaDevice*>(device.get())) options.arch = cuda->arch();
}

struct Request {
  std::string source, path;  // exactly one of them is set
  KernelOptions options;
};

Result<std::shared_ptr<Kernel>> compile(Request& r) {
  if (!r.path.empty()) {
    auto text = device::read_small_file(r.path, device::kernel_source_bytes_max);
    if (!text) return std::move(text).error();
    r.source = std::move(*text);
    r.options.file = r.path;
  }
  return Kernel::compile(r.source, r.options);
}

Async<std::shared_ptr<Kernel>> compile_on_thread(Loop& loop, Request request) {
  std::function<Result<std::shared_ptr<Kernel>>()> job = [request = std::move(request)]() mutable {
    return compile(request);
  };
  co_return co_await thread_job(loop, std::move(job));
}

// Compiles one kernel of a run at a time, so that a script under limits leaves threads of the pool to other runs.
Async<std::shared_ptr<Kernel>> compile_in_turn(Loop& loop, Request request, std::optional<Future<bool>> before,
                                               Future<bool> mine) {
  struct Leaves {
    Future<bool> turn;
    ~Leaves() { turn.set(true); }
  } leaves{std::move(mine)};
  if (before) co_await *before;
  co_return co_await compile_on_thread(loop, std::move(request));
}

// Chooses the folder in which #include "x.h" of the source is searched first. For a confined kernel only a
// folder that the script may read: a grant may cover the kernel's file alone.
void choose_folder(lua_State* L, Request& request) {
  LuaHost& host = LuaHost::of(L);
  std::string& folder = request.options.folder;
  folder = host.options().script_directory;
  if (!request.path.empty()) {
    folder = std::filesystem::path(request.path).parent_path().string();
    if (folder.empty()) folder = ".";
  }
  if (request.options.confined && !host.grants().read_code(folder, host.options().script_directory)) folder.clear();
}

const char key_contained = 0;  // in the registry: true after contain_kernels()

bool contained(lua_State* L) {
  lua_pushlightuserdata(L, const_cast<char*>(&key_contained));
  lua_rawget(L, LUA_REGISTRYINDEX);
  const bool yes = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return yes;
}

// Whether one of Rille's own Lua modules, such as dev:elementwise, makes the kernel.
bool made_by_rille(lua_State* L) {
  lua_Debug caller{};
  if (!lua_getstack(L, 1, &caller) || !lua_getinfo(L, "S", &caller)) return false;
  return std::string_view(caller.short_src).starts_with("[rille.");
}

// A kernel is native code, to which no limit and no other grant applies. So on the CPU it runs in a confined process if
// the script is under limits. At the prompt a kernel of the user's runs in a process of its own, so that a fault in it
// does not end the session.
void check_grant(lua_State* L, Request& request) {
  LuaHost& host = LuaHost::of(L);
  value_or_raise(L, host.grants().kernels("dev:kernel"));
  KernelOptions& options = request.options;
  options.confined = options.arch.empty() && host.options().under_limits;
  const bool apart = options.arch.empty() && contained(L) && !made_by_rille(L);
  options.apart = options.confined || (apart && device::kernel_program());
}

int begin_compile(lua_State* L, Request request) {
  check_grant(L, request);
  choose_folder(L, request);
  if (tensor_state(L).tracing()) {
    raise(L, at_line(L, make_error(ErrorKind::state, "dev:kernel was called inside a compiled function",
                                   "make the kernel before, and launch it inside the function")));
  }
  LuaHost& host = LuaHost::of(L);
  request.options.stopped = [work = std::weak_ptr(host.work()), ends = host.work()->ends()] {
    const auto asked = work.lock();
    return !asked || asked->ended_since(ends);
  };
  request.options.computed = processor_time_counter(L);
  if (const auto& disk = host.options().disk)
    request.options.disk = [disk](std::int64_t bytes) { return disk->take(bytes); };
  std::optional<Future<bool>> before;
  Future<bool> mine(host.loop());
  if (request.options.confined) before = std::exchange(tensor_state(L).compiling, mine);
  return await(L, compile_in_turn(host.loop(), std::move(request), std::move(before), std::move(mine)),
               [graph = device_graph(L, 1, "kernel").shared_from_this()](lua_State* l, std::shared_ptr<Kernel> k) {
                 return push_kernel(l, {std::move(k), graph});
               });
}

Async<device::Cubin> cubin_on_thread(Loop& loop, std::shared_ptr<Kernel> kernel, std::string arch) {
  std::function<Result<device::Cubin>()> job = [kernel, arch] { return kernel->cubin(arch); };
  co_return co_await thread_job(loop, std::move(job));
}

Async<std::string> listing_on_thread(Loop& loop, std::shared_ptr<Kernel> kernel, std::string arch) {
  std::function<Result<std::string>()> job = [kernel, arch]() -> Result<std::string> {
    RILLE_TRY(const device::Cubin built, kernel->cubin(arch));
    return device::machine_code_text(built.image, kernel->name());
  };
  co_return co_await thread_job(loop, std::move(job));
}

int push_text(lua_State* L, std::string text) {
  push(L, text);
  return 1;
}

int push_image(lua_State* L, device::Cubin built) { return push_text(L, std::move(built.image)); }

// The architecture at argument 2: "sm_90a".
std::string check_arch(lua_State* L, const char* verb) {
  std::string arch(check_text(L, 2, fmt::format("{}: the architecture", verb).c_str()));
  const bool known = arch.starts_with("sm_") && arch.size() >= 5 && arch.size() <= 8 &&
                     arch.find_first_not_of("0123456789af", 3) == arch.npos;
  if (!known)
    raise_invalid(L, fmt::format("{}: '{}' is not a GPU architecture", verb, arch),
                  "\"sm_80\", \"sm_90a\", \"sm_120\"");
  return arch;
}

// Without an argument: the kernel's own GPU; of a kernel for the CPU an H100.
std::string listed_arch(lua_State* L, const char* verb, const Kernel& kernel) {
  if (!lua_isnoneornil(L, 2)) return check_arch(L, verb);
  return kernel.arch().empty() ? "sm_90" : kernel.arch();
}

// Resolves a relative path against the script's folder, where files need no grant.
std::string beside_script(lua_State* L, const std::string& path) {
  return path.empty() ? path : value_or_raise(L, LuaHost::of(L).code_path(path));
}

}  // namespace

void contain_kernels(lua_State* L) {
  lua_pushlightuserdata(L, const_cast<char*>(&key_contained));
  lua_pushboolean(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
}

int device_kernel(lua_State* L) {  // dev:kernel(source, {..}), dev:kernel{file = "x.cu", ..}
  Request request;
  if (lua_istable(L, 2)) {
    request.options = read_options(L, 2, "kernel");
    const auto file = option_text(L, 2, "file");
    if (!file)
      raise_invalid(L, "kernel: neither a source nor a file is given",
                    "dev:kernel(source), or dev:kernel{file = \"x.cu\"}");
    request.path = beside_script(L, *file);
  } else {
    request.source = check_text(L, 2, "kernel: the source");
    request.options = read_options(L, 3, "kernel");
    if (lua_istable(L, 3) && option_text(L, 3, "file"))
      raise_invalid(L, "kernel: both a source and a file are given", "give one of them");
  }
  choose_device(L, request.options);
  if (request.path.empty()) find_source(L, request.source, request.options);
  return begin_compile(L, std::move(request));
}

int device_kernel_file(lua_State* L) {  // dev:kernel_file(path, {..})
  Request request;
  request.path = beside_script(L, std::string(check_text(L, 2, "kernel_file: the path")));
  request.options = read_options(L, 3, "kernel_file");
  choose_device(L, request.options);
  return begin_compile(L, std::move(request));
}

int kernel_cubin(lua_State* L) {  // k:cubin("sm_90a") -> {image = machine code, name =, cached =}
  auto kernel = check_object<KernelHandle>(L, 1, "cubin").kernel;
  value_or_raise(L, LuaHost::of(L).grants().kernels("kernel:cubin"));
  std::string arch = check_arch(L, "cubin");
  return await(L, cubin_on_thread(LuaHost::of(L).loop(), std::move(kernel), std::move(arch)),
               [](lua_State* l, device::Cubin c) {
                 lua_newtable(l);
                 set_field(l, "image", std::string_view(c.image));
                 set_field(l, "name", std::string_view(c.lowered_name));
                 set_field(l, "cached", c.cached);
                 return 1;
               });
}

int kernel_ptx(lua_State* L) {  // k:ptx("sm_90a") -> NVIDIA's assembly language, as text
  auto kernel = check_object<KernelHandle>(L, 1, "ptx").kernel;
  value_or_raise(L, LuaHost::of(L).grants().kernels("kernel:ptx"));
  std::string arch = "compute_" + listed_arch(L, "ptx", *kernel).substr(3);
  return await(L, cubin_on_thread(LuaHost::of(L).loop(), std::move(kernel), std::move(arch)), push_image);
}

int kernel_sass(lua_State* L) {  // k:sass("sm_90a") -> the GPU's machine code, as text
  auto kernel = check_object<KernelHandle>(L, 1, "sass").kernel;
  value_or_raise(L, LuaHost::of(L).grants().kernels("kernel:sass"));
  std::string arch = listed_arch(L, "sass", *kernel);
  return await(L, listing_on_thread(LuaHost::of(L).loop(), std::move(kernel), std::move(arch)), push_text);
}

}  // namespace rille::lua
