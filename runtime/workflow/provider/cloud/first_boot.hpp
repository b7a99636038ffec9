// What a rented machine runs at its first start, as user data: lets our key in, takes the host key that we expect, says
// what the agent has to know, and sets the timer that ends the machine when nobody is left to do it.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/base/notice_spec.hpp"
#include "runtime/workflow/provider/cloud/ssh_keys.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::cloud {

inline constexpr const char* instance_directory = "/var/lib/rille/instance";

struct FirstBoot {
  std::string tag, authorized_key;
  SshKey host_key;
  std::int64_t expires_wall_us = 0, orphan_after_ms = 0, idle_after_ms = 0;
  double idle_below = 0;
  bool powers_off = false;  // at the end of the ttl: where powering off ends the bill
  NoticeSpec notice;        // of a spot machine: where it is told of its end
  bool container = false;   // no init system, perhaps no sshd: it is installed where it is missing, and started
};

// A script for /bin/sh, run as root. The same input gives the same bytes, as a repeated create call needs them.
std::string first_boot_script(const FirstBoot& boot);

// How machines of one cloud are made reachable, and reached: the keys of this installation.
class Access {
 public:
  explicit Access(SshKeys keys) : keys_(std::move(keys)) {}
  // `metadata`: the address of the cloud's metadata service, for spot machines; "": they do not ask it.
  Access(SshKeys keys, std::string cloud, std::string metadata)
      : keys_(std::move(keys)), cloud_(std::move(cloud)), metadata_(std::move(metadata)) {}
  const std::string& public_line() const { return keys_.public_line(); }  // what a machine has to let in
  // first_boot_script for this request, in base64. invalid: longer than the cloud takes.
  Result<std::string> user_data(const CreateRequest& request, bool powers_off, std::size_t bytes_max) const;
  // The same as plain text, for a machine that powering off does not end. invalid: longer than the cloud takes.
  Result<std::string> script(const CreateRequest& request, bool container, std::size_t bytes_max) const;
  // How the agent of the machine with that tag is reached, once it runs and has an address.
  Result<ChannelSpec> channel(const std::string& tag, const std::string& id, const std::string& address, int port = 22,
                              const std::string& user = "root") const;

  // The channel of a machine that has its tag. One that lives and has no address yet is pending still.
  Result<> reach(Machine& machine, const std::string& id, const std::string& address) const;

 private:
  FirstBoot boot_of(const CreateRequest& request) const;

  SshKeys keys_;
  std::string cloud_, metadata_;
};

}  // namespace rille::provider::cloud
