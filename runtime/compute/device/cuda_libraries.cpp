#include "runtime/compute/device/cuda_libraries.hpp"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace rille::device {

namespace {

constexpr CudaPartInfo parts[] = {
    {"cuBLASLt",
     "cublaslt",
     {"libcublasLt.so.13", "libcublasLt.so.12"},
     {13, 12},
     "cublas",
     "nvidia-cublas",
     "matrix products on GPUs by Rille's own kernels, which are slower"},
    {"cuDNN",
     "cudnn",
     {"libcudnn.so.9"},
     {},
     "cudnn",
     "nvidia-cudnn",
     "convolutions on GPUs by Rille's own kernels, which are slower"},
    {"cuFFT",
     "cufft",
     {"libcufft.so.12", "libcufft.so.11"},
     {13, 12},
     "cufft",
     "nvidia-cufft",
     "Fourier transforms on GPUs by Rille's own kernels, which are slower for large and odd sizes"},
    {"CUPTI",
     "cupti",
     {"libcupti.so.13", "libcupti.so.12"},
     {13, 12},
     "cuda_cupti",
     "nvidia-cuda-cupti",
     "dev:profile on GPUs times by events around each call and shows no kernels"},
    {"NCCL",
     "nccl",
     {"libnccl.so.2"},
     {},
     "nccl",
     "nvidia-nccl",
     "communicators between GPUs: those of the CPU work (device = \"cpu\")"},
    {"NVRTC",
     "nvrtc",
     {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
     {13, 12},
     "cuda_nvrtc",
     "nvidia-cuda-nvrtc",
     "on GPUs no user kernels (dev:kernel, k:cubin), and joined operations run one by one"}};

std::atomic<int> driver_version{0};

bool too_new(int cuda) { return cuda && driver_version && cuda > driver_version / 1000; }

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string real(const std::string& path) {
  char out[PATH_MAX];
  return ::realpath(path.c_str(), out) ? out : "";
}

std::string parent(const std::string& path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

struct Folder {
  std::string path;
  const char* source;
};

// Adds the library folders of the bundle (docs/design/bundle.md) that contains this code; a bundle has a MANIFEST.json.
void add_bundle(std::vector<Folder>& out) {
  Dl_info here;
  if (!::dladdr(reinterpret_cast<const void*>(&add_bundle), &here) || !here.dli_fname) return;
  const std::string root = parent(parent(real(here.dli_fname)));
  if (root.empty() || ::access((root + "/MANIFEST.json").c_str(), R_OK) != 0) return;
  for (const char* below : {"/lib/cuda/", "/lib/"}) out.push_back({root + below, "the bundle"});
}

void add_toolkit(std::vector<Folder>& out, const std::string& root, const char* source) {
  if (root.empty()) return;
  for (const char* below : {"/lib64/", "/lib/", "/targets/x86_64-linux/lib/", "/extras/CUPTI/lib64/", "/"})
    out.push_back({root + below, source});
}

// Returns the target of a symbolic link without following further links; "": `link` is not a link.
std::string next_of(const std::string& link) {
  char out[PATH_MAX];
  const auto n = ::readlink(link.c_str(), out, sizeof out);
  if (n <= 0) return "";
  const std::string to(out, std::size_t(n));
  return to[0] == '/' ? to : parent(link) + "/" + to;
}

// The roots of Python installations: the active environment, the first python3 in $PATH, ~/.local, /usr/local and /usr.
// The python3 in $PATH may be a chain of links through environments: every step's root counts.
std::vector<std::string> python_roots() {
  std::vector<std::string> out = {environment("VIRTUAL_ENV"), environment("CONDA_PREFIX")};
  const std::string path = environment("PATH");
  for (std::size_t at = 0; at < path.size();) {
    const auto end = std::min(path.find(':', at), path.size());
    const std::string python = path.substr(at, end - at) + "/python3";
    at = end + 1;
    if (::access(python.c_str(), X_OK) != 0) continue;
    std::string link = python;
    for (int steps = 0; !link.empty() && steps < 16; ++steps, link = next_of(link)) out.push_back(parent(parent(link)));
    out.push_back(parent(parent(real(python))));
    break;
  }
  if (const auto home = environment("HOME"); !home.empty()) out.push_back(home + "/.local");
  out.insert(out.end(), {"/usr/local", "/usr"});
  return out;
}

void add_wheels(std::vector<Folder>& out, const char* wheel) {
  for (const auto& root : python_roots()) {
    if (root.empty()) continue;
    for (const std::string name : {"cu13", wheel}) {
      glob_t found{};
      if (::glob((root + "/lib/python3*/*-packages/nvidia/" + name + "/lib/").c_str(), 0, nullptr, &found) == 0)
        for (std::size_t i = 0; i < found.gl_pathc; ++i) out.push_back({found.gl_pathv[i], "Python's wheels"});
      ::globfree(&found);
    }
  }
}

// The CUDA version of a library file, from the name of the file that the link leads to: libnvrtc.so may link to
// libnvrtc.so.13.0.88. A name without a version counts as the newest version.
int cuda_of(const CudaPartInfo& info, const std::string& path) {
  for (const std::string& whole : {real(path), path}) {
    const std::string name = whole.substr(whole.find_last_of('/') + 1);
    for (std::size_t i = 0; i < std::size(info.files); ++i)
      if (info.files[i] && name.starts_with(info.files[i])) return info.cuda[i] ? info.cuda[i] : info.cuda[0];
  }
  return 0;
}

void newest_last(const CudaPartInfo& info, std::vector<CudaPartFile>& files) {
  std::stable_partition(files.begin(), files.end(), [&](const auto& f) { return !too_new(cuda_of(info, f.path)); });
}

// The error for a missing library: "libcudnn.so.9: not in RILLE_CUDA_PATH (/opt/cuda), Python's wheels, ...".
std::string sought(const CudaPartInfo& info) {
  std::string text;
  for (const char* file : info.files)
    if (file) text += std::string(text.empty() ? "" : ", ") + file;
  text += ": not in ";
  if (const auto named = environment("RILLE_CUDA_PATH"); !named.empty()) text += "RILLE_CUDA_PATH (" + named + "), ";
  text += "Python's wheels, the toolkit (";
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const auto root = environment(name); !root.empty()) text += root + ", ";
  return text + "/usr/local/cuda), the loader's folders";
}

// NVRTC loads libnvrtc-builtins by its name alone, and the wheels of CUDA 13 set no search path for it. Loading that
// library first by its path lets NVRTC find it.
void load_companions(const std::string& path) {
  for (const auto& file : companions_of(path)) ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

CudaPartLoaded load(CudaPart part) {
  CudaPartLoaded out;
  const auto& info = info_of(part);
  auto files = files_of(part);
  for (const char* file : info.files)
    if (file) files.push_back({file, "the loader"});
  newest_last(info, files);
  for (const auto& file : files) {
    load_companions(file.path);
    out.handle = ::dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!out.handle) {
      const char* said = ::dlerror();
      const bool named = file.path.find('/') != std::string::npos;
      if (said && named && out.why.empty()) out.why = said;
      continue;
    }
    out.source = file.source;
    const link_map* map = nullptr;
    out.path = ::dlinfo(out.handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0] ? map->l_name : file.path;
    out.cuda = cuda_of(info, out.path);
    out.why.clear();
    break;
  }
  if (!out.handle && out.why.empty()) out.why = sought(info);
  return out;
}

}  // namespace

const CudaPartInfo& info_of(CudaPart part) { return parts[int(part)]; }

std::vector<CudaPartFile> files_of(CudaPart part) {
  std::vector<Folder> folders;
  add_bundle(folders);
  add_toolkit(folders, environment("RILLE_CUDA_PATH"), "RILLE_CUDA_PATH");
  add_wheels(folders, info_of(part).wheel);
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) add_toolkit(folders, environment(name), "the toolkit");
  add_toolkit(folders, "/usr/local/cuda", "the toolkit");
  std::vector<CudaPartFile> out;
  for (const auto& folder : folders) {
    for (const char* file : info_of(part).files)
      if (file && ::access((folder.path + file).c_str(), R_OK) == 0) out.push_back({folder.path + file, folder.source});
  }
  newest_last(info_of(part), out);
  return out;
}

