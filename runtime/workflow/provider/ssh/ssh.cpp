#include "runtime/workflow/provider/ssh/ssh.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/send_by.hpp"
#include "runtime/core/loop/command.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "runtime/workflow/provider/ssh/answers.hpp"
#include "runtime/workflow/provider/ssh/hosts.hpp"
#include "runtime/workflow/provider/ssh/scripts.hpp"

namespace rille::provider {

namespace {

constexpr std::int64_t command_timeout_ms = 60'000, probe_lasts_ms = 30'000;

std::string id_of(const SshHost& host, const std::string& instance) { return host.name + "/" + instance; }

// The host's name as `ssh-keygen -R` expects it: "[gpu1]:2222".
std::string known_as(const SshHost& host) {
  const std::string name = host.address.substr(host.address.find('@') + 1);
  return host.port ? fmt::format("'[{}]:{}'", name, host.port) : name;
}

// Converts ssh's message to an error; errors that may pass are retryable.
Error unreachable(const SshHost& host, const CommandResult& result) {
  const std::string said = result.last_words(), key = host.identity.empty() ? "~/.ssh/id_*" : host.identity;
  const auto has = [&](const char* part) { return result.err.find(part) != std::string::npos; };
  if (has("IDENTIFICATION HAS CHANGED"))
    return make_error(
        ErrorKind::config,
        fmt::format(
            "the SSH host key of '{}' has changed: another machine has that address, or the host was reinstalled",
            host.address),
        fmt::format("if this was expected: ssh-keygen -R {}, then connect once by hand and compare the fingerprint",
                    known_as(host)));
  if (has("Host key verification failed"))
    return make_error(ErrorKind::config, fmt::format("ssh does not know the key of host '{}'", host.address),
                      fmt::format("connect once by hand, and compare its fingerprint: ssh {}", host.address));
  if (has("UNPROTECTED PRIVATE KEY"))
    return make_error(ErrorKind::config,
                      fmt::format("ssh rejects the key '{}' for host '{}': other users can read it", key, host.address),
                      fmt::format("chmod 600 {}", key));
  if (has("Permission denied") && has("not accessible"))
    return make_error(ErrorKind::config, fmt::format("there is no key '{}' for host '{}'", key, host.address),
                      "`identity` in the host's settings names a private key's file");
  if (has("Permission denied"))
    return make_error(ErrorKind::auth, fmt::format("host '{}' refuses your key: {}", host.address, said),
                      fmt::format("this must work without a password: ssh -o BatchMode=yes {} true; check the user "
                                  "name, and add a key with a passphrase to ssh-agent (ssh-add)",
                                  host.address));
  if (has("Could not resolve hostname") && !has("Temporary failure"))
    return make_error(ErrorKind::config, fmt::format("there is no host '{}': {}", host.address, said),
                      "check its address in the provider's settings");
  return make_error(
             ErrorKind::network,
             fmt::format("host '{}' cannot be reached: {}", host.address, said.empty() ? result.status.text() : said),
             has("Connection refused") ? "it is up, but no sshd listens there: check `port` in its settings"
                                       : fmt::format("is it on? ssh {} shows more", host.address))
      .with_retry();
}

class Ssh final : public Provider {
 public:
  Ssh(Loop& loop, std::vector<SshHost> hosts, std::string notes, Traits traits)
      : loop_(loop), hosts_(std::move(hosts)), notes_(std::move(notes)), probes_(hosts_.size()),
        traits_(std::move(traits)) {}
  const std::string& name() const override { return name_; }
  const Traits& traits() const override { return traits_; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    std::vector<Together<Offer>> asked;
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      asked.push_back({"host " + hosts_[i].name, [this, i](CancelToken t) { return offer_of(i, t); }});
    const std::vector<Result<Offer>> answers = co_await together(loop_, std::move(asked), command_timeout_ms, token);
    std::vector<Offer> out;
    std::vector<AskedRegion> unasked;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const Result<Offer>& answer = answers[i];
      if (!answer) unasked.push_back({place_of(hosts_[i]), named(answer.error(), "offers")});
      else if (!answer->id.empty() && answer->matches(query)) out.push_back(*answer);
    }
    if (out.empty() && !unasked.empty()) co_return std::move(*unasked.back().problem);
    if (query.left_out) query.left_out->unasked = std::move(unasked);
    for (Offer& o : out) o.spot = query.spot;  // a host is never preempted, so it also satisfies a spot query
    std::stable_sort(out.begin(), out.end(), [](const Offer& a, const Offer& b) { return a.dollars() < b.dollars(); });
    co_return out;
  }

