// The list of all providers, and the construction of those that the user has configured.
//
// Settings: a JSON file, an object with a field per provider, as {"ssh": {"hosts": ["me@gpu1"]}}. docs/manual/providers
// documents each provider's fields. The settings contain no secrets: keys come from the files of each cloud's own
// tools. The settings may also have "rates", {"CNY": 0.14}: dollars per unit of a currency, for comparing prices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

// The names of all providers, in the order in which they are asked for offers.
const std::vector<std::string>& provider_names();

// The arguments of a provider's constructor.
struct Setup {
  Loop& loop;
  std::string home;    // $RILLE_HOME: for caches
  std::string config;  // this installation's folder: for keys
  Value settings;      // this provider's part of the settings file
};

// How far a driver has been tested, and the minimal permissions that its keys need: a policy document in the provider's
// format, or a sentence if the provider has no such format.
struct About {
  std::string verified, policy;
};
Result<About> about_provider(const std::string& name);  // error invalid: unknown name; the hint has the nearest one

// invalid: unknown name, or `local`, which has no settings; config: the settings are wrong.
Result<std::unique_ptr<Provider>> make_provider(const std::string& name, Setup setup);

// The providers of a settings file. io: it cannot be read; config: an unknown name, with the nearest one.
Result<std::vector<std::unique_ptr<Provider>>> make_providers(Loop& loop, const std::string& settings_file,
                                                              const std::string& home);

}  // namespace rille::provider
