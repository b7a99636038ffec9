// Where things are on this machine, as the environment says.
#pragma once

#include <string>

namespace rille {

// $RILLE_HOME, else $XDG_STATE_HOME/rille, else ~/.local/state/rille; "" when none of them is known.
std::string default_home();
// rille/ in $XDG_CONFIG_HOME or ~/.config; "" when neither is known.
std::string config_folder();
// The settings of providers: $RILLE_PROVIDERS, else providers.json in config_folder(), if it is there; else "".
std::string providers_file();
// The first executable of that name in $PATH, or "".
std::string find_program(const std::string& name);
// The folder of the bundle that this process was started from (docs/design/bundle.md), or "" for any other program.
std::string bundle_folder();

}  // namespace rille
