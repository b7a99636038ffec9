#include "runtime/workflow/provider/local/local.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/loop/process_tree.hpp"
#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/instance_dir.hpp"
#include "runtime/workflow/provider/local/gpus.hpp"
#include "runtime/workflow/provider/volumes.hpp"

namespace rille::provider {

namespace fs = std::filesystem;

namespace {

// The provider's blocking functions, which run on the thread pool.
struct LocalStore {
  std::string name, instances, volumes;
  std::int64_t grace_ms;
  store::GpuClaims claims;

  // A volume's directory has a machine.json as an instance's, and the folder `files`.
  static bool is_volume_id(const std::string& id) { return id.starts_with("v-"); }
  const std::string& folder(const std::string& id) const { return is_volume_id(id) ? volumes : instances; }
  std::string directory(const std::string& id) const { return folder(id) + "/" + id; }
  std::string files(const std::string& volume) const { return directory(volume) + "/files"; }

  static bool plausible_id(const std::string& id) {
    return id.size() > 2 && (id.starts_with("i-") || is_volume_id(id)) &&
           id.find_first_not_of("0123456789abcdef", 2) == std::string::npos;
  }

  Machine gone(const std::string& id) const {
    Machine machine;
    machine.id = id;
    return machine;
  }

  Machine from_file(const std::string& id, const Value& file) const {
    Machine machine;
    machine.id = id;
    machine.state = file.boolean("terminating") ? MachineState::terminating : MachineState::live;
    machine.tag = file.text("tag");
    machine.created_wall_us = file.integer("created_wall_us");
    machine.expires_wall_us = file.integer("expires_wall_us");
    if (!is_volume_id(id)) machine.channel.directory = directory(id);
    machine.details.set("directory", is_volume_id(id) ? files(id) : directory(id));
    if (const Value::Array* gpus = file["gpus"].as_array(); gpus && !gpus->empty()) machine.details.set("gpus", *gpus);
    return machine;
  }

  Result<Machine> describe(const std::string& id) const {
    if (!plausible_id(id)) return gone(id);
    RILLE_TRY(auto file, store::read_machine(directory(id)));
    if (!file) return gone(id);
    Machine machine = from_file(id, *file);
    machine.notice_wall_us = store::read_notice(directory(id)).value_or(0);
    return machine;
  }

  // The directory is made under a temporary name and renamed, so that an instance is either complete, with its tag, or
  // absent.
  Result<Machine> create(const CreateRequest& request, std::int64_t now_us) const {
    const bool volume = is_volume(request);
    const std::string id = (volume ? "v-" : "i-") + derive_hex({"local", request.token}, 16);
    RILLE_TRY(Machine before, describe(id));
    if (before.state != MachineState::gone) return before;
    std::string fresh = folder(id) + "/.new-" + id + "-" + random_hex(4);
    RILLE_CHECK(store::make_directories(fresh + (volume ? "/files" : "/work")));
    chmod(fresh.c_str(), 0700);
    Value file;
    file.set("id", id).set("tag", request.tag).set("token", request.token).set("created_wall_us", now_us);
    if (!volume) request.tell_end(file);
    file.set("offer", request.offer.to_value());
    if (Result<> filled = volume ? success() : fill(id, fresh, file, request, now_us); !filled) {
      RILLE_CHECK(store::remove_tree(fresh));
      return std::move(filled).error();
    }
    RILLE_CHECK(store::write_machine(fresh, file));
    // The rename replaces an empty directory, which a terminate left; a non-empty one was made by another create.
    if (rename(fresh.c_str(), directory(id).c_str()) < 0) {
      int e = errno;
      RILLE_CHECK(store::remove_tree(fresh));
      if (e != EEXIST && e != ENOTEMPTY) return errno_error("create", directory(id), e);
    }
    RILLE_CHECK(store::sync_directory(folder(id)));
    return describe(id);
  }

  // What an instance has and a volume has not: its volumes and its GPUs.
  Result<> fill(const std::string& id, const std::string& fresh, Value& file, const CreateRequest& request,
                std::int64_t now_us) const {
    for (const Mount& mount : mounts_in(request)) RILLE_CHECK(link_volume(mount, fresh + "/work/" + mount.at));
    const std::vector<LocalGpu> gpus = local_gpus();
    RILLE_TRY(auto mine, claim_gpus(gpus, claims, request.offer, directory(id), now_us));
    // not set if empty: an empty list would hide all GPUs
    if (!gpus.empty()) file.set("gpus", Value::Array(mine.begin(), mine.end()));
    return {};
  }

  Result<> link_volume(const Mount& mount, const std::string& link) const {
    RILLE_TRY(const Machine volume, describe(mount.id));
    if (!is_volume_id(mount.id) || volume.state != MachineState::live)
      return make_error(
          ErrorKind::state, fmt::format("the volume '{}' ({}) is not there", mount.at, mount.id),
          "see `rille volume ls`; a volume whose folder was removed by hand is made anew by rille.volume");
    if (symlink(files(mount.id).c_str(), link.c_str()) < 0) return errno_error("link", link, errno);
    return {};
  }

