// `rille doctor`: lists what this machine has, what is missing, and which features do not work without it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "bindings/cli/command.hpp"
#include "bindings/cli/doctor.hpp"
#include "bindings/cli/fit.hpp"
#include "bindings/host/lua.hpp"
#include "kernels/call.hpp"
#include "runtime/compute/device/cuda.hpp"
#include "runtime/compute/device/cuda_kernels.hpp"
#include "runtime/compute/device/cuda_libraries.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/telemetry/nvml.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::cli {

namespace {

Check program(const char* name, const char* what, const char* costs) {
  std::string file = find_program(name);
  return file.empty() ? Check{what, "missing", "", costs} : Check{what, "ok", file, ""};
}

Check library(const char* soname, const char* what, const char* costs) {
  void* handle = dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return {what, "missing", "", costs};
  dlclose(handle);
  return {what, "ok", soname, ""};
}

std::string cuda_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Check cuda_part() {
  const auto kernels = device::cuda_kernels();
  if (!kernels) {
    return {"CUDA part", "missing", "",
            fmt::format("tensors on GPUs, of this machine and of rented ones, which are sent this build: {}. {}",
                        kernels.error().message, kernels.error().hint)};
  }
  const std::string found = fmt::format("{}: {}", device::cuda_plugin_place(), device::describe(*kernels));
  if (kernels->cuda) return {"CUDA part", "ok", found, ""};
  return {"CUDA part", "warning", found,
          "a GPU compiles the kernels at its first use, if its machine has NVRTC, and GPUs that cost are not rented. "
          "./bootstrap cuda builds Rille with images"};
}

// Asks the driver for its version; needs no CUDA toolkit.
Check cuda_driver() {
  const bool served = bool(device::cuda_plugin());
  Check missing{"CUDA driver", "missing", "",
                std::string("no GPU on this machine: tensors run on its CPU; ") +
                    (served ? "rented GPUs are not affected" : "on rented machines too, for the CUDA part is missing")};
  if (served) {  // the CUDA plug-in searches more folders than this command
    const auto driver = device::cuda_driver();
    if (!driver) {
      missing.found = driver.error().message;
      if (!driver.error().hint.empty()) missing.costs += ". " + driver.error().hint;
      return missing;
    }
    return {"CUDA driver", "ok", fmt::format("{}, CUDA {}", driver->path, cuda_text(driver->version)), ""};
  }
  void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return missing;
  int version = 0;
  auto get = reinterpret_cast<int (*)(int*)>(dlsym(handle, "cuDriverGetVersion"));
  bool ok = get && get(&version) == 0;
  dlclose(handle);
  if (!ok) return missing;
  return {"CUDA driver", "ok", "CUDA " + cuda_text(version), ""};
}

// Adds one row per GPU of this machine.
void add_cards(std::vector<Check>& checks) {
  const auto cards = device::cuda_cards();
  const auto driver = device::cuda_driver();
  if (!cards || !driver) return;
  for (const auto& card : *cards) {
    Check row{fmt::format("cuda:{}", card.ordinal), "ok",
              fmt::format("{}, {}, {}", device::describe(card), card.info.bus, card.info.uuid), ""};
    if (const auto from = device::kernels_from(card, *driver); !from) {
      row.state = "missing";
      row.costs = from.error().message + ". " + from.error().hint;
    } else if (*from == device::KernelsFrom::compiler) {
      row.costs = "its first use compiles Rille's kernels for it, once";
    }
    checks.push_back(std::move(row));
  }
}

// Reports where a CUDA library was found, or where it was searched and which features are lost without it. Also names
// a library that was found but fails to load.
Check cuda_library(device::CudaPart part) {
  const auto& info = device::info_of(part);
  if (device::left_out(part)) return {info.name, "missing", "left out by RILLE_CUDA_WITHOUT", info.lost};
  const auto& loaded = device::load_part(part);
  if (!loaded.handle) return {info.name, "missing", loaded.why, info.lost + (". " + device::how_to_get(part))};
  const std::string found = fmt::format("{} ({})", loaded.path, loaded.source);
  const auto driver = device::cuda_driver();
  if (!driver || loaded.cuda <= driver->version / 1000) return {info.name, "ok", found, ""};
  return {info.name, "warning", found,
          fmt::format("it is of CUDA {}, and the driver knows {}: {}. Update the driver, or {}", loaded.cuda,
                      cuda_text(driver->version), info.lost, device::how_to_get(part))};
}

Check nvml() {
  if (auto loaded = telemetry::nvml::load(); !loaded)
    return {"NVML", "missing", loaded.error().message, "no GPU telemetry: rille top, dev:telemetry()"};
  return {"NVML", "ok", "libnvidia-ml.so.1", ""};
}

Check toolkit() {
  for (const char* home : {std::getenv("RILLE_CUDA_PATH"), std::getenv("CUDA_HOME"), static_cast<char*>(nullptr)})
    if (home && std::filesystem::exists(std::string(home) + "/bin/nvcc")) return {"CUDA toolkit", "ok", home, ""};
  if (std::filesystem::exists("/usr/local/cuda/bin/nvcc")) return {"CUDA toolkit", "ok", "/usr/local/cuda", ""};
  std::string nvcc = find_program("nvcc");
  if (!nvcc.empty()) return {"CUDA toolkit", "ok", nvcc, ""};
  return {"CUDA toolkit", "missing", "", "needed only to build Rille's GPU plug-in"};
}

Check disk(const std::string& home) {
  std::error_code ec;
  std::filesystem::create_directories(home, ec);
  struct statvfs fs {};
  if (statvfs(home.c_str(), &fs) != 0) return {"state folder", "missing", home, "runs need a writable RILLE_HOME"};
  auto free = static_cast<std::int64_t>(fs.f_bavail) * static_cast<std::int64_t>(fs.f_frsize);
  if (access(home.c_str(), W_OK) != 0)
    return {"state folder", "missing", home + " is not writable", "runs need a writable RILLE_HOME"};
  std::string found = fmt::format("{}, {} free", home, format_size_bytes(free));
  if (free < 1'000'000'000)
    return {"state folder", "warning", found, "less than 1 GB is left for checkpoints and the cache"};
  return {"state folder", "ok", found, ""};
}

Check journal(App& app) {
  const std::string file = providers_file();
  if (!file.empty() && !provider::make_providers(*app.loop, file, app.home))
    return {"journal", "warning", "not opened: the settings of the providers are wrong", "see the row `providers`"};
  if (Result<> r = open_engine(app); !r) return {"journal", "missing", r.error().message, r.error().hint};
  if (Result<> r = app.engine->journal().check(); !r) return {"journal", "missing", r.error().message, r.error().hint};
  auto runs = app.engine->runs(1'000'000);
  auto leases = app.engine->leases().all(false);
  std::string sqlite;
  (void)app.engine->journal().reader().query("SELECT sqlite_version()", {},
                                             [&](const store::Row& row) { sqlite = row.text(0); });
  return {
      "journal", "ok",
      fmt::format("SQLite {}, {} runs, {} live leases", sqlite, runs ? runs->size() : 0, leases ? leases->size() : 0),
      ""};
}

// Adds one row per configured provider. Sends no requests; `rille doctor --provider NAME` does.
void add_providers(App& app, std::vector<Check>& checks) {
  const std::string file = providers_file();
  const std::string all = file.empty() ? "local" : "local, and those of " + file;
  checks.push_back({"providers", "ok", all, file.empty() ? "other machines than this one: docs/manual/providers" : ""});
  if (file.empty()) return;
  const auto made = provider::make_providers(*app.loop, file, app.home);
  if (!made) {
    checks.back() = {"providers", "missing", made.error().message, made.error().hint};
    return;
  }
  for (const auto& one : *made) {
    const auto about = provider::about_provider(one->name());
    const std::string tried = about ? about->verified : "", dead_man(to_string(one->traits().dead_man));
    checks.push_back({one->name(), "ok", fmt::format("verified: {}; dead man: {}", tried, dead_man),
                      fmt::format("its keys are tried by `rille doctor --provider {}`", one->name())});
  }
}

Exit check_this_machine(App& app) {
  std::vector<Check> checks;
  checks.push_back({"processor", "ok",
                    fmt::format("{} cores; CPU kernels of x86-64-v{} run, this build has {}",
                                std::thread::hardware_concurrency(), kernels::isa_level(), kernels::isa_levels_built()),
                    ""});
  std::string bundle = bundle_folder(), glibc = fmt::format("glibc {}", gnu_get_libc_version());
  checks.push_back({"C library", "ok", glibc + (bundle.empty() ? "" : ", of the bundle " + bundle), ""});
  add_bundle(checks);
  checks.push_back({"LuaJIT", "ok", LUAJIT_VERSION, ""});
  checks.push_back({"libuv", "ok", uv_version_string(), ""});
  checks.push_back(library("libcurl.so.4", "libcurl", "nothing can be staged from the web"));
  checks.push_back(library("libdnnl.so.2", "oneDNN", "tensors cannot be computed on this machine's CPU"));
  checks.push_back(cuda_part());
  checks.push_back(cuda_driver());
  add_cards(checks);
  checks.push_back(nvml());
  checks.push_back(toolkit());
  for (const auto part : device::cuda_parts) checks.push_back(cuda_library(part));
  checks.push_back(program("c++", "C++ compiler", "user kernels on the CPU: dev:kernel"));
  checks.push_back(program("ssh", "ssh", "machines of all providers but local, slurm and kubernetes"));
  checks.push_back(disk(app.home));
  checks.push_back(journal(app));
  add_providers(app, checks);
  bool broken = false;
  for (const Check& c : checks)
    broken = broken || (c.state == "missing" && (c.what == "journal" || c.what == "state folder" ||
                                                 c.what == "oneDNN" || c.what == "providers"));
  if (app.json) app.terminal.out(Value(checks_value(checks)).to_json_pretty() + "\n");
  else app.terminal.out(checks_table(app.terminal, checks, "WITHOUT IT"));
  return broken ? Exit::script : Exit::ok;
}

struct DoctorCommand final : Command {
  LiveArguments live;
  std::string provider;
  bool policy = false;
  void declare(Options& o) override {
    const Option of = o.option("--provider", provider, "test the keys of one provider, or of `all`");
    o.flag("--policy", policy, "print the least-privilege policy that its keys need").needs(of);
    Option rents =
        o.option("--live", live.provider, "rent the cheapest machine of a provider for some minutes, and test all");
    o.option("--max-cost", live.max_cost, "dollars at most (0.50)").needs(rents).above(0);
    o.option("--gpu", live.gpu, "model and count, e.g. T4:1; default: any machine, also without a GPU").needs(rents);
    o.option("--price", live.price, "dollars per hour, where the provider names no price in dollars")
        .needs(rents)
        .at_least(0);
    o.flag("--spot", live.spot, "rent a spot machine").needs(rents);
    rents.excludes(of);
  }
  Exit run(App& app) override {
    if (!live.provider.empty()) return rent_to_check(app, live);
    if (provider.empty()) return check_this_machine(app);
    return policy ? print_policy(app, provider) : check_provider(app, provider);
  }
};

const Registered<DoctorCommand> doctor_row({Group::look, "doctor",
                                            "what this machine has, what is missing, and what that costs",
                                            Opens::nothing});

}  // namespace

Value::Array checks_value(const std::vector<Check>& checks) {
  Value::Array out;
  for (const Check& c : checks)
    out.push_back(Value().set("what", c.what).set("state", c.state).set("found", c.found).set("costs", c.costs));
  return out;
}

std::string checks_table(const Terminal& terminal, const std::vector<Check>& checks, const std::string& last) {
  std::vector<std::vector<std::string>> rows{{"", "", "FOUND", last}};
  for (const Check& c : checks) rows.push_back({c.what, c.state, c.found.empty() ? "-" : c.found, c.costs});
  return wrap_table(terminal, rows);
}

}  // namespace rille::cli
