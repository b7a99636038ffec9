// Ed25519 keys for SSH to rented machines: this installation's client key, made once, and a host key per machine,
// derived from a secret of the installation and the machine's tag. So a repeated create call sends the same bytes, and
// the host key is known before the first connection. The keys are in a folder of mode 0700 outside $RILLE_HOME, so that
// a copied or lost $RILLE_HOME contains no key. Any thread; these calls block.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::provider::cloud {

struct SshKey {
  std::string public_line;   // "ssh-ed25519 AAAA.. comment"
  std::string private_text;  // in OpenSSH's format; secret
};

// `seed`: 32 bytes. The same seed gives the same key.
SshKey ssh_key_from(const std::string& seed, const std::string& comment);

class SshKeys {
 public:
  // Makes the folder and the installation's key if they are missing. io; integrity: a damaged key.
  static Result<SshKeys> open(std::string folder);

  const std::string& identity_file() const { return identity_file_; }
  const std::string& public_line() const { return public_line_; }
  SshKey host_key(const std::string& tag) const;
  // The path of a file for ssh's UserKnownHostsFile in which `alias` has that tag's host key. Writes the file if
  // missing.
  Result<std::string> known_hosts(const std::string& tag, const std::string& alias) const;

 private:
  std::string folder_, identity_file_, public_line_, secret_;
};

}  // namespace rille::provider::cloud