  Async<Machine> create(CreateRequest request, CancelToken token) override {
    RILLE_CO_TRY(const std::size_t i, find(request.offer.id));
    const SshHost& host = hosts_[i];
    const std::string instance = "i-" + derive_hex({"ssh", host.name, request.token}, 16);
    Value file;
    file.set("id", id_of(host, instance)).set("tag", request.tag).set("created_wall_us", loop_.clock().wall_us());
    request.tell_end(file);
    file.set("terminating", false);
    probes_[i].reset();
    RILLE_CO_CHECK(note_host(request.tag, host.name));
    std::vector<std::string> words{instance, file.to_json(), std::to_string(host.slots)};
    const Result<> soon = check_send_by(request.send_by_wall_us, loop_.clock().wall_us());
    if (!soon) co_return named(soon.error(), "create");
    RILLE_CO_TRY(const CommandResult done, co_await run(host, ssh_scripts::create, std::move(words), token));
    if (done.status.code == ssh_scripts::no_slot)
      co_return named(
          make_error(ErrorKind::capacity, fmt::format("host '{}' has no free slot of its {}", host.name, host.slots),
                     "wait, or release a machine there: rille leases"),
          "create");
    if (!done.ok()) co_return named(script_failed(host, done), "create");
    RILLE_CO_TRY(std::vector<Machine> machines, read_ssh_machines(host, done.out));
    if (machines.empty()) co_return named(script_failed(host, done), "create");
    co_return std::move(machines[0]);
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    Machine gone;
    gone.id = id;
    RILLE_CO_TRY(const MachineId place, split(id));
    if (!place.host) co_return gone;
    const SshHost* const host = place.host;
    std::vector<std::string> words{place.instance};
    RILLE_CO_TRY(const CommandResult done, co_await run(*host, ssh_scripts::describe, std::move(words), token));
    if (done.status.code == ssh_scripts::not_there) co_return gone;
    if (!done.ok()) co_return named(script_failed(*host, done), "describe");
    RILLE_CO_TRY(std::vector<Machine> machines, read_ssh_machines(*host, done.out));
    co_return machines.empty() ? gone : std::move(machines[0]);
  }

  // Fails if any host is unreachable: that host might have a machine with the tag.
  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    RILLE_CO_TRY(Listing all, co_await list_in("", std::move(tag_prefix), std::move(token)));
    if (!all.unasked.empty()) co_return std::move(*all.unasked.front().problem);
    co_return std::move(all.machines);
  }

