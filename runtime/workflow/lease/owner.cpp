#include "runtime/workflow/lease/owner.hpp"

#include <fmt/format.h>

#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/provider/owner.hpp"

namespace rille::lease {

namespace {

constexpr std::int64_t owner_patience_ms = 5'000;
constexpr const char* other_account = "other_account";

Error not_ours(const Lease& l, const std::string& rented_as, const std::string& now) {
  const std::string what =
      l.machine_id.empty() ? fmt::format("'{}'", l.name) : fmt::format("'{}' ({})", l.name, l.machine_id);
  const bool by_key = provider::is_key_mark(rented_as);
  const std::string message = by_key ? fmt::format(
                                           "{} was rented with another key of {} than the key in use, and the key in "
                                           "use does not show the machine",
                                           what, l.provider)
                                     : fmt::format("{} was rented by {} at {}, but the keys in use belong to {}", what,
                                                   rented_as, l.provider, now);
  const std::string hint =
      by_key ? fmt::format(
                   "set the key that rented it: {} does not tell the account of a key, so \"not found\" proves nothing "
                   "for other keys. Then `rille release {}`",
                   l.provider, l.id)
             : fmt::format("set the keys of {}, then `rille release {}`; until then the machine may cost money",
                           rented_as, l.id);
  Error e = make_error(ErrorKind::auth, message, hint);
  e.code = other_account;
  e.provider = l.provider;
  e.resource = l.id;
  return e;
}

Async<bool> learn(Loop& loop, provider::Provider* provider, std::shared_ptr<Owners> owners, CancelToken token) {
  const auto ask = [provider](CancelToken t) { return provider::owner_of(provider, "", std::move(t)); };
  Result<std::string> told =
      co_await with_deadline(loop, owner_patience_ms, token, "asking " + provider->name() + " whose the keys are", ask);
  owners->insert_or_assign(provider->name(), std::move(told));
  co_return true;
}

}  // namespace

bool is_other_account(const Error& error) { return error.code == other_account; }

Async<bool> learn_owners(Loop& loop, std::vector<provider::Provider*> all, std::shared_ptr<Owners> owners,
                         CancelToken token) {
  std::vector<Together<bool>> asked;
  for (provider::Provider* p : all)
    asked.push_back({p->name(), [&loop, p, owners](CancelToken t) { return learn(loop, p, owners, std::move(t)); }});
  (void)co_await together(loop, std::move(asked), 0, std::move(token));
  co_return true;
}

Async<std::string> known_owner(const Owners& owners, provider::Provider* provider, std::string region,
                               CancelToken token) {
  const auto told = owners.find(provider->name());
  if (told == owners.end() || !told->second || (*told->second).empty()) co_return std::string();
  const Result<std::string> there = co_await provider::owner_of(provider, std::move(region), std::move(token));
  co_return there ? *there : std::string();
}

Result<> record_owner(store::Db& db, const Lease& lease, const std::string& owner) {
  if (owner.empty()) return lease.generation == 1 ? Result<>() : db.run("DELETE FROM owners WHERE lease=?", {lease.id});
  return db.run("INSERT OR REPLACE INTO owners(lease,generation,owner) VALUES(?,?,?)",
                {lease.id, lease.generation, owner});
}

Async<> check_owner(store::Db& db, provider::Provider* provider, std::shared_ptr<const Lease> lease,
                    CancelToken token) {
  std::string rented_as;
  RILLE_CO_CHECK(db.query("SELECT owner FROM owners WHERE lease=? AND generation=?", {lease->id, lease->generation},
                          [&rented_as](const store::Row& row) { rented_as = row.text(0); }));
  if (rented_as.empty()) co_return success();
  Result<std::string> now = co_await provider::owner_of(provider, lease->request.offer.region, std::move(token));
  if (!now) {
    Error e = std::move(now).error();
    e.message = fmt::format("whether the machine of '{}' is gone cannot be told without knowing whose the keys are: {}",
                            lease->name, e.message);
    co_return e;
  }
  if (provider::is_other_owner(rented_as, *now)) co_return not_ours(*lease, rented_as, *now);
  co_return success();
}

}  // namespace rille::lease
