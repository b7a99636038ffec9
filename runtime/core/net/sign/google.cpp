#include "runtime/core/net/sign/google.hpp"

#include "runtime/core/base/id.hpp"

namespace rille::net {

GoogleUrl google_url(Parts parts, const std::string& account, std::int64_t wall_us, std::int64_t expires_s) {
  constexpr const char* goog4 = "GOOG4-RSA-SHA256";
  const std::string time = compact_time(wall_us);
  const std::string scope = time.substr(0, 8) + "/auto/storage/goog4_request";
  const Canonical headers = canonical_headers(parts, {.one_space = true});
  parts.query.insert(parts.query.end(), {{"X-Goog-Algorithm", goog4},
                                         {"X-Goog-Credential", account + "/" + scope},
                                         {"X-Goog-Date", time},
                                         {"X-Goog-Expires", std::to_string(expires_s)},
                                         {"X-Goog-SignedHeaders", header_names(headers)}});
  const std::string canonical = parts.method + "\n" + parts.path + "\n" + canonical_query(parts.query) + "\n" +
                                header_lines(headers) + "\n" + header_names(headers) + "\nUNSIGNED-PAYLOAD";
  GoogleUrl out;
  out.text = std::string(goog4) + "\n" + time + "\n" + scope + "\n" + sha256_hex(canonical);
  out.parts = std::move(parts);
  return out;
}

}  // namespace rille::net