  // If a note says on which host the tag was created (note_host), only that host is asked.
  Async<Listing> list_in(std::string, std::string tag_prefix, CancelToken token) override {
    std::vector<Together<std::vector<Machine>>> asked;
    std::vector<std::string> places;
    const std::string noted = noted_host(tag_prefix);
    const bool one_host = find(noted).ok();
    for (const SshHost& host : hosts_) {
      if (one_host && host.name != noted) continue;
      asked.push_back({"host " + host.name, [this, &host](CancelToken t) { return list_of(host, t); }});
      places.push_back(place_of(host));
    }
    auto answers = co_await together(loop_, std::move(asked), command_timeout_ms, token);
    Listing out;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i]) {
        out.unasked.push_back({places[i], named(answers[i].error(), "list")});
        continue;
      }
      for (Machine& m : *answers[i])
        if (m.tag.starts_with(tag_prefix)) out.machines.push_back(std::move(m));
    }
    if (!places.empty() && out.unasked.size() == places.size()) co_return std::move(*out.unasked.front().problem);
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    RILLE_CO_TRY(const MachineId place, split(id));
    if (!place.host) co_return success();
    const SshHost* const host = place.host;
    probes_[static_cast<std::size_t>(host - hosts_.data())].reset();
    std::vector<std::string> words{place.instance};
    RILLE_CO_TRY(const CommandResult done, co_await run(*host, ssh_scripts::terminate, std::move(words), token));
    if (!done.ok()) co_return named(script_failed(*host, done), "terminate");
    co_return success();
  }

 private:
  static const std::string& place_of(const SshHost& host) { return host.region.empty() ? host.name : host.region; }

  // note_host writes, before a create is sent, which host will have the tag. If the note is lost, all hosts are asked.
  std::string note_of(const std::string& tag) const { return notes_ + "/" + derive_hex({"ssh", tag}, 16); }
  Result<> note_host(const std::string& tag, const std::string& host) const {
    RILLE_CHECK(store::make_directories(notes_));
    return store::write_file_atomic(note_of(tag), host, 0600);
  }
  std::string noted_host(const std::string& tag) const {
    const Result<std::string> text = store::read_file(note_of(tag), 4096);
    return text ? *text : "";
  }

  Result<std::size_t> find(const std::string& name) const {
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (hosts_[i].name == name) return i;
    return make_error(ErrorKind::config, fmt::format("the settings of ssh no longer have the host '{}'", name),
                      "restore it until all machines there are released");
  }

  struct MachineId {
    const SshHost* host = nullptr;  // null: the id does not have the format of this provider's ids
    std::string instance;
  };
  // Splits a machine id into host and instance. Error config: the settings no longer name the host.
  Result<MachineId> split(const std::string& id) const {
    const std::size_t slash = std::min(id.rfind('/'), id.size());
    const std::string instance = slash < id.size() ? id.substr(slash + 1) : "";
    if (!instance.starts_with("i-") || instance.size() != 18 ||
        instance.find_first_not_of("0123456789abcdef", 2) != std::string::npos)
      return MachineId{};
    RILLE_TRY(const std::size_t i, find(id.substr(0, slash)));
    return MachineId{&hosts_[i], instance};
  }

  Async<CommandResult> run(const SshHost& host, const char* script, std::vector<std::string> words, CancelToken token) {
    ChannelSpec channel;
    channel.argv_prefix = host.prefix();
    channel.quoted = true;
    std::vector<std::string> all{"sh", "-c", std::string(ssh_scripts::begin) + script, "sh", host.directory};
    all.insert(all.end(), words.begin(), words.end());
    CommandOptions options;
    options.argv = channel.command(all);
    options.timeout_ms = command_timeout_ms;
    Result<CommandResult> done = co_await run_command(loop_, std::move(options), token);
    if (!done && done.error().kind == ErrorKind::io)
      co_return make_error(ErrorKind::config, "the command `ssh` is not found", "install OpenSSH's client");
    if (done && done->status.code == 255) co_return unreachable(host, *done);
    co_return done;
  }

  Async<Offer> offer_of(std::size_t i, CancelToken token) {
    const SshHost& host = hosts_[i];
    const std::int64_t now_ms = loop_.clock().monotonic_ns() / 1'000'000;
    if (!probes_[i] || now_ms - probes_[i]->at_ms > probe_lasts_ms) {
      std::vector<std::string> none;
      RILLE_CO_TRY(const CommandResult done, co_await run(host, ssh_scripts::probe, std::move(none), token));
      if (!done.ok()) co_return script_failed(host, done);
      probes_[i] = Probed{now_ms, read_ssh_probe(done.out)};
    }
    const SshProbe& probe = probes_[i]->probe;
    Offer offer;
    if (probe.live >= host.slots) co_return offer;
    offer.provider = name_;
    offer.id = host.name;
    offer.vcpus = std::max(1, probe.cpus / host.slots);
    offer.memory_bytes = probe.memory_bytes / host.slots;
    if (probe.gpu_count > 0 && host.slots == 1) {  // with several slots no GPU is offered: instances would share it
      offer.gpu_count = probe.gpu_count;
      offer.gpu = probe.gpu;
      offer.gpu_memory_bytes = probe.gpu_memory_bytes;
    }
    offer.region = place_of(host);
    offer.price_micros_per_hour = host.price_micros_per_hour;
    co_return offer;
  }

  Async<std::vector<Machine>> list_of(const SshHost& host, CancelToken token) {
    std::vector<std::string> none;
    RILLE_CO_TRY(const CommandResult done, co_await run(host, ssh_scripts::list, std::move(none), token));
    if (!done.ok()) co_return script_failed(host, done);
    co_return read_ssh_machines(host, done.out);
  }

  // The error of a failed script. A missing program is not retryable: the next attempt would fail as well.
  Error script_failed(const SshHost& host, const CommandResult& result) const {
    if (result.status.code == ssh_scripts::no_folder)
      return make_error(
          ErrorKind::config,
          fmt::format("host '{}' has no writable folder for instances: {}", host.name, result.last_words()),
          "set `directory` in the host's settings to a writable folder");
    if (result.status.code == ssh_scripts::no_program)
      return make_error(ErrorKind::config, fmt::format("host '{}' lacks a program: {}", host.name, result.last_words()),
                        "it needs a POSIX shell with flock, sed, find, tar and gzip");
    return make_error(ErrorKind::io,
                      fmt::format("on host '{}' a command ended with {}: {}", host.name, result.status.text(),
                                  result.last_words()),
                      fmt::format("if it stays, try by hand whether commands run there: ssh {} true", host.address))
        .with_retry();
  }

  Error named(Error error, const char* operation) const {
    error.provider = name_;
    error.operation = operation;
    return error;
  }

  struct Probed {
    std::int64_t at_ms = 0;
    SshProbe probe;
  };

  Loop& loop_;
  std::vector<SshHost> hosts_;
  std::string notes_;
  std::vector<std::optional<Probed>> probes_;
  Traits traits_;
  std::string name_ = "ssh";
};

}  // namespace

Result<std::unique_ptr<Provider>> make_ssh_provider(Setup setup) {
  RILLE_TRY(std::vector<SshHost> hosts, read_ssh_hosts(setup.settings));
  Traits traits;
  // the instance's name derives from the token, so a repeated create finds it
  traits.token_lifetime_ms = 10LL * 365 * 86'400'000;
  traits.create_timeout_ms = command_timeout_ms;
  traits.dead_man = DeadMan::guest;
  traits.owned = true;
  RILLE_TRY(traits, read_traits(setup.settings["traits"], std::move(traits)));
  return std::unique_ptr<Provider>(
      std::make_unique<Ssh>(setup.loop, std::move(hosts), setup.home + "/cache/ssh-hosts", std::move(traits)));
}

}  // namespace rille::provider
