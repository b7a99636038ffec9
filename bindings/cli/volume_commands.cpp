// `rille volume ls` and `rille volume rm`: the disks of this home that outlive machines.
#include <fmt/format.h>

#include "bindings/cli/command.hpp"
#include "bindings/cli/fit.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/engine/instances.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::cli {

namespace {

Result<std::vector<engine::VolumeView>> volumes_of(const App& app) {
  store::Db& journal = app.engine->journal().reader();
  RILLE_TRY(const std::vector<lease::Lease> leases, lease::open_volumes(journal));
  const std::int64_t now_us = app.loop->clock().wall_us();
  std::vector<engine::VolumeView> out;
  for (const lease::Lease& l : leases) {
    RILLE_TRY(const std::vector<lease::User> users, lease::users_of(journal, l.id, now_us));
    std::string names;
    for (const lease::User& u : users) names += (names.empty() ? "" : ", ") + u.name;
    out.push_back(engine::VolumeView::of(l, std::move(names), now_us));
  }
  return out;
}

struct VolumeListCommand final : Command {
  Exit run(App& app) override {
    const auto volumes = volumes_of(app);
    if (!volumes) return fail(app, volumes.error());
    Value::Array values;
    std::vector<std::vector<std::string>> rows{
        {"NAME", "STATE", "SIZE", "KIND", "PROVIDER", "REGION", "VOLUME", "PER HOUR", "SPENT", "ENDS", "ON"}};
    for (const engine::VolumeView& v : *volumes) {
      values.push_back(v.to_value());
      rows.push_back({v.name, v.state, format_size_bytes(v.size_bytes), v.kind, v.provider, v.region, v.volume,
                      v.shown_price, format_dollars(v.spent_micros), v.keep ? "kept" : "with its scope", v.user});
    }
    if (app.json) app.terminal.out(Value(std::move(values)).to_json_pretty() + "\n");
    else if (volumes->empty()) app.terminal.out("no volumes\n");
    else app.terminal.out(fit_table(app.terminal, std::move(rows), {{"VOLUME", 12}, {"VOLUME"}, {"KIND"}, {"REGION"}}));
    return Exit::ok;
  }
};

struct VolumeRemoveCommand final : Command {
  std::string name;
  void declare(Options& o) override { o.option("NAME", name, "which; its data are lost").required(); }
  Exit run(App& app) override {
    const auto volumes = volumes_of(app);
    if (!volumes) return fail(app, volumes.error());
    std::vector<std::string> names;
    for (const engine::VolumeView& v : *volumes) {
      names.push_back(v.name);
      if (v.name != name && v.id != name) continue;
      if (Result<> r = run_blocking(*app.loop, app.engine->leases().release(v.id, nullptr)); !r) {
        fail(app, r.error());
        return r.error().code == "volume_in_use" ? Exit::script : Exit::cleanup_pending;
      }
      if (app.json) app.terminal.out(Value().set("deleted", v.name).to_json_pretty() + "\n");
      else app.terminal.note("deleted the volume " + v.name);
      return Exit::ok;
    }
    const std::string near = did_you_mean(name, names);
    return fail(app, make_error(ErrorKind::invalid, fmt::format("there is no volume '{}'", name),
                                near.empty() ? "list them with `rille volume ls`" : "did you mean " + near + "?"));
  }
};

struct VolumeCommand final : Command {
  Exit run(App& app) override { return VolumeListCommand().run(app); }
};

const Registered<VolumeCommand> volume_row({Group::money, "volume", "disks that outlive machines: ls, rm"});
const Registered<VolumeListCommand> volume_list_row({Group::money, "volume ls", "list volumes"});
const Registered<VolumeRemoveCommand> volume_remove_row({Group::money, "volume rm", "delete a volume with its data"});

}  // namespace

}  // namespace rille::cli
