// Which providers there are, and those that this user has set up: the one place that names each.
//
// Settings: a JSON file, an object with a field per provider, as {"ssh": {"hosts": ["me@gpu1"]}}. Each provider's page
// in docs/manual/providers says what its part may hold. Never a secret: those come from where each cloud's own tools
// keep them. Beside them "rates", {"CNY": 0.14}: what currencies are worth in dollars, for those who compare.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

// All names, in the order in which they are asked.
const std::vector<std::string>& provider_names();

// What each provider is made with.
struct Setup {
  Loop& loop;
  std::string home;    // $RILLE_HOME: for what may be lost
  std::string config;  // this installation's folder: for keys
  Value settings;      // this provider's part of the file
};

// How far a driver has been tried, and the least that its user must be allowed, in the provider's own form: a document
// to be given to it, or a sentence where it has none.
struct About {
  std::string verified, policy;
};
Result<About> about_provider(const std::string& name);  // invalid: with the nearest name

// One provider. invalid: there is none of that name, or it is `local`, which has no settings; config: they are wrong.
Result<std::unique_ptr<Provider>> make_provider(const std::string& name, Setup setup);

// The providers of a settings file. io: it cannot be read; config: it says what nobody knows, with the nearest name.
Result<std::vector<std::unique_ptr<Provider>>> make_providers(Loop& loop, const std::string& settings_file,
                                                              const std::string& home);

}  // namespace rille::provider
