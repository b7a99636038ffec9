#include "runtime/workflow/provider/cloud/key_owner.hpp"

#include <fmt/format.h>

#include "runtime/core/base/id.hpp"

namespace rille::provider::cloud {

std::string mark_of(const std::string& provider, const net::Credentials& keys) {
  return derive_hex({"rille key", provider, keys.id, keys.id.empty() ? keys.token : std::string()}, 12);
}

Async<std::string> KeyOwner::get(net::CredentialChain* keys, Ask ask, CancelToken token) {
  RILLE_CO_TRY(const net::FoundKeys found, co_await keys->get(token));
  const std::string mark = mark_of(provider_, found.keys);
  if (mark == mark_) co_return owner_;
  RILLE_CO_TRY(const std::string told, co_await ask(token));
  if (told.empty())
    co_return make_error(ErrorKind::integrity, fmt::format("{} does not return the {} of the keys", provider_, kind_),
                         "check with `rille doctor` that the keys are valid; if they are, report it as a bug of Rille");
  owner_ = kind_ + " " + told;
  mark_ = mark;
  co_return owner_;
}

}  // namespace rille::provider::cloud