std::vector<std::string> companions_of(const std::string& path) {
  std::vector<std::string> out;
  const auto folder = parent(path);
  if (folder.empty() || path.find("/libnvrtc.so") == std::string::npos) return out;
  for (const std::string& place : {folder, parent(real(path))}) {
    glob_t found{};
    if (::glob((place + "/libnvrtc-builtins.so.*").c_str(), 0, nullptr, &found) == 0)
      for (std::size_t i = 0; i < found.gl_pathc; ++i) out.push_back(found.gl_pathv[i]);
    ::globfree(&found);
    if (!out.empty()) break;
  }
  return out;
}

void set_cuda_driver(int version) { driver_version = version; }

// From CUDA 13 on, wheels have no suffix such as "-cu12"; those of cuDNN and NCCL, not part of the toolkit, keep one.
std::string how_to_get(CudaPart part) {
  const auto& info = info_of(part);
  const int cuda = driver_version ? std::min(driver_version / 1000, 13) : 13;
  const std::string suffix = cuda >= 13 && info.cuda[0] ? "" : "-cu" + std::to_string(cuda);
  return std::string("pip install ") + info.package + suffix +
         ", or install the CUDA toolkit; RILLE_CUDA_PATH can name the library's folder";
}

const CudaPartLoaded& load_part(CudaPart part) {
  static std::mutex mutex;
  static CudaPartLoaded loaded[std::size(cuda_parts)];
  static bool tried[std::size(cuda_parts)] = {};
  const std::lock_guard lock(mutex);
  const int i = int(part);
  if (!tried[i]) loaded[i] = load(part);
  tried[i] = true;
  return loaded[i];
}

namespace {

bool without(const std::string& word) {
  return ("," + environment("RILLE_CUDA_WITHOUT") + ",").find("," + word + ",") != std::string::npos;
}

}  // namespace

bool left_out(CudaPart part) { return without(info_of(part).word); }
bool cuda_headers_left_out() { return without("headers"); }

}  // namespace rille::device
