// Rille's folders and files on this machine, from the environment.
#pragma once

#include <string>

namespace rille {

// $RILLE_HOME, else $XDG_STATE_HOME/rille, else ~/.local/state/rille; "" if none of these variables nor $HOME is set.
std::string default_home();
// The folder rille/ in $XDG_CONFIG_HOME, else in ~/.config; "" if neither $XDG_CONFIG_HOME nor $HOME is set.
std::string config_folder();
// The folder of this installation's identity and secret: config_folder(), else /root/.config/rille. If it cannot be
// made there, because $HOME is another user's or read-only, and $XDG_CONFIG_HOME names no other: installation/ in
// default_home().
std::string installation_folder();
// The providers' settings: $RILLE_PROVIDERS, else providers.json in config_folder() if the file exists, else "".
std::string providers_file();
// The path of the first executable file called `name` in the folders of $PATH; "" if there is none.
std::string find_program(const std::string& name);
// The folder of the bundle that contains this executable (docs/design/bundle.md); "" outside a bundle.
std::string bundle_folder();

}  // namespace rille
