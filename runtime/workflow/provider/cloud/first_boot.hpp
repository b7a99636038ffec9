// The user data of a rented machine, run at its first boot: authorizes our key, installs the expected host key, writes
// the agent's machine.json, and sets the timer that ends the machine if the renting process is lost. Pure functions;
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/cloud/ssh_keys.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::cloud {

inline constexpr const char* instance_directory = "/var/lib/rille/instance";

// A volume in the instance's work folder, at `at`.
struct BootDisk {
  // device: its path on the machine, which may appear late; a shell pattern that only this disk matches,
  // or several, of which one does. "": the
  // provider mounts it itself, at mounted_at().
  std::string at, device;
};
std::string mounted_at(const std::string& at);

struct FirstBoot {
  std::string tag, authorized_key;
  SshKey host_key;
  std::int64_t expires_wall_us = 0, orphan_after_ms = 0, idle_after_ms = 0;
  double idle_below = 0;
  bool powers_off = false;  // power off at the machine's expiry; set if that ends billing
  NoticeSpec notice;        // where a spot machine learns of its preemption
  // The machine accepts our key only once all of these are mounted. A disk is formatted only if it is blank.
  std::vector<BootDisk> disks;
  bool container = false;  // no init system: the script installs sshd if missing, and starts it
};

// A /bin/sh script, run as root. Deterministic, since a repeated create call must send the same bytes.
std::string first_boot_script(const FirstBoot& boot);

// SSH access to the machines of one cloud with the keys of this installation.
class Access {
 public:
  explicit Access(SshKeys keys) : keys_(std::move(keys)) {}
  // `metadata`: base URL of the cloud's metadata service, for spot machines; "": not used.
  Access(SshKeys keys, std::string cloud, std::string metadata)
      : keys_(std::move(keys)), cloud_(std::move(cloud)), metadata_(std::move(metadata)) {}
  // the public key, to be authorized on a machine
  const std::string& public_line() const { return keys_.public_line(); }
  // first_boot_script for this request, in base64. invalid: longer than the cloud allows.
  Result<std::string> user_data(const CreateRequest& request, bool powers_off, std::size_t bytes_max,
                                std::vector<BootDisk> disks = {}) const;
  // first_boot_script as plain text, for machines for which powering off does not end billing. invalid: longer than the
  // cloud allows.
  Result<std::string> script(const CreateRequest& request, bool container, std::size_t bytes_max,
                             std::vector<BootDisk> disks = {}) const;
  // The channel to the agent of the machine with that tag.
  Result<ChannelSpec> channel(const std::string& tag, const std::string& id, const std::string& address, int port = 22,
                              const std::string& user = "root") const;

  // Sets the channel of a machine. A live machine without an address becomes pending.
  Result<> reach(Machine& machine, const std::string& id, const std::string& address) const;

 private:
  FirstBoot boot_of(const CreateRequest& request) const;

  SshKeys keys_;
  std::string cloud_, metadata_;
};

}  // namespace rille::provider::cloud
