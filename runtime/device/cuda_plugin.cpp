#include "runtime/device/cuda_plugin.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>

namespace rille::device {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> plugin_places() {
  if (const char* named = std::getenv("RILLE_CUDA_PLUGIN"); named && *named) return {named};
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

Result<const cuda::Table*> load_plugin() {
  const auto places = plugin_places();
  if (places.empty()) {
    return make_error(ErrorKind::device, "Rille's CUDA part, librille_cuda.so, is not here",
                      "it lies beside the command or in ../lib of it; RILLE_CUDA_PLUGIN names another place");
  }
  void* const library = ::dlopen(places[0].c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* said = ::dlerror();
    return make_error(ErrorKind::device, fmt::format("{} does not load: {}", places[0], said ? said : "?"));
  }
  const auto entry = reinterpret_cast<cuda::Entry>(::dlsym(library, "rille_cuda_plugin"));
  const auto* table = entry ? entry(sizeof(cuda::Table), RILLE_CUDA_BUILD_ID) : nullptr;
  if (!table) {
    return make_error(ErrorKind::device, fmt::format("{} is of another build of Rille", places[0]),
                      "install the command and its libraries together");
  }
  return table;
}

struct Wanted {
  const char* name;
  const char* what_for;
  std::vector<const char*> files;
};

const std::vector<Wanted>& wanted_libraries() {
  static const std::vector<Wanted> list = {
      {"NVRTC", "user kernels on CUDA devices", {"libnvrtc.so.13", "libnvrtc.so.12"}},
  };
  return list;
}

// DESIGN section 5: beside this program, RILLE_CUDA_PATH, the toolkit, the loader's cache.
std::string find_library(const Wanted& what) {
  std::vector<std::string> folders;
  std::error_code failed;
  const auto self = fs::read_symlink("/proc/self/exe", failed).parent_path();
  folders.push_back((self.parent_path() / "lib").string());
  if (const char* named = std::getenv("RILLE_CUDA_PATH"); named && *named) {
    for (const char* folder : {"/lib64", "/lib", ""}) folders.push_back(std::string(named) + folder);
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  folders.emplace_back("/usr/lib/x86_64-linux-gnu");
  folders.emplace_back("/usr/lib64");
  for (const auto& folder : folders) {
    for (const char* file : what.files) {
      if (fs::exists(folder + "/" + file, failed)) return folder + "/" + file;
    }
  }
  return "";
}

}  // namespace

Result<const cuda::Table*> cuda_plugin() {
  static std::mutex mutex;
  static const cuda::Table* loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (!loaded) {
    RILLE_TRY(loaded, load_plugin());
  }
  return loaded;
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

std::vector<CudaLibrary> cuda_libraries() {
  std::vector<CudaLibrary> found;
  for (const auto& what : wanted_libraries()) found.push_back({what.name, find_library(what), what.what_for});
  return found;
}

}  // namespace rille::device
