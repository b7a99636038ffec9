// Grants: what a run may reach outside of its Lua state. A host program or a person gives them before the run starts;
// every binding that reads, writes, starts, connects or compiles asks here first, in the one place that decides. A
// check that fails is an error of kind `denied` that names the grant which would allow it; its code is the grant's
// name. A value; any thread. Checks of paths read the file system.
//
// As JSON, and in the journal: { "read": ["/data"], "write": ["rille.home"], "env": ["HF_TOKEN"], "process": true,
// "network": ["example.org", "10.0.0.1:29500"], "kernels": true, "providers": ["aws"] }. Instead of a list: one name,
// or true for all. { "all": true } is everything. docs/manual/grants.md lists which function needs which grant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::host {

class Grants {
 public:
  Grants() = default;  // nothing is granted
  static Grants everything();
  // Relative folders are below `folder`; "": below the working directory. Links in the names of folders are followed
  // now, once. Error `invalid`: an unknown grant, or a value of another type.
  static Result<Grants> parse(const Value& value, const std::string& folder = {});
  // Words as "read=DIR", "env=NAME", "process": "read" alone grants reading everything.
  static Result<Grants> from_words(const std::vector<std::string>& words);
  Value to_value() const;  // parse() reads it

  bool is_everything() const;
  bool rents() const;  // from some provider
  // "rille.home" among the folders is the run's own folder. names_home: whether it occurs.
  bool names_home() const;
  void set_home(const std::string& folder);

  // How a path is meant. file: the file. tree: a folder with everything below it; links inside are checked, too. entry:
  // the name itself, which is not followed if it is a link.
  enum class Names { file, tree, entry };
  // Give the path to open: the same if everything may be read (written), else without links.
  Result<std::string> read(const std::string& path, Names names = Names::file) const;
  Result<std::string> write(const std::string& path, Names names = Names::file) const;
  // For fopen: reads with "r", writes with "w" and "a", both with "+".
  Result<std::string> open(const std::string& path, std::string_view mode) const;
  // As read(), but files below `folder` need no grant: for code beside the script. folder "": no such folder.
  Result<std::string> read_code(const std::string& path, const std::string& folder) const;

  // `what` begins the message: "os.execute".
  Result<> env(const std::string& name) const;
  Result<> process(const std::string& what) const;
  Result<> kernels(const std::string& what) const;
  Result<> connect(const std::string& what, const std::string& host, const std::string& port) const;
  Result<> connect_to_url(const std::string& what, const std::string& url) const;
  // Using the process's keys of a provider, though nothing is rented.
  Result<> keys(const std::string& what, const std::string& provider) const;
  Result<> send_mail(const std::string& what, const std::string& address) const;
  // Checks the members `provider` and `providers` of a query or of the options of a rent; if neither is given, sets
  // `providers` to those that are granted. rents: the provider `local` also needs the grant `process`.
  Result<> choose_providers(const std::string& what, Value& query, bool rents) const;

 private:
  struct List {
    bool all = false;
    std::vector<std::string> names;
    bool has(std::string_view name) const;
  };
  static List* list_of(Grants& grants, std::string_view name);
  Result<> set(const std::string& name, const Value& value, const std::string& folder);
  Result<std::string> path(const List& list, const char* grant, const std::string& path, Names names) const;
  bool covers(const List& list, std::string_view path) const;
  Result<> check_links(const List& list, const char* grant, const std::string& folder) const;

  List read_, write_, env_, network_, providers_;
  bool process_ = false, kernels_ = false;
  std::string home_;  // without links; "": not known yet
};

// An error of kind `denied`: "`what` needs the grant `grant` = `value`". value "": true.
Error denied(const std::string& what, const std::string& grant, const std::string& value = {});

}  // namespace rille::host
