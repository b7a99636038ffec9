// Rille's folders and files on this machine, from the environment.
#pragma once

#include <string>

namespace rille {

// $RILLE_HOME, else $XDG_STATE_HOME/rille, else ~/.local/state/rille; "" when none is known.
std::string default_home();
// rille/ in $XDG_CONFIG_HOME or ~/.config; "" when neither is known.
std::string config_folder();
// The providers' settings: $RILLE_PROVIDERS, else providers.json in config_folder() if the file exists, else "".
std::string providers_file();
// The first executable of that name in $PATH, or "".
std::string find_program(const std::string& name);
// The folder of the bundle that contains this executable (docs/design/bundle.md); "" outside a bundle.
std::string bundle_folder();

}  // namespace rille
