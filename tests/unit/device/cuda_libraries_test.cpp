// Where NVIDIA's libraries are looked for, and in which order. The files here are empty: nothing loads them.
#include "runtime/compute/device/cuda_libraries.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rille::device {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("rille-libraries-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& below) const {
    fs::create_directories((path / below).parent_path());
    std::ofstream(path / below) << "";
    return (path / below).string();
  }
};

struct Variable {
  const char* name;
  std::string before;
  bool was = false;
  Variable(const char* n, const std::string& value) : name(n) {
    if (const char* had = std::getenv(n)) was = true, before = had;
    ::setenv(n, value.c_str(), 1);
  }
  ~Variable() {
    if (was) ::setenv(name, before.c_str(), 1);
    else ::unsetenv(name);
  }
};

TEST_CASE("CUDA's libraries are looked for in the named folder, then wheels, then the toolkit", "[unit]") {
  const Folder folder;
  const auto root = folder.path.string();
  const std::string named = folder.file("named/lib64/libcufft.so.11"), newer = folder.file("named/lib/libcufft.so.12"),
                    wheel = folder.file("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcufft.so.12"),
                    old_wheel = folder.file("venv/lib/python3.12/site-packages/nvidia/cufft/lib/libcufft.so.11"),
                    toolkit = folder.file("toolkit/targets/x86_64-linux/lib/libcufft.so.12"),
                    cupti = folder.file("toolkit/extras/CUPTI/lib64/libcupti.so.13");
  const Variable a("RILLE_CUDA_PATH", root + "/named"), b("VIRTUAL_ENV", root + "/venv"),
      c("CUDA_HOME", root + "/toolkit"), d("CUDA_PATH", ""), e("CONDA_PREFIX", ""), f("PATH", ""), g("HOME", "");
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& file : files_of(CudaPart::cufft))
    if (file.path.starts_with(root)) found.emplace_back(file.path, file.source);
  CHECK(found == std::vector<std::pair<std::string, std::string>>{{named, "RILLE_CUDA_PATH"},
                                                                  {newer, "RILLE_CUDA_PATH"},
                                                                  {wheel, "Python's wheels"},
                                                                  {old_wheel, "Python's wheels"},
                                                                  {toolkit, "the toolkit"}});
  REQUIRE_FALSE(files_of(CudaPart::cupti).empty());
  CHECK(files_of(CudaPart::cupti)[0].path == cupti);
}

TEST_CASE("the wheels of the first python3 in $PATH are looked at", "[unit]") {
  const Folder folder;
  const auto root = folder.path.string();
  fs::permissions(folder.file("py/bin/python3"), fs::perms::owner_all);
  const auto wheel = folder.file("py/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
  const Variable a("RILLE_CUDA_PATH", ""), b("VIRTUAL_ENV", ""), c("PATH", root + "/none:" + root + "/py/bin");
  REQUIRE_FALSE(files_of(CudaPart::cudnn).empty());
  CHECK(files_of(CudaPart::cudnn)[0].path == wheel);
  CHECK(std::string(files_of(CudaPart::cudnn)[0].source) == "Python's wheels");
}

// bin/python3 -> an environment's python3 -> the system's, as images are made.
TEST_CASE("the wheels of an environment are found by a link to its python3", "[unit]") {
  const Folder folder;
  const auto root = folder.path.string();
  fs::permissions(folder.file("system/bin/python3.12"), fs::perms::owner_all);
  const auto wheel = folder.file("env/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
  fs::create_directories(folder.path / "bin");
  fs::create_directories(folder.path / "env/bin");
  fs::create_symlink("../../system/bin/python3.12", folder.path / "env/bin/python3");
  fs::create_symlink(root + "/env/bin/python3", folder.path / "bin/python3");
  const Variable a("RILLE_CUDA_PATH", ""), b("VIRTUAL_ENV", ""), c("PATH", root + "/bin"), d("CONDA_PREFIX", "");
  std::vector<std::string> found;
  for (const auto& file : files_of(CudaPart::cudnn)) found.push_back(fs::weakly_canonical(file.path).string());
  CHECK(std::find(found.begin(), found.end(), fs::weakly_canonical(wheel).string()) != found.end());
}

// The wheels of CUDA 13 do not tell the loader that it lies there.
TEST_CASE("NVRTC's second half is loaded from beside it", "[unit]") {
  const Folder folder;
  const std::string nvrtc = folder.file("lib/libnvrtc.so.13"), half = folder.file("lib/libnvrtc-builtins.so.13.2");
  folder.file("lib/libnvrtc-builtins.alt.so.13.2");
  CHECK(companions_of(nvrtc) == std::vector<std::string>{half});
  CHECK(companions_of(folder.file("lib/libcufft.so.12")).empty());
  CHECK(companions_of("libnvrtc.so.13").empty());
  const auto linked = (folder.path / "libnvrtc.so").string();  // a link to it, elsewhere
  fs::create_symlink(nvrtc, linked);
  const auto found = companions_of(linked);
  REQUIRE(found.size() == 1);
  CHECK(fs::equivalent(found[0], half));
}

TEST_CASE("a library of a newer CUDA than the driver's comes last", "[unit]") {
  const Folder folder;
  const auto root = folder.path.string();
  const std::string newer = folder.file("named/lib64/libcublasLt.so.13"),
                    older = folder.file("toolkit/lib64/libcublasLt.so.12");
  const Variable a("RILLE_CUDA_PATH", root + "/named"), b("VIRTUAL_ENV", ""), c("CUDA_HOME", root + "/toolkit"),
      d("CUDA_PATH", ""), e("CONDA_PREFIX", ""), f("PATH", ""), g("HOME", "");
  const auto order = [&](int driver) {
    set_cuda_driver(driver);
    std::vector<std::string> mine;
    for (const auto& file : files_of(CudaPart::cublaslt))
      if (file.path.starts_with(root)) mine.push_back(file.path);
    return mine;
  };
  CHECK(order(13000) == std::vector<std::string>{newer, older});
  CHECK(order(12040) == std::vector<std::string>{older, newer});
  CHECK(how_to_get(CudaPart::cublaslt).starts_with("pip install nvidia-cublas-cu12, or install the CUDA toolkit"));
  CHECK(order(0) == std::vector<std::string>{newer, older});  // no driver yet
  CHECK(how_to_get(CudaPart::cublaslt).starts_with("pip install nvidia-cublas, "));
  CHECK(how_to_get(CudaPart::cudnn).starts_with("pip install nvidia-cudnn-cu13, "));
}

TEST_CASE("a library is left out by its own word only", "[unit]") {
  const Variable a("RILLE_CUDA_WITHOUT", "cudnn,cufft");
  CHECK((left_out(CudaPart::cudnn) && left_out(CudaPart::cufft) && !left_out(CudaPart::cublaslt)));
}

}  // namespace
}  // namespace rille::device
