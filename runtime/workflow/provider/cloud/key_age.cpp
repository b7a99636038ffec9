#include "runtime/workflow/provider/cloud/key_age.hpp"

#include <utility>

namespace rille::provider::cloud {

Async<Identity> with_keys(Identity who, net::CredentialChain& keys, KeyList list, CancelToken token) {
  RILLE_CO_TRY(const net::FoundKeys found, co_await keys.get(token));
  who.from = found.from;
  who.age_unknown = "temporary keys, which end by themselves";
  if (!found.keys.token.empty()) co_return who;
  const Result<Value::Array> rows = co_await list.ask(token);
  if (!rows && token.cancelled()) co_return rows.error();
  who.age_unknown = rows ? std::string(list.service) + " does not list this key" : rows.error().message;
  if (!rows) co_return who;
  for (const Value& row : *rows) {
    if (row.text("AccessKeyId") != found.keys.id) continue;
    const Result<std::int64_t> made = list.time(row.text(list.made));
    if (!made) continue;
    who.key_made_wall_us = *made;
    who.age_unknown.clear();
  }
  co_return who;
}

}  // namespace rille::provider::cloud