  Result<std::vector<Machine>> list(const std::string& prefix, std::int64_t now_us) const {
    std::vector<Machine> out;
    for (const std::string* in : {&instances, &volumes}) RILLE_CHECK(list_folder(*in, prefix, now_us, out));
    return out;
  }

  Result<> list_folder(const std::string& in, const std::string& prefix, std::int64_t now_us,
                       std::vector<Machine>& out) const {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator it(in, error), end; !error && it != end; it.increment(error))
      names.push_back(it->path().filename());
    if (error && error.value() != ENOENT) return errno_error("list", in, error.value());
    std::sort(names.begin(), names.end());
    for (const std::string& id : names) {
      if (id.compare(0, 5, ".new-") == 0) sweep(in + "/" + id, now_us);
      if (!plausible_id(id) || folder(id) != in) continue;
      RILLE_TRY(Machine machine, describe(id));
      if (machine.state != MachineState::gone && machine.tag.compare(0, prefix.size(), prefix) == 0)
        out.push_back(std::move(machine));
    }
    return {};
  }

  // Removes a temporary directory that a killed create left an hour ago or earlier; no create takes that long.
  static void sweep(const std::string& path, std::int64_t now_us) {
    struct stat st {};
    if (stat(path.c_str(), &st) == 0 && now_us / 1'000'000 - st.st_mtime > 3600) store::remove_tree(path).ok();
  }

  // The order of steps makes every interruption harmless: after "terminating" is written to machine.json no agent can
  // start, nothing is removed while a process of the instance runs, and machine.json is removed last.
  Result<> terminate(const std::string& id) const {
    if (!plausible_id(id)) return {};
    std::string dir = directory(id);
    struct stat st {};
    if (lstat(dir.c_str(), &st) < 0)
      return errno == ENOENT ? Result<>() : Result<>(errno_error("terminate", dir, errno));
    if (!S_ISDIR(st.st_mode))  // nothing is removed where a link leads
      return make_error(ErrorKind::integrity, fmt::format("'{}' is not a folder", dir),
                        "it was put there by somebody else: remove it by hand");
    if (is_volume_id(id)) RILLE_CHECK(check_unused(id));
    RILLE_CHECK(store::mark_terminating(dir));
    if (is_volume_id(id)) return store::remove_instance_directory(dir);
    RILLE_CHECK(end_agent(dir));
    RILLE_CHECK(end_rest(dir));
    give_back_gpus(dir);
    return store::remove_instance_directory(dir);
  }

  // Whether no instance has a link to the volume.
  Result<> check_unused(const std::string& volume) const {
    std::error_code error;
    for (fs::directory_iterator it(instances, error), end; !error && it != end; it.increment(error)) {
      std::error_code of_work, of_link;
      for (fs::directory_iterator in(it->path() / "work", of_work); !of_work && in != end; in.increment(of_work))
        if (in->is_symlink(of_link) && fs::read_symlink(in->path(), of_link) == files(volume))
          return make_error(ErrorKind::state,
                            fmt::format("the volume {} is mounted on {}", volume, it->path().filename().string()),
                            "release that instance first: `rille leases`");
    }
    return {};
  }

  // Releases GPU claims that no agent has taken over; claims taken over by an agent ended with the agent.
  void give_back_gpus(const std::string& dir) const {
    const auto file = store::read_machine(dir);
    if (!file || !*file) return;
    if (const Value::Array* gpus = (**file)["gpus"].as_array())
      for (const Value& uuid : *gpus)
        if (uuid.as_string()) claims.drop(*uuid.as_string(), dir);
  }

