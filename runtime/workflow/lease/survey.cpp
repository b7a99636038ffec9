// Compares the machines that providers show with our tag to the journal's rows. A machine that no row accounts for is a
// stray: `rille leases` shows it, the reaper ends it.
#include <fmt/format.h>

#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/lease/owner.hpp"
#include "runtime/workflow/lease/reaper.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/lease/tag.hpp"
#include "runtime/workflow/provider/left_over.hpp"

namespace rille::lease {

namespace {
constexpr std::int64_t survey_patience_ms = 60'000;
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
  if (row->tag == machine.tag && row->has_machine() && row->machine_id != machine.id) return Account::second;
  if (row->tag != machine.tag && tag.generation < row->generation) return Account::older;
  return Account::own;
}

void Survey::could_not_ask(const std::string& provider, const std::string& region, Error why) {
  why.provider = provider;
  if (!region.empty()) why.message = fmt::format("region {}: {}", region, why.message);
  errors.push_back(std::move(why));
  silent.emplace(provider, region);
}

bool Survey::hears(const std::string& provider, const std::string& region) const {
  return !silent.contains({provider, ""}) && !silent.contains({provider, region});
}

void Survey::add(Survey part) {
  const auto move_all = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move_all(part.machines, machines);
  move_all(part.unseen, unseen);
  move_all(part.errors, errors);
  silent.merge(part.silent);
}

// The machines of one provider and region with their rows. The rows are read right after the provider's list: never
// before, and not much later, because machines in an old list may have been released meanwhile.
Async<Survey> Reaper::shown_by(provider::Provider* provider, std::string region, Names leases, CancelToken token) {
  Survey out;
  const std::string name = provider->name(), what = "asking " + name + " for its machines";
  const auto list = [provider, region, prefix = tag_prefix(install_)](CancelToken t) {
    return provider->list_in(region, prefix, std::move(t));
  };
  Result<provider::Listing> listed = co_await with_deadline(loop_, survey_patience_ms, token, what, list);
  if (!listed) {
    out.could_not_ask(name, region, listed.error());
    co_return out;
  }
  for (provider::AskedRegion& one : listed->unasked)  // may contain other regions, if the provider lists all at once
    if (region.empty() || one.region == region) out.could_not_ask(name, one.region, std::move(*one.problem));
  for (provider::Machine& m : listed->machines) {
    if (m.state == provider::MachineState::gone) continue;
    const std::optional<Tag> tag = read_tag(install_, m.tag);
    if (leases && (!tag || !leases->contains(tag->lease))) continue;
    Survey::Shown one;
    one.provider = name;
    if (tag) {
      RILLE_CO_TRY(one.row, leases_.find(tag->lease));
      one.account = account_of(one.row, m, *tag);
      one.generation = tag->generation;
      one.expires_us = tag->expires_us;
    }
    one.machine = std::move(m);
    out.machines.push_back(std::move(one));
  }
  co_return out;
}

Async<Survey> Reaper::survey(CancelToken token) {
  const std::int64_t began_us = now_us();
  std::vector<Together<Survey>> asked;
  for (provider::Provider* p : registry_.all())
    asked.push_back({p->name(), [this, p](CancelToken t) { return shown_by(p, "", nullptr, std::move(t)); }});
  std::vector<Result<Survey>> answers = co_await together(loop_, std::move(asked), 0, token);
  if (token.cancelled()) co_return token.reason();
  Survey out;
  for (Result<Survey>& answer : answers) {
    RILLE_CO_CHECK(answer);
    std::erase_if(answer->machines, [](const Survey::Shown& one) { return provider::is_free_left_over(one.machine); });
    out.add(std::move(*answer));
  }
  RILLE_CO_TRY(std::vector<Lease> rows,
               leases_.all(false));  // read after the lists, so that no row is older than a list
  std::set<std::string> shown;
  for (const Survey::Shown& one : out.machines) shown.insert(one.machine.tag);
  for (Lease& row : rows) {
    Result<provider::Provider*> p = registry_.find(row.provider);
    if (!p) {  // the provider's settings were removed, so the lease's machine cannot be queried
      if (out.hears(row.provider, "")) out.could_not_ask(row.provider, "", p.error());
      continue;
    }
    const bool visible = row.live_us && row.live_us + (*p)->traits().visibility_lag_ms * 1000 <= began_us;
    const bool heard = out.hears(row.provider, row.request.offer.region);
    if (!row.has_machine() || !visible || !heard || shown.contains(row.tag)) continue;
    const auto missed = std::make_shared<const Lease>(row);
    if (Result<> ours = co_await check_owner(journal_.reader(), *p, missed, token); !ours)
      out.errors.push_back(std::move(ours).error());
    else out.unseen.push_back(std::move(row));
  }
  co_return out;
}

}  // namespace rille::lease
