#include "runtime/workflow/agent/paths.hpp"

namespace rille::agent {

Result<std::string> inside(const std::string& root, const std::string& path) {
  auto refuse = [&](const char* why) {
    return make_error(ErrorKind::invalid, "path '" + path.substr(0, 200) + "' on the instance " + why,
                      "name it relative to the instance's work directory");
  };
  if (path.empty()) return refuse("is empty");
  if (path.size() > 4096) return refuse("is longer than 4096 bytes");
  if (path.find('\0') != std::string::npos) return refuse("holds a zero byte");
  if (path[0] == '/') return refuse("is absolute");
  std::string out = root;
  for (std::size_t begin = 0; begin <= path.size();) {
    std::size_t end = std::min(path.find('/', begin), path.size());
    std::string part = path.substr(begin, end - begin);
    if (part == "..") return refuse("leads out of the work directory");
    if (!part.empty() && part != ".") out += "/" + part;
    begin = end + 1;
  }
  return out;
}

}  // namespace rille::agent
