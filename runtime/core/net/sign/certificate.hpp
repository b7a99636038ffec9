// A certificate with its private key, by which a service knows its client: from a file in PEM, or PKCS #12 (.pfx).
// Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::net {

struct ClientCertificate {
  std::string key_pem;             // secret, without a passphrase
  std::vector<std::string> chain;  // DER; that of the key first
  std::int64_t ends_wall_us = 0;
  std::string thumbprint() const;  // SHA-1 of that, as base64url: the x5t of RFC 7515
};

// auth: there is no key in it, or one that `password` does not open, or no certificate of that key. The message has
// neither the key nor the password.
Result<ClientCertificate> read_certificate(const std::string& bytes, const std::string& password);

}  // namespace rille::net
