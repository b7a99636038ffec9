// Bridge: calls between the host program and one Lua state, with rille_values instead of JSON. install_modules makes
// one for each state; it outlives the state. The runtime's thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings/c/arena.hpp"
#include "bindings/c/holdings.hpp"
#include "bindings/c/internal.hpp"

namespace rille::capi {

struct CallState;

constexpr int nesting_max = 100;                    // of tables
constexpr std::size_t values_max = 10'000'000;      // in one argument or result
constexpr double integer_max = 9007199254740992.0;  // 2^53
constexpr std::size_t arguments_max = 200;
constexpr std::size_t lent_max = 10'000;  // functions, tensors and buffers in one call

// The position of a value, for errors: "argument 1 of app.add". text() builds the text, which only an error needs.
struct ValueName {
  std::string_view what;
  std::size_t number = 0;  // 0: none
  std::string_view of;
  std::string text() const;
};

// A step into a table.
struct Step {
  const char* name;  // null: an item
  std::size_t size;
  std::size_t item;
};
std::string text_of(const std::vector<Step>& path);  // ".x[2]"

// What Lua lends to the host program during one call. Ends when the host program may no longer use it.
struct Loan {
  Loan() = default;
  explicit Loan(std::shared_ptr<MemoryUse> counted_in) : arena(std::move(counted_in)) {}

  Arena arena;
  std::vector<std::uint64_t> functions, handles;
  // a table that holds the long strings inside lent tables, so that they are not copied and not collected
  int anchor = LUA_NOREF;
  int anchored = 0;
  // Work memory for reading a value; kept so that the next call allocates nothing.
  std::vector<Step> path;
  std::vector<const void*> open;
  std::vector<rille_field> fields;
};

class Bridge {
 public:
  Bridge(rille_runtime& runtime, host::LuaHost& host) : runtime_(runtime), host_(host) {}
  ~Bridge();
  Bridge(const Bridge&) = delete;

  rille_runtime& runtime() const { return runtime_; }
  host::LuaHost& host() const { return host_; }
  Holdings& holdings() const { return *runtime_.holdings; }
  Result<> open();    // call once, before any other function
  void close();       // when the Lua state ends
  void invalidate();  // makes its functions invalid

  // Lua to host program.
  Result<rille_value> lend(lua_State* L, int index, Loan& loan, const ValueName& place);
  // The same inside a protected call; raises.
  rille_value lend_raising(lua_State* L, int index, Loan& loan, const ValueName& place);
  // Host program to Lua: pushes the value. Unprotected only for scalars, which need no memory. Raises.
  void push(lua_State* L, const rille_value& value, const ValueName& place);
  Result<> push_protected(lua_State* L, const rille_value& value, const ValueName& place);
  std::unique_ptr<Loan> new_loan();
  void end(std::unique_ptr<Loan> loan);
  void end(Loan& loan);

  // Calls the function with the registry reference `ref`; it cannot wait. The results stay valid until the next call at
  // the same depth. budget: see Entry.
  Result<> call(int ref, host::Budget* budget, const rille_value* arguments, std::size_t argument_count,
                rille_value* results, std::size_t result_count);
  Result<> call_keeping(int ref, host::Budget* budget, int& kept);  // keeps one result in the registry
  std::size_t depth() const { return depth_; }
  // Exists while a function of a host module runs: only then may functions of a journaled run be called.
  struct Inside {
    explicit Inside(Bridge& b) : bridge(b) { ++bridge.inside_; }
    ~Inside() { --bridge.inside_; }
    Inside(const Inside&) = delete;
    Bridge& bridge;
  };
  bool inside() const { return inside_ > 0; }
  // Hands a suspended or journaled call over from the host function to the wait for its result.
  void set_waiting(std::shared_ptr<CallState> call) { waiting_ = std::move(call); }
  class Waiting {
   public:
    explicit Waiting(Bridge& bridge) : call_(std::move(bridge.waiting_)) {}
    ~Waiting();  // unless begun() was called, nothing waits for the call
    Waiting(const Waiting&) = delete;
    const std::shared_ptr<CallState>& call() const { return call_; }
    void begun() const { begun_ = true; }

   private:
    std::shared_ptr<CallState> call_;
    mutable bool begun_ = false;
  };

  rille_script* script = nullptr;  // null: the state is that of a run
  rille_run* run = nullptr;

 private:
  struct Frame {
    explicit Frame(std::shared_ptr<MemoryUse> counted_in) : loan(std::move(counted_in)) {}
    lua_State* L = nullptr;
    int anchor = LUA_NOREF;
    Loan loan;
  };
  Result<Frame*> frame();
  Result<> enter(Frame& frame, host::Budget* budget, std::size_t argument_count, std::size_t result_count);
  Result<> push_arguments(Frame& frame, int ref, const rille_value* arguments, std::size_t count);

  rille_runtime& runtime_;
  host::LuaHost& host_;
  std::vector<std::unique_ptr<Frame>> frames_;  // index: nesting depth of calls
  std::size_t depth_ = 0;
  int inside_ = 0;
  bool closed_ = false;
  std::shared_ptr<CallState> waiting_;
  std::vector<std::unique_ptr<Loan>> spare_;
};

// Runs fn(L) in a protected call. Its stack: 1 is for internal use, 2 .. are the topmost `arguments` values of L, which
// are popped. The topmost `results` values that fn leaves are pushed on L.
namespace detail {
struct Protected {
  void (*run)(lua_State* L, void* fn);
  void* fn;
  int results;
};
Result<> run_protected(lua_State* L, int arguments, const Protected& what);
int protected_body(lua_State* L);
extern char key_protected;
}  // namespace detail

template <class F>
Result<> protect_here(lua_State* L, int arguments, int results, F&& fn) {
  const detail::Protected what{[](lua_State* l, void* f) { (*static_cast<std::remove_reference_t<F>*>(f))(l); }, &fn,
                               results};
  return detail::run_protected(L, arguments, what);
}

// A copy of a value, for another thread or a later time.
struct Copied {
  explicit Copied(std::shared_ptr<Holdings> of) : holdings(std::move(of)) {}
  ~Copied();
  Copied(const Copied&) = delete;
  Arena arena;
  rille_value value{};
  std::shared_ptr<Holdings> holdings;
  std::vector<rille_handle> handles;  // each is held until the copy ends
};
Result<std::shared_ptr<Copied>> copy(const rille_value& value, std::shared_ptr<Holdings> holdings,
                                     const ValueName& place);
// For the journal. Error `invalid`: the value contains a handle or a function.
Result<Value> to_data(const rille_value& value, const ValueName& place);
// Borrows the strings of `value`. Error `invalid`: keys that are numbers or booleans.
Result<rille_value> lend_data(const Value& value, Arena& arena, const ValueName& place);

}  // namespace rille::capi
