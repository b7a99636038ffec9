#include "runtime/base/places.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace rille {

namespace {
std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}
}  // namespace

std::string default_home() {
  if (std::string home = variable("RILLE_HOME"); !home.empty()) return home;
  if (std::string state = variable("XDG_STATE_HOME"); !state.empty()) return state + "/rille";
  std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.local/state/rille";
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

}  // namespace rille
