#include "runtime/workflow/provider/cloud/first_boot.hpp"

#include <fmt/format.h>

#include "runtime/core/base/base64.hpp"
#include "runtime/workflow/provider/manner.hpp"

namespace rille::provider::cloud {

namespace {

constexpr const char* restarts_sshd =
    "systemctl restart ssh 2>/dev/null || systemctl restart sshd 2>/dev/null || service ssh restart";
constexpr const char* installs_sshd = R"sh([ -x /usr/sbin/sshd ] || { apt-get update -q &&
  DEBIAN_FRONTEND=noninteractive apt-get install -qy openssh-server; } >/var/log/rille-boot.log 2>&1
mkdir -p /etc/ssh /run/sshd
: >/etc/ssh/rille_keeps_host_key
)sh";
constexpr const char* starts_sshd =
    "service ssh restart 2>/dev/null || kill -HUP \"$(cat /run/sshd.pid 2>/dev/null)\" 2>/dev/null || /usr/sbin/sshd";

Result<std::string> fitting(std::string script, std::size_t bytes_max) {
  if (script.size() > bytes_max)
    return make_error(
        ErrorKind::invalid,
        fmt::format(
            "Rille's start-up script for the machine (user data) has {} bytes, more than the provider's limit of {}",
            script.size(), bytes_max),
        "nothing was rented, and no setting of yours is at fault: this is a bug of Rille, please report it");
  return script;
}

// A script that checks once a minute whether an agent holds agent.lock. If no agent has held it for orphan_after_ms,
// the machine ends: the renting process died before it started an agent, or the agent was killed. Time is measured by
// the uptime, which clock corrections do not change.
std::string looks_for_agent(std::int64_t orphan_after_ms) {
  return fmt::format(R"sh(cat >/var/lib/rille/look <<'END'
now=$(cut -d. -f1 /proc/uptime) seen=$(cat /run/rille/seen 2>/dev/null)
lock=$(stat -c %i {dir}/agent.lock 2>/dev/null) && grep -q "FLOCK.*:$lock 0 EOF" /proc/locks && seen=$now
mkdir -p /run/rille
echo "${{seen:-0}}" >/run/rille/seen
[ $((now - ${{seen:-0}})) -lt {after} ] || exec systemctl --no-block start rille-end.service
END
mkdir -p /run/rille
cut -d. -f1 /proc/uptime >/run/rille/seen
cat >/etc/systemd/system/rille-look.service <<'END'
[Service]
Type=oneshot
ExecStart=/bin/sh /var/lib/rille/look
END
cat >/etc/systemd/system/rille-look.timer <<'END'
[Timer]
OnBootSec=60
OnUnitActiveSec=60
AccuracySec=5s
[Install]
WantedBy=timers.target
END
systemctl daemon-reload
systemctl enable --now rille-look.timer
)sh",
                     fmt::arg("dir", instance_directory), fmt::arg("after", (orphan_after_ms + 999) / 1000));
}

// Mounts the disks, or ends the script. Waits for each without a limit: another machine may have it still. Blank: no
// signature of a file system, and a first MiB of zeros, as new disks have; blkid alone gives the same code for a disk
// that it cannot read.
std::string mounts_disks(const std::vector<BootDisk>& disks) {
  std::string out;
  for (const BootDisk& disk : disks) {
    if (!disk.device.empty())
      out += fmt::format(R"sh(while set -- {device}
  while [ $# -gt 1 ] && [ ! -b "$1" ]; do shift; done
  [ ! -b "$1" ]; do sleep 1; done
blkid -p "$1" >/dev/null
[ $? -ne 2 ] || ! head -c 1048576 "$1" | cmp -s -n 1048576 - /dev/zero || mkfs.ext4 -q -F "$1"
mkdir -p {path}
mount "$1" {path} || exit 1
echo "UUID=$(blkid -s UUID -o value "$1") {path} auto nofail 0 2" >>/etc/fstab
)sh",
                         fmt::arg("device", disk.device), fmt::arg("path", mounted_at(disk.at)));
    out += fmt::format("ln -sfn {} {}/work/{}\n", mounted_at(disk.at), instance_directory, disk.at);
  }
  return out;
}

// Ends the machine at its expiry, by a timer that survives a reboot, and fires at once if its time passed during the
// reboot. A timer whose time has passed when it is created would never fire, so it is then set to fire in a minute.
std::string ends_machine(const FirstBoot& boot) {
  const std::int64_t ends_s = boot.expires_wall_us / 1'000'000;
  return fmt::format(R"sh(cat >/etc/systemd/system/rille-end.service <<'END'
[Service]
Type=oneshot
ExecStart=/bin/systemctl --no-wall poweroff
END
cat >/etc/systemd/system/rille-end.timer <<END
[Timer]
OnCalendar=$(date -u -d @{0} '+%Y-%m-%d %H:%M:%S') UTC
$([ "$(date +%s)" -lt {0} ] || echo OnActiveSec=60)
Persistent=true
AccuracySec=1s
[Install]
WantedBy=timers.target
END
systemctl daemon-reload
systemctl enable --now rille-end.timer
)sh",
                     ends_s) +
         (boot.orphan_after_ms > 0 ? looks_for_agent(boot.orphan_after_ms) : "");
}

}  // namespace

std::string mounted_at(const std::string& at) { return "/mnt/rille/" + at; }

