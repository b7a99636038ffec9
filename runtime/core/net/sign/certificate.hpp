// A client certificate with its private key, read from PEM or PKCS #12 (.pfx).
// Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::net {

struct ClientCertificate {
  std::string key_pem;             // the private key in PEM, without a passphrase; secret
  std::vector<std::string> chain;  // certificates in DER; the certificate of key_pem comes first
  std::int64_t ends_wall_us = 0;
  std::string thumbprint() const;  // SHA-1 of chain[0] as base64url: the x5t of RFC 7515
};

// Error `auth`: no key, a wrong password, or no certificate for the key. The message contains neither key nor password.
Result<ClientCertificate> read_certificate(const std::string& bytes, const std::string& password);

}  // namespace rille::net
