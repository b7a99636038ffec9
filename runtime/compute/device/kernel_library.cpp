#include "runtime/compute/device/kernel_library.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace rille::device {

namespace {

Error not_loaded(const std::string& name, const char* said) {
  constexpr std::string_view undefined = "undefined symbol: ";
  const char* at = said ? std::strstr(said, undefined.data()) : nullptr;
  if (!at) {
    return make_error(
        ErrorKind::device,
        fmt::format("kernel {}: the compiled library does not load: {}", name, said ? said : "no reason given"),
        "the cache must lie on a file system that allows programs; RILLE_HOME names another place");
  }
  std::string symbol(at + undefined.size());
  int status = 0;
  char* text = symbol.starts_with("_Z") ? abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status) : nullptr;
  if (text) symbol = text;
  std::free(text);
  Error e =
      make_error(ErrorKind::invalid, fmt::format("kernel {}: {} is declared, but defined nowhere", name, symbol),
                 "no library is linked to a kernel: define the name in the source, or include a file that defines it");
  e.code = "kernel_compile";
  return e;
}

}  // namespace

Result<LoadedLibrary> load_library(const std::string& path, const std::string& name) {
  LoadedLibrary loaded;
  loaded.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded.handle) return not_loaded(name, ::dlerror());
  loaded.kernel = static_cast<const rille_abi::Kernel*>(::dlsym(loaded.handle, "rille_kernel"));
  Error e;
  if (!loaded.kernel || loaded.kernel->version != rille_abi::version) {
    e = make_error(
        ErrorKind::integrity,
        fmt::format("kernel {}: the compiled file {} has been changed or damaged: delete it and compile again", name,
                    path));
  } else if (loaded.kernel->parameters > rille_abi::parameters_max) {
    e = make_error(ErrorKind::invalid,
                   fmt::format("kernel {} has {} parameters; at most {} can be launched", name,
                               loaded.kernel->parameters, rille_abi::parameters_max),
                   "pass several of the numbers in one tensor");
  } else {
    return loaded;
  }
  ::dlclose(loaded.handle);
  return e;
}

}  // namespace rille::device
