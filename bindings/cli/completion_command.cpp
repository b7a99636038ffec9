// `rille completion bash|zsh|fish`: generates a completion script from the table of commands and their declared
// options. When the user completes a word, the script queries the ids of runs and leases.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bindings/cli/command.hpp"
#include "bindings/cli/parser/command_line.hpp"

namespace rille::cli {

namespace {

constexpr const char* of_runs = "rille ps -n 50 2>/dev/null | awk 'NR > 1 { print $1 }'";
constexpr const char* of_leases = "rille leases 2>/dev/null | awk 'NR > 1 { print $1 }'";

// What a generated completion script needs to know about one command.
struct Completed {
  std::string name, text;
  std::vector<DeclaredOption> options;
  bool runs = false, leases = false;  // whether the command's first argument is a run's id, or a lease's id
};

std::vector<Completed> completed_commands() {
  std::vector<Completed> out;
  for (DeclaredCommand& declared : declared_commands()) {
    Completed c{declared.row->name, declared.row->text, std::move(declared.options)};
    for (const std::string& name : declared.positionals) {
      c.leases = c.leases || name == "LEASE|RUN" || name == "BOX";
      c.runs = c.runs || c.leases || name == "RUN";
    }
    out.push_back(std::move(c));
  }
  return out;
}

std::string words(const Completed& c) {
  std::string out;
  for (const auto& [name, text] : c.options) out += (out.empty() ? "" : " ") + name;
  return out;
}

std::string names(const std::vector<Completed>& all, const char* between, bool (*which)(const Completed&)) {
  std::vector<std::string> out;
  for (const Completed& c : all)
    if (which(c)) out.push_back(c.name);
  return fmt::format("{}", fmt::join(out, between));
}

bool any(const Completed&) { return true; }
bool runs_only(const Completed& c) { return c.runs && !c.leases; }
bool has_leases(const Completed& c) { return c.leases; }

std::string quoted(std::string text, const char* quote) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += std::string_view(quote).size())
    text.replace(at, 1, quote);
  return "'" + text + "'";
}

std::string bash(const std::vector<Completed>& all) {
  std::string cases;
  for (const Completed& c : all) cases += fmt::format("    {}) options='{}' ;;\n", c.name, words(c));
  return fmt::format(R"sh(# rille completion bash. Read it in ~/.bashrc: source <(rille completion bash)
_rille() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} command= options= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in -*) ;; *) command=${{COMP_WORDS[i]}}; break ;; esac
  done
  COMPREPLY=()
  case $command in
    '')
      COMPREPLY=($(compgen -W '{} --json --version --help' -- "$word") $(compgen -f -X '!*.lua' -- "$word"))
      return ;;
{}  esac
  case $word in -*) COMPREPLY=($(compgen -W "$options --json --help" -- "$word")); return ;; esac
  case $command in
    {}) COMPREPLY=($(compgen -W "last $({})" -- "$word")) ;;
    {}) COMPREPLY=($(compgen -W "last $({}) $({})" -- "$word")) ;;
    completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _rille rille
)sh",
                     names(all, " ", any), cases, names(all, "|", runs_only), of_runs, names(all, "|", has_leases),
                     of_runs, of_leases);
}

std::string zsh(const std::vector<Completed>& all) {
  std::string list, cases;
  for (const Completed& c : all) {
    list += "    " + quoted(c.name + ":" + c.text, "'\\''") + "\n";
    cases += fmt::format("      {}) compadd -- {} --json --help ;;\n", c.name, words(c));
  }
  return fmt::format(R"sh(#compdef rille
# rille completion zsh. Read it in ~/.zshrc, after compinit: source <(rille completion zsh)
_rille() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    _files -g '*.lua'
    return
  fi
  if [[ $PREFIX == -* ]]; then
    case $words[2] in
{}    esac
    return
  fi
  case $words[2] in
    {}) compadd -- last $({}) ;;
    {}) compadd -- last $({}) $({}) ;;
    completion) compadd -- bash zsh fish ;;
    *) _files ;;
  esac
}}
compdef _rille rille
)sh",
                     list, cases, names(all, "|", runs_only), of_runs, names(all, "|", has_leases), of_runs, of_leases);
}

std::string fish(const std::vector<Completed>& all) {
  std::string out = "# rille completion fish. Keep it: rille completion fish > ~/.config/fish/completions/rille.fish\n";
  const char* quote = "\\'";
  for (const Completed& c : all) {
    out += fmt::format("complete -c rille -n __fish_use_subcommand -a {} -d {}\n", c.name, quoted(c.text, quote));
    for (const auto& [name, text] : c.options)
      out += fmt::format("complete -c rille -n '__fish_seen_subcommand_from {}' {} {} -d {}\n", c.name,
                         name.starts_with("--") ? "-l" : "-s", name.substr(name.find_first_not_of('-')),
                         quoted(text, quote));
  }
  auto ids = [&](const std::string& of, const char* ask) {
    out += fmt::format("complete -c rille -n '__fish_seen_subcommand_from {}' -f -a {}\n", of,
                       quoted(fmt::format("(echo last; {})", ask), quote));
  };
  ids(names(all, " ", runs_only), of_runs);
  ids(names(all, " ", has_leases), of_runs);
  ids(names(all, " ", has_leases), of_leases);
  out += "complete -c rille -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n";
  return out;
}

struct Completion final : Command {
  std::string shell;
  void declare(Options& o) override {
    o.option("SHELL", shell, "bash, zsh or fish").required().among({"bash", "zsh", "fish"});
  }
  Exit run(App& app) override {
    const std::vector<Completed> all = completed_commands();
    const std::string text = shell == "bash" ? bash(all) : shell == "zsh" ? zsh(all) : fish(all);
    app.terminal.out(app.json ? Value().set("shell", shell).set("text", text).to_json_pretty() + "\n" : text);
    return Exit::ok;
  }
};

const Registered<Completion> completion({Group::project, "completion",
                                         "a script that makes the shell complete commands, options and ids",
                                         Opens::nothing});

}  // namespace

}  // namespace rille::cli