  // The agent's keeper exits once it has killed the agent's descendants. If the agent and the keeper were killed, the
  // remaining processes are found by the keeper's list and by their environment.
  Result<> end_rest(const std::string& dir) const {
    std::vector<ProcessId> known;
    if (auto text = store::read_file(dir + "/" + store::agent_tree_name, 16 << 20)) known = decode_processes(*text);
    if (!known.empty() && !end_process(known[0].pid, known[0].start_time, 0, 10'000))
      RILLE_CHECK(kill_processes({{}, {}, true, known}, 10'000));
    return kill_processes({{}, std::string(instance_environment) + "=" + dir, true, std::move(known)}, 10'000);
  }

  // A locked agent.lock means that an agent lives; the content of the file says which process.
  Result<> end_agent(const std::string& dir) const {
    store::Fd lock(open((dir + "/" + store::agent_lock_name).c_str(), O_RDWR | O_CLOEXEC));
    if (!lock.valid()) return errno == ENOENT ? Result<>() : Result<>(errno_error("open", dir + "/agent.lock", errno));
    if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return {};
    auto owner = store::read_agent_owner(dir);
    if (!owner) return {};  // the agent has just started; the later scan of process environments finds it
    pid_t pid = static_cast<pid_t>(owner->pid);
    if (end_process(pid, owner->start_time, SIGTERM, grace_ms)) return {};
    if (process_start_time(pid) != owner->start_time) return {};
    // the stopped agent starts no process while its descendants are collected
    end_process(pid, owner->start_time, SIGSTOP, 0);
    return kill_processes({{pid}, {}}, 10'000);
  }
};

std::int64_t machine_memory_bytes() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

class Local : public Provider, public VolumeSeller {
 public:
  Local(Loop& loop, LocalOptions options) : loop_(loop), options_(std::move(options)) {
    // An instance's processes are found by the directory path in their environment, so the path must be canonical.
    std::error_code error;
    fs::path real = fs::weakly_canonical(fs::absolute(options_.root + "/instances", error), error);
    const std::string instances = error ? options_.root + "/instances" : real.string();
    store_ = {name_, instances, store::parent_path(instances) + "/volumes", options_.grace_ms, store::GpuClaims()};
    traits_.token_lifetime_ms = 10LL * 365 * 86'400'000;
    traits_.create_timeout_ms = 0;  // a create cannot take effect after its process has ended
    traits_.dead_man = DeadMan::guest;
    traits_.owned = true;
  }

  const std::string& name() const override { return name_; }
  const Traits& traits() const override { return traits_; }

  // If there are usable GPUs, gpu = "any" offers only machines with GPUs, not the CPU alone.
  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken) override {
    Offer offer;
    offer.provider = name_;
    offer.id = "cpu";
    offer.vcpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    offer.memory_bytes = machine_memory_bytes();
    offer.region = "here";
    offer.spot = query.spot;  // an instance is never preempted, so it also satisfies a spot query
    offer.price_micros_per_hour = options_.price_micros_per_hour;
    std::vector<LocalGpu> gpus;
    std::vector<Offer> with_gpus;
    if (query.gpu != "cpu") {
      const std::int64_t now_us = loop_.clock().wall_us();
      auto look = [&gpus, &with_gpus, claims = store_.claims, offer, now_us] {
        gpus = local_gpus();
        with_gpus = gpu_offers(gpus, claims, offer, now_us);
        return success();
      };
      RILLE_CO_CHECK(co_await thread_job(loop_, std::move(look)));
    }
    const bool usable = std::any_of(gpus.begin(), gpus.end(), [](const LocalGpu& g) { return g.runnable; });
    std::vector<Offer> out;
    if (!(query.runnable && usable) && offer.matches(query)) out.push_back(std::move(offer));
    for (Offer& o : with_gpus)
      if (o.matches(query)) out.push_back(std::move(o));
    co_return out;
  }

  const std::vector<VolumeKind>& volume_kinds() const override {
    static const std::vector<VolumeKind> kinds{{"folder", true}};
    return kinds;
  }
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken) override {
    std::vector<Offer> out;
    if (wish.region.empty() || wish.region == "here") out.push_back(volume_offer(name_, wish.kind, "here", 0));
    co_return out;
  }

  Async<Machine> create(CreateRequest request, CancelToken token) override {
    if (request.token.empty() || request.tag.empty())
      co_return named(make_error(ErrorKind::invalid, "local: create needs a token and a tag",
                                 "this is a bug of Rille: please report it"),
                      "create");
    if (token.cancelled()) co_return token.reason();
    std::int64_t now_us = loop_.clock().wall_us();
    auto work = [s = store_, r = std::move(request), now_us] { return s.create(r, now_us); };
    auto result = co_await thread_job(loop_, std::move(work));
    if (!result) co_return named(std::move(result).error(), "create");
    co_return std::move(*result);
  }

  Async<Machine> describe(std::string id, CancelToken) override {
    auto result = store_.describe(id);
    if (!result) co_return named(std::move(result).error(), "describe");
    co_return std::move(*result);
  }

  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    if (token.cancelled()) co_return token.reason();
    std::int64_t now_us = loop_.clock().wall_us();
    auto work = [s = store_, p = std::move(tag_prefix), now_us] { return s.list(p, now_us); };
    auto result = co_await thread_job(loop_, std::move(work));
    if (!result) co_return named(std::move(result).error(), "list");
    co_return std::move(*result);
  }

  Async<> terminate(std::string id, CancelToken token) override {
    if (token.cancelled()) co_return token.reason();
    auto work = [s = store_, i = id] { return s.terminate(i); };
    auto result = co_await thread_job(loop_, std::move(work));
    if (!result) co_return named(std::move(result).error(), "terminate");
    co_return success();
  }

 private:
  Error named(Error error, const char* operation) const {
    error.provider = name_;
    error.operation = operation;
    return error;
  }

  Loop& loop_;
  LocalOptions options_;
  std::string name_ = "local";
  Traits traits_;
  LocalStore store_;
};

}  // namespace

std::unique_ptr<Provider> make_local_provider(Loop& loop, LocalOptions options) {
  return std::make_unique<Local>(loop, std::move(options));
}

}  // namespace rille::provider
