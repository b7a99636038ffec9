// What the providers show with our tag, held beside the rows.
#include "runtime/lease/rows.hpp"
#include "runtime/lease/tag.hpp"
#include "runtime/loop/together.hpp"

namespace rille::lease {

namespace {
constexpr std::int64_t patience_ms = 60'000;
}  // namespace

std::string_view to_string(Account account) {
  switch (account) {
    case Account::own: return "own";
    case Account::second: return "second";
    case Account::older: return "older";
    case Account::settled: return "settled";
    case Account::unknown: break;
  }
  return "unknown";
}

Account account_of(const std::optional<Lease>& row, const provider::Machine& machine, const Tag& tag) {
  if (!row) return Account::unknown;
  if (row->tag == machine.tag && row->state == "released") return Account::settled;
  if (row->tag == machine.tag && row->state == "live" && row->machine_id != machine.id) return Account::second;
  if (row->tag != machine.tag && tag.generation < row->generation) return Account::older;
  return Account::own;
}

Async<Survey> Manager::survey(CancelToken token) {
  using Machines = std::vector<provider::Machine>;
  const std::int64_t began_us = now_us();
  std::vector<Together<Machines>> asked;
  std::vector<provider::Provider*> providers = registry_.all();
  for (provider::Provider* p : providers)
    asked.push_back({"asking " + p->name() + " for its machines",
                     [p, prefix = tag_prefix(install_)](CancelToken t) { return p->list(prefix, std::move(t)); }});
  std::vector<Result<Machines>> answers = co_await together(loop_, std::move(asked), patience_ms, token);
  if (token.cancelled()) co_return token.reason();
  Survey out;
  RILLE_CO_TRY(std::vector<Lease> rows, all(false));  // after the lists: never older than what they show
  std::set<std::string> answered, shown;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) {
      out.errors.push_back(answers[i].error());
      out.errors.back().provider = providers[i]->name();
      continue;
    }
    answered.insert(providers[i]->name());
    for (provider::Machine& m : *answers[i]) {
      std::optional<Tag> tag = read_tag(install_, m.tag);
      if (!tag || m.state == provider::MachineState::gone) continue;
      Survey::Shown one;
      one.provider = providers[i]->name();
      RILLE_CO_TRY(one.row, find(tag->lease));
      one.account = account_of(one.row, m, *tag);
      one.expires_us = tag->expires_us;
      shown.insert(m.tag);
      one.machine = std::move(m);
      out.machines.push_back(std::move(one));
    }
  }
  for (Lease& row : rows) {
    Result<provider::Provider*> p = registry_.find(row.provider);
    if (!p) {  // its settings have gone: nobody can ask for its machine
      out.errors.push_back(p.error());
      out.errors.back().provider = row.provider;
      continue;
    }
    const bool visible = row.live_us && row.live_us + (*p)->traits().visibility_lag_ms * 1000 <= began_us;
    if (row.state == "live" && visible && answered.contains(row.provider) && !shown.contains(row.tag))
      out.unseen.push_back(std::move(row));
  }
  co_return std::move(out);
}

}  // namespace rille::lease
