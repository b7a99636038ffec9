#include "runtime/compute/device/cuda_plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "runtime/compute/device/cuda_libraries.hpp"

namespace rille::device {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> places_beside() {
  std::vector<std::string> places;
  std::error_code failed;
  const auto beside = [&](const fs::path& file) {
    const auto folder = file.parent_path();
    for (const auto& place : {folder, folder.parent_path() / "lib", folder / "rille"}) {
      const auto candidate = place / "librille_cuda.so";
      if (fs::exists(candidate, failed)) places.push_back(candidate.string());
    }
  };
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&cuda_plugin), &info) && info.dli_fname)
    beside(fs::canonical(info.dli_fname, failed));
  beside(fs::read_symlink("/proc/self/exe", failed));
  return places;
}

std::vector<std::string> plugin_places() {
  if (const char* named = std::getenv("RILLE_CUDA_PLUGIN"); named && *named) return {named};
  return places_beside();
}

Result<const cuda::Table*> load_plugin() {
  const auto places = plugin_places();
  if (places.empty()) {
    return make_error(
        ErrorKind::device, "Rille's CUDA part, librille_cuda.so, is not found",
        "it belongs beside the rille command or in ../lib from there; RILLE_CUDA_PLUGIN names another place");
  }
  void* const library = ::dlopen(places[0].c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* said = ::dlerror();
    return make_error(ErrorKind::device, fmt::format("{} does not load: {}", places[0], said ? said : "?"),
                      "install the command and its libraries together; RILLE_DEVICE=cpu works without it");
  }
  const auto entry = reinterpret_cast<cuda::Entry>(::dlsym(library, "rille_cuda_plugin"));
  const auto* table = entry ? entry(sizeof(cuda::Table), RILLE_CUDA_BUILD_ID) : nullptr;
  if (!table) {
    return make_error(ErrorKind::device, fmt::format("{} belongs to another build of Rille", places[0]),
                      "install the command and its libraries together");
  }
  return table;
}

}  // namespace

Result<const cuda::Table*> cuda_plugin() {
  static std::mutex mutex;
  static const cuda::Table* loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (!loaded) { RILLE_TRY(loaded, load_plugin()); }
  return loaded;
}

std::string cuda_plugin_place() {
  const auto places = plugin_places();
  return places.empty() ? "" : places[0];
}

std::string cuda_plugin_beside() {
  const auto places = places_beside();
  return places.empty() ? "" : places[0];
}

Result<cuda::Kernels> cuda_kernels() {
  RILLE_TRY(const auto* table, cuda_plugin());
  cuda::Kernels out;
  table->kernels(&out);
  return out;
}

Error cuda_error(const cuda::Failure& f) {
  Error e = make_error(ErrorKind(f.kind), f.message, f.hint);
  if (f.code) e.code = fmt::format("cuda_{}", f.code);
  return e;
}

Result<cuda::DriverInfo> cuda_driver() {
  RILLE_TRY(const auto* table, cuda_plugin());
  cuda::DriverInfo info;
  cuda::Failure why;
  if (!table->start(&info, &why)) return cuda_error(why);
  set_cuda_driver(info.version);
  return info;
}

Result<std::vector<CudaCard>> cuda_cards() {
  RILLE_TRY(const auto driver, cuda_driver());
  RILLE_TRY(const auto* table, cuda_plugin());
  std::vector<CudaCard> cards;
  for (int i = 0; i < driver.cards; ++i) {
    CudaCard card{i, {}};
    cuda::Failure why;
    if (!table->describe(i, &card.info, &why)) return cuda_error(why);
    cards.push_back(card);
  }
  return cards;
}

}  // namespace rille::device
