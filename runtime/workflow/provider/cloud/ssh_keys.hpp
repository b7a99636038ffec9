// Keys for reaching rented machines by ssh, all Ed25519: this installation's own, made once, and one per machine for
// its host, derived from a secret of the installation and the machine's tag. So a repeated create call carries the same
// bytes, and the first connection to a machine already knows its host key.
// They live in a folder of mode 0700 outside $RILLE_HOME: a copied or lost home takes no key along.
// Any thread; these calls block.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::provider::cloud {

struct SshKey {
  std::string public_line;   // "ssh-ed25519 AAAA.. comment"
  std::string private_text;  // as OpenSSH reads it; secret
};

// From 32 bytes. The same bytes give the same key.
SshKey ssh_key_from(const std::string& seed, const std::string& comment);

class SshKeys {
 public:
  // Makes the folder and the installation's key where there are none. io: it cannot; integrity: what is there is torn.
  static Result<SshKeys> open(std::string folder);

  const std::string& identity_file() const { return identity_file_; }
  const std::string& public_line() const { return public_line_; }
  SshKey host_key(const std::string& tag) const;
  // A file that says that `alias` has the host key of that tag; for ssh's UserKnownHostsFile. Written if need be.
  Result<std::string> known_hosts(const std::string& tag, const std::string& alias) const;

 private:
  std::string folder_, identity_file_, public_line_, secret_;
};

}  // namespace rille::provider::cloud
