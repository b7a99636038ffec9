#include "runtime/workflow/provider/secret.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/core/base/error.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/net/sign/parts.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::provider {

namespace {

constexpr std::size_t secret_digits = 64;

std::string unhex(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return out;
}

}  // namespace

Result<std::string> write_once(const std::string& path, const std::string& text) {
  if (access(path.c_str(), F_OK) == 0) return store::read_file(path, 1 << 20);
  const std::string fresh = path + ".new-" + random_hex(4);
  RILLE_CHECK(store::write_file_atomic(fresh, text, 0600));
  const int linked = link(fresh.c_str(), path.c_str());
  const int why = errno;
  unlink(fresh.c_str());
  if (linked < 0 && why != EEXIST) return errno_error("make", path, why);
  return store::read_file(path, 1 << 20);
}

Result<std::string> installation_secret(const std::string& folder) {
  RILLE_CHECK(store::make_directories(folder));
  if (chmod(folder.c_str(), 0700) < 0 && errno != EROFS) return errno_error("protect", folder, errno);
  RILLE_TRY(const std::string digits, write_once(folder + "/secret", random_hex(secret_digits / 2)));
  if (digits.size() != secret_digits || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    return make_error(ErrorKind::integrity, "'" + folder + "/secret' is damaged: it must have 64 hexadecimal digits",
                      "existing machines cannot be reached without it; remove the file once none is left");
  return unhex(digits);
}

std::string agent_token(const std::string& secret, const std::string& tag) {
  return net::hex(net::hmac_sha256(secret, "agent " + tag));
}

}  // namespace rille::provider
