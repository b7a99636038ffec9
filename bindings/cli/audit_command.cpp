// `rille audit`: shows the audit trail and checks that no one altered it.
#include <fmt/format.h>

#include "bindings/cli/command.hpp"
#include "runtime/core/store/audit.hpp"

namespace rille::cli {

namespace {

// Describes an event in a few words: the lease and its machine, or else the event's fields.
std::string about(const Value& event) {
  std::string out;
  for (const char* field : {"name", "machine_id", "provider", "state", "message"}) {
    std::string text = event.text(field);
    if (!text.empty()) out += (out.empty() ? "" : " ") + text;
  }
  return out;
}

std::optional<Error> verdict(const store::Trail& trail, const std::string& kept) {
  auto wrong = [](std::string what, const char* hint) {
    return make_error(ErrorKind::integrity, std::move(what), hint).with_operation("audit");
  };
  if (trail.broken)
    return wrong(fmt::format("the audit trail is broken at row {}", *trail.broken),
                 "that row, or one before it, was altered, removed or inserted; compare with a copy of the journal");
  if (!kept.empty() && !trail.met)
    return wrong(fmt::format("no row of the audit trail has the hash {}", kept),
                 "rows were removed at the trail's end, or this is an older or a different journal");
  return std::nullopt;
}

struct AuditCommand final : Command {
  std::string of_run, kept;
  void declare(Options& o) override {
    o.option("RUN", of_run, "only this run");
    o.option("--kept", kept, "a hash noted down earlier, which must still be in the trail");
  }
  Exit run(App& app) override;
};

Exit AuditCommand::run(App& app) {
  std::string id;
  if (!of_run.empty()) {
    Result<engine::RunRow> row = app.engine->run(of_run);
    if (!row) return fail(app, row.error());
    id = row->id;
  }
  if (!kept.empty() && kept.size() < 8)
    return fail(app, make_error(ErrorKind::invalid, fmt::format("--kept {}: the hash is too short", kept),
                                "write at least the first 8 digits of the hash"));
  Result<store::Trail> trail = store::check_trail(app.engine->journal().reader(), kept);
  if (!trail) return fail(app, trail.error());
  Result<std::vector<Value>> events = app.engine->events(id);
  if (!events) return fail(app, events.error());
  std::optional<Error> wrong = verdict(*trail, kept);
  if (app.json) {
    Value v;
    v.set("events", Value::Array(events->begin(), events->end())).set("rows", trail->rows).set("head", trail->head);
    if (wrong) v.set("error", error_to_value(*wrong));
    app.terminal.out(v.to_json_pretty() + "\n");
    return wrong ? Exit::script : Exit::ok;
  }
  if (!events->empty()) {
    std::vector<std::vector<std::string>> rows{{"TIME", "RUN", "EVENT", "WHAT", "HASH"}};
    for (const Value& e : *events)
      rows.push_back({e.text("at"), e.text("run"), e.text("event"), about(e), e.text("hash").substr(0, 12)});
    app.terminal.out(format_table(rows));
  }
  if (wrong) return fail(app, *wrong);
  app.terminal.out(trail->rows
                       ? fmt::format("{} events, the trail is whole; its last hash is {}\n", trail->rows, trail->head)
                       : "no events yet\n");
  return Exit::ok;
}

const Registered<AuditCommand> audit_row({Group::money, "audit",
                                          "what was done that costs money, and whether the trail is whole"});

}  // namespace

}  // namespace rille::cli
