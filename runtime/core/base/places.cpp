#include "runtime/core/base/places.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

namespace rille {

namespace {
std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}
// Whether this user can write into the folder, or make it.
bool can_write(std::string folder) {
  while (access(folder.c_str(), F_OK) != 0) {
    const std::size_t slash = folder.rfind('/');
    if (slash == std::string::npos || slash == 0) break;
    folder.resize(slash);
  }
  return access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

std::string default_home() {
  if (std::string home = variable("RILLE_HOME"); !home.empty()) return home;
  if (std::string state = variable("XDG_STATE_HOME"); !state.empty()) return state + "/rille";
  std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.local/state/rille";
}

std::string config_folder() {
  if (std::string config = variable("XDG_CONFIG_HOME"); !config.empty()) return config + "/rille";
  std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.config/rille";
}

std::string installation_folder() {
  const std::string named = config_folder();
  if (!variable("XDG_CONFIG_HOME").empty()) return named;
  std::string usual = named.empty() ? "/root/.config/rille" : named;
  const std::string home = default_home(), within = home + "/installation";
  if (home.empty()) return usual;
  const bool begun = access(within.c_str(), F_OK) == 0;
  if (!begun && (can_write(usual) || access((usual + "/install").c_str(), R_OK) == 0)) return usual;
  return within;
}

std::string providers_file() {
  if (std::string named = variable("RILLE_PROVIDERS"); !named.empty()) return named;
  const std::string file = config_folder() + "/providers.json";
  return access(file.c_str(), F_OK) == 0 ? file : "";
}

std::string find_program(const std::string& name) {
  std::string path = variable("PATH");
  if (path.empty()) path = "/usr/bin:/bin";
  for (std::size_t at = 0; at <= path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    std::string file = path.substr(at, end - at) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
    at = end + 1;
  }
  return "";
}

std::string bundle_folder() {
  char path[PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  std::string exe(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  constexpr std::string_view place = "/bin/rille";
  if (!exe.ends_with(place)) return "";
  std::string folder = exe.substr(0, exe.size() - place.size());
  bool whole = access((folder + "/MANIFEST.json").c_str(), R_OK) == 0 &&
               access((folder + "/lib/ld-linux-x86-64.so.2").c_str(), R_OK) == 0;
  return whole ? folder : "";
}

}  // namespace rille