// Our key is the first line of root's authorized_keys: if the cloud also got the key, cloud-init has added it with a
// forced command that only prints which user to log in as, and sshd uses the first matching line.
std::string first_boot_script(const FirstBoot& boot) {
  Value machine;
  machine.set("id", boot.tag).set("tag", boot.tag).set("expires_wall_us", boot.expires_wall_us);
  machine.set("orphan_after_ms", boot.orphan_after_ms).set("terminating", false);
  if (!boot.notice.url.empty()) machine.set("notice", boot.notice.to_value());
  if (boot.idle_after_ms) machine.set("idle_after_ms", boot.idle_after_ms).set("idle_below", boot.idle_below);
  const bool powers_off = boot.powers_off && boot.expires_wall_us != 0;
  // The agent ends the machine by this command, which starts the systemd unit created below.
  if (powers_off) machine.set("end", Value::Array{"/bin/systemctl", "--no-block", "start", "rille-end.service"});
  else machine.set("keeps_files", true);
  const std::string begins = "#!/bin/sh\nset -u\numask 077\n";
  const std::string ends = powers_off ? ends_machine(boot) : "";
  const std::string opens = fmt::format(
      R"sh({install}mkdir -p /root/.ssh /etc/ssh/sshd_config.d {dir}/work
echo 'PermitRootLogin prohibit-password' >/etc/ssh/sshd_config.d/00-rille.conf
{{ echo {key}; cat /root/.ssh/authorized_keys 2>/dev/null; }} >/root/.ssh/with-rille
mv /root/.ssh/with-rille /root/.ssh/authorized_keys
cat >/etc/ssh/ssh_host_ed25519_key <<'END'
{host_private}END
echo {host_public} >/etc/ssh/ssh_host_ed25519_key.pub
{start}
printf '%s\n' {machine} >{dir}/machine.json
)sh",
      fmt::arg("install", boot.container ? installs_sshd : ""),
      fmt::arg("start", boot.container ? starts_sshd : restarts_sshd), fmt::arg("dir", instance_directory),
      fmt::arg("key", shell_quote(boot.authorized_key)), fmt::arg("host_private", boot.host_key.private_text),
      fmt::arg("host_public", shell_quote(boot.host_key.public_line)),
      fmt::arg("machine", shell_quote(machine.to_json())));
  if (boot.disks.empty()) return begins + opens + ends;
  // The switch comes first: it must work although a disk cannot be mounted.
  return begins + fmt::format("mkdir -p {}/work\n", instance_directory) + ends + mounts_disks(boot.disks) + opens;
}

FirstBoot Access::boot_of(const CreateRequest& request) const {
  FirstBoot boot;
  boot.tag = request.tag;
  boot.authorized_key = keys_.public_line();
  boot.host_key = keys_.host_key(request.tag);
  boot.expires_wall_us = request.expires_wall_us;
  boot.orphan_after_ms = request.orphan_after_ms;
  const auto notice = manner_of(cloud_).notice;
  if (request.offer.spot && notice && !metadata_.empty()) boot.notice = notice(metadata_);
  boot.idle_after_ms = request.idle_after_ms;
  boot.idle_below = request.idle_below;
  return boot;
}

Result<std::string> Access::user_data(const CreateRequest& request, bool powers_off, std::size_t bytes_max,
                                      std::vector<BootDisk> disks) const {
  FirstBoot boot = boot_of(request);
  boot.disks = std::move(disks);
  boot.powers_off = powers_off;
  RILLE_TRY(const std::string text, fitting(first_boot_script(boot), bytes_max));
  return to_base64(text);
}

Result<std::string> Access::script(const CreateRequest& request, bool container, std::size_t bytes_max,
                                   std::vector<BootDisk> disks) const {
  FirstBoot boot = boot_of(request);
  boot.disks = std::move(disks);
  boot.container = container;
  return fitting(first_boot_script(boot), bytes_max);
}

Result<ChannelSpec> Access::channel(const std::string& tag, const std::string& id, const std::string& address, int port,
                                    const std::string& user) const {
  const std::string alias = "rille-" + id;
  RILLE_TRY(const std::string known_hosts, keys_.known_hosts(tag, alias));
  ChannelSpec out;
  out.argv_prefix = {"ssh", "-T", "-a", "-x", "-F", "none", "-i", keys_.identity_file(), "-p", std::to_string(port)};
  for (const std::string& option :
       {std::string("IdentitiesOnly=yes"), std::string("BatchMode=yes"), std::string("StrictHostKeyChecking=yes"),
        std::string("HostKeyAlgorithms=ssh-ed25519"), "UserKnownHostsFile=" + known_hosts, "HostKeyAlias=" + alias,
        std::string("GlobalKnownHostsFile=none"), std::string("ConnectTimeout=15"),
        std::string("ServerAliveInterval=15"), std::string("ServerAliveCountMax=4")})
    out.argv_prefix.insert(out.argv_prefix.end(), {"-o", option});
  out.argv_prefix.push_back(user + "@" + address);
  out.quoted = true;
  out.directory = instance_directory;
  return out;
}

Result<> Access::reach(Machine& machine, const std::string& id, const std::string& address) const {
  if (!address.empty()) machine.details.set("address", address);
  if (machine.state != MachineState::live) return {};
  if (address.empty()) machine.state = MachineState::pending;
  else { RILLE_TRY(machine.channel, channel(machine.tag, id, address)); }
  return {};
}

}  // namespace rille::provider::cloud
