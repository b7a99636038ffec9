#include "runtime/workflow/provider/cloud/host_key.hpp"

#include <unistd.h>

#include <optional>

#include "runtime/core/loop/command.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::provider::cloud {

namespace {

constexpr const char *rotating = "# rotating\n", *rotated = "# rotated\n", *not_rotated = "# not rotated\n";
constexpr int no_right = 76;  // exit code of the scripts
constexpr int verify_tries = 8;
constexpr std::int64_t verify_pause_ms = 250;  // sshd does not listen while it starts again

// Prints the new public key.
constexpr const char* make_script = R"sh(key=/etc/ssh/ssh_host_ed25519_key new=$key.rille
[ ! -e /etc/ssh/rille_keeps_host_key ] && [ -w $key ] && command -v ssh-keygen >/dev/null || exit 76
umask 077
if [ ! -s $new ] || [ ! -s $new.pub ]; then
  rm -f $new $new.pub
  ssh-keygen -q -t ed25519 -N '' -C rille-host -f $new >/dev/null || exit 76
fi
cut -d ' ' -f 1,2 $new.pub)sh";

// Puts the new key in place and sends SIGHUP to the listening sshd, which reads its keys again; open sessions go on.
// The listener is the last ancestor with that name: sessions are named otherwise, or show their user.
constexpr const char* use_script = R"sh(key=/etc/ssh/ssh_host_ed25519_key new=$key.rille
if [ -e $new ]; then
  [ ! -e $new.pub ] || mv $new.pub $key.pub
  mv $new $key || exit 76
  sync
fi
pid=$$ listener=
while [ "${pid:-0}" -gt 1 ]; do
  pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sshd ] || continue
  case $(tr '\0' ' ' <"/proc/$pid/cmdline") in /*sshd* | *listener*) listener=$pid ;; esac
done
[ "$listener" ] || exit 0
[ ! -e /etc/ssh/sshd_config ] || "$(readlink "/proc/$listener/exe")" -t 2>/dev/null || exit 76
kill -HUP "$listener")sh";

struct PinnedHost {
  std::string file, alias;
};

std::optional<PinnedHost> pinned_host(const ChannelSpec& channel, const std::string& folder) {
  PinnedHost out;
  for (const std::string& word : channel.argv_prefix) {
    if (word.starts_with("UserKnownHostsFile=")) out.file = word.substr(word.find('=') + 1);
    if (word.starts_with("HostKeyAlias=")) out.alias = word.substr(word.find('=') + 1);
  }
  if (out.alias.empty() || !out.file.starts_with(folder + "/known_hosts/")) return std::nullopt;
  return out;
}

// "ssh-ed25519 AAAA..", or "": the machine printed something else.
std::string printed_key(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  constexpr std::string_view type = "ssh-ed25519 ";
  constexpr std::size_t base64_digits = 68;
  if (!text.starts_with(type) || text.size() != type.size() + base64_digits) return {};
  const bool plain = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
                                            type.size()) == std::string::npos;
  return plain ? text : std::string();
}

Async<CommandResult> run_by_shell(Loop& loop, ChannelSpec channel, std::string script, CancelToken token) {
  CommandOptions options;
  options.argv = channel.command({"sh", "-c", script});
  co_return co_await run_command(loop, std::move(options), token);
}

// Connects with the new key as the only accepted one.
Async<> verify_new_key(Loop& loop, ChannelSpec channel, PinnedHost host, std::string text, CancelToken token) {
  const std::string line = text.substr(text.rfind('\n', text.size() - 2) + 1), file = host.file + ".new";
  RILLE_CO_CHECK(store::write_file_atomic(file, line, 0600));
  for (std::string& word : channel.argv_prefix)
    if (word.starts_with("UserKnownHostsFile=")) word = "UserKnownHostsFile=" + file;
  CommandResult last;
  for (int tries = 0; tries < verify_tries; ++tries) {
    if (tries) RILLE_CO_CHECK(co_await sleep_for(loop, verify_pause_ms, token));
    RILLE_CO_TRY(last, co_await run_by_shell(loop, channel, "true", token));
    if (last.ok()) break;
  }
  unlink(file.c_str());
  if (last.ok()) co_return store::write_file_atomic(host.file, rotated + line, 0600);
  if (last.err.find("verification failed") != std::string::npos)
    co_return store::write_file_atomic(host.file, not_rotated + text, 0600);
  co_return make_error(ErrorKind::network, "the machine did not answer after its host key was replaced").with_retry();
}

}  // namespace

Async<> renew_host_key(Loop& loop, ChannelSpec channel, std::string folder, CancelToken token) {
  const std::optional<PinnedHost> host = pinned_host(channel, folder);
  if (!host) co_return success();
  RILLE_CO_TRY(std::string text, store::read_file(host->file, 1 << 16));
  if (text.starts_with(rotated) || text.starts_with(not_rotated)) co_return success();
  if (!text.starts_with(rotating)) {
    RILLE_CO_TRY(const CommandResult made, co_await run_by_shell(loop, channel, make_script, token));
    if (made.status.signal == 0 && made.status.code == no_right)
      co_return store::write_file_atomic(host->file, not_rotated + text, 0600);
    const std::string key = printed_key(made.out);
    if (!made.ok() || key.empty())
      co_return make_error(ErrorKind::network, "the machine gave no new host key: " + made.last_words()).with_retry();
    text = rotating + text + host->alias + " " + key + "\n";
    RILLE_CO_CHECK(store::write_file_atomic(host->file, text, 0600));
  }
  RILLE_CO_TRY(const CommandResult used, co_await run_by_shell(loop, channel, use_script, token));
  if (!used.ok() && (used.status.signal || used.status.code != no_right))
    co_return make_error(ErrorKind::network, "the new host key was not put in place: " + used.last_words())
        .with_retry();
  co_return co_await verify_new_key(loop, channel, *host, text.substr(std::string_view(rotating).size()), token);
}

}  // namespace rille::provider::cloud
