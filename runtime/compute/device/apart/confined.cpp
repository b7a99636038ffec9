#include "runtime/compute/device/apart/confined.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "runtime/compute/device/tool_output.hpp"

extern char** environ;

namespace rille::device {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view list_begin = "#include <...> search starts here:\n", list_end = "End of search list.";

std::string folder_of(std::string path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash);
}

std::string own_path() {  // path of the library or program that contains this code
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_path), &info) == 0 || !info.dli_fname) return "";
  char path[PATH_MAX];  // the name may be relative, for example from a relative LD_LIBRARY_PATH
  return ::realpath(info.dli_fname, path) ? path : "";
}

std::string program_path() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, n > 0 ? std::size_t(n) : 0);
}

// Folders of `compiler`'s headers, and of its own programs and libraries if they are not the system's.
std::vector<std::string> folders_of(const std::string& compiler) {
  Spawn ask;
  ask.argv = {compiler, "-E", "-v", "-x", "c++", "/dev/null"};
  ask.without = environment_without({"PATH"});
  ask.env = {{"LC_ALL", "C"}};
  const std::string said = output_of(std::move(ask), 2);
  std::vector<std::string> folders;
  const auto begin = said.find(list_begin), end = said.find(list_end);
  for (auto at = begin == said.npos ? begin : begin + list_begin.size(); at < end && end != said.npos;) {
    const auto next = said.find('\n', at);
    folders.push_back(said.substr(at + 1, next - at - 1));
    at = next + 1;
  }
  std::error_code failed;
  const fs::path itself = fs::canonical(compiler, failed), prefix = itself.parent_path().parent_path();
  if (failed) return folders;
  folders.push_back(itself.string());
  for (const char* name : {"bin", "lib", "lib64", "libexec"}) folders.push_back((prefix / name).string());
  return folders;
}

}  // namespace

// Searches beside the library and the program, and in the folder of an installation.
Result<std::string> kernel_program() {
  for (const auto& path : {own_path(), program_path()}) {
    for (const char* place : {"", "/../libexec/rille", "/../../libexec/rille"}) {
      const std::string file = folder_of(path) + place + "/rille-kernel";
      if (!path.empty() && ::access(file.c_str(), X_OK) == 0) return file;
    }
  }
  return make_error(ErrorKind::device, "the program rille-kernel, which runs kernels under limits, is not installed",
                    fmt::format("it belongs in {}, or beside librille", folder_of(program_path())));
}

Result<std::vector<std::string>> confined_compiler(const std::string& compiler, const std::string& folder,
                                                   const std::vector<std::string>& readable) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<std::string>> known;
  RILLE_TRY(const std::string program, kernel_program());
  std::vector<std::string> words = {program, "compile", folder};
  words.insert(words.end(), readable.begin(), readable.end());
  {
    const std::lock_guard lock(mutex);
    auto& folders = known[compiler];
    if (folders.empty()) folders = folders_of(compiler);
    words.insert(words.end(), folders.begin(), folders.end());
  }
  words.emplace_back("--");
  return words;
}

Result<std::vector<std::string>> confined_reader(const std::string& file) {
  RILLE_TRY(const std::string program, kernel_program());
  return std::vector<std::string>{program, "read", file, "--"};
}

std::vector<std::string> environment_without(std::initializer_list<std::string_view> kept) {
  std::vector<std::string> names;
  for (char** e = environ; e && *e; ++e) {
    const std::string_view entry(*e), name = entry.substr(0, entry.find('='));
    if (std::find(kept.begin(), kept.end(), name) == kept.end()) names.emplace_back(name);
  }
  return names;
}

}  // namespace rille::device
