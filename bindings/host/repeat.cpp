// string.rep for a large result: made in pieces, between which it can be ended and can give way.
#include <algorithm>
#include <cstring>
#include <memory>

#include "bindings/host/host.hpp"
#include "bindings/host/pattern.hpp"

namespace rille::host {

namespace {

constexpr std::size_t piece_bytes = 256 << 10;

// Memory that counts as Lua's.
class Scratch {
 public:
  Scratch(lua_State* L, std::size_t size) : size_(size), allocate_(lua_getallocf(L, &payload_)) {
    data_ = static_cast<char*>(allocate_(payload_, nullptr, 0, size));
    if (!data_) (void)lua_newuserdata(L, size);  // raises the error of the memory limit
    if (!data_) data_ = static_cast<char*>(allocate_(payload_, nullptr, 0, size));
    if (!data_) luaL_error(L, "not enough memory");
  }
  ~Scratch() { allocate_(payload_, data_, size_, 0); }
  Scratch(const Scratch&) = delete;
  char* data() { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  void* payload_ = nullptr;
  lua_Alloc allocate_;
  char* data_ = nullptr;
};

// The texts belong to the caller's stack, or to a CallKept.
struct Repeating {
  Scratch out;
  const char *text, *between;
  std::size_t text_size, between_size;
  std::size_t at = 0;

  // true: all is done
  bool add_piece() {
    const std::size_t period = text_size + between_size;
    const char* from = out.data() + at % period;  // what was made first is repeated
    std::size_t most = at;
    if (at < text_size) from = text + at, most = text_size - at;
    else if (at < period) from = between + (at - text_size), most = period - at;
    const std::size_t n = std::min({most - (at < period ? 0 : at % period), out.size() - at, piece_bytes});
    std::memcpy(out.data() + at, from, n);
    at += n;
    return at == out.size();
  }
};

class PausedRepeating final : public PausedCall {
 public:
  PausedRepeating(lua_State* L, std::unique_ptr<Repeating> r) : kept_(L, LuaHost::of(L).lua()), r_(std::move(r)) {}
  bool go_on() override { return r_->add_piece(); }
  int finish(lua_State* L) override {
    lua_pushlstring(L, r_->out.data(), r_->out.size());
    return 1;
  }
  const char* error() const override { return ""; }

 private:
  CallKept kept_;
  std::unique_ptr<Repeating> r_;
};

}  // namespace

int string_rep(lua_State* L) {
  constexpr double size_max = 0x7fffff00;  // of a string in LuaJIT
  std::size_t size = 0, between_size = 0;
  const char* text = luaL_checklstring(L, 1, &size);
  const double times = luaL_checknumber(L, 2);
  const char* between = luaL_optlstring(L, 3, "", &between_size);
  const double total = times * static_cast<double>(size + between_size) - static_cast<double>(between_size);
  if (total >= size_max) return luaL_error(L, "resulting string too large");
  if (total < 1) return lua_pushliteral(L, ""), 1;
  lua_settop(L, 3);
  std::unique_ptr<Repeating> r(new Repeating{{L, static_cast<std::size_t>(total)}, text, between, size, between_size});
  while (!r->add_piece()) {
    LuaHost& host = LuaHost::of(L);
    host.check(L);
    if (host.must_give_way(L)) return host.give_way_in(L, std::make_unique<PausedRepeating>(L, std::move(r)));
  }
  lua_pushlstring(L, r->out.data(), r->out.size());
  return 1;
}

}  // namespace rille::host
