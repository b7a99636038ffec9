#include "bindings/host/bytecode.hpp"

#include <cstdint>
#include <cstring>

namespace rille::host {

namespace {

// opcodes USETV USETS USETN USETP of LuaJIT 2.1 (lj_bc.h); a test checks these numbers
constexpr unsigned uset_first = 46, uset_last = 49;
constexpr unsigned gget = 54, gset = 55;
constexpr unsigned uv_local = 0x8000, uv_index = 0x3fff;
constexpr unsigned kgc_child = 0, kgc_table = 1, kgc_i64 = 2, kgc_u64 = 3, kgc_complex = 4, kgc_string = 5;
constexpr unsigned ktab_int = 3, ktab_num = 4, ktab_string = 5;

struct Reader {
  const unsigned char* p;
  const unsigned char* end;
  bool ok = true;

  unsigned byte() {
    if (p >= end) {
      ok = false;
      return 0;
    }
    return *p++;
  }
  std::uint32_t uleb() {
    std::uint32_t v = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      unsigned b = byte();
      v |= static_cast<std::uint32_t>(b & 0x7f) << shift;
      if (b < 0x80) break;
    }
    return v;
  }
  void skip(std::size_t n) {
    if (static_cast<std::size_t>(end - p) < n) {
      ok = false;
      p = end;
    } else p += n;
  }
};

void skip_table_item(Reader& r) {
  std::uint32_t type = r.uleb();
  if (type == ktab_int) r.uleb();
  else if (type == ktab_num) {
    r.uleb();
    r.uleb();
  } else if (type >= ktab_string) r.skip(type - ktab_string);
}

struct Proto {
  Prototype out;
  std::vector<std::uint16_t> upvalues;
};

// Reads one prototype. `stack` holds the prototypes read so far that no outer prototype has claimed yet.
bool read_proto(std::string_view bytes, std::vector<Proto>& all, std::vector<std::size_t>& stack) {
  auto* begin = reinterpret_cast<const unsigned char*>(bytes.data());
  Reader r{begin, begin + bytes.size()};
  r.skip(3);  // skip flags, number of parameters, frame size
  std::size_t upvalues = r.byte();
  std::uint32_t gc_constants = r.uleb();
  r.uleb();
  std::uint32_t instructions = r.uleb();
  Proto proto;
  if (r.uleb() != 0) {  // not 0: debug information follows (first line, number of lines)
    proto.out.first_line = r.uleb();
    r.uleb();
  }
  proto.out.bytes = bytes;
  proto.out.assigned.resize(upvalues);
  // an instruction's opcode, and the index of the global's name, counted from the last constant
  std::vector<std::pair<unsigned, std::uint32_t>> globals;
  for (std::uint32_t i = 0; i < instructions && r.ok; ++i) {
    unsigned op = r.byte(), a = r.byte(), low = r.byte(), d = low | r.byte() << 8;
    if (op == gget || op == gset) globals.emplace_back(op, d);
    if (op >= uset_first && op <= uset_last && a < upvalues) proto.out.assigned[a] = true;
  }
  for (std::size_t i = 0; i < upvalues; ++i) {
    unsigned low = r.byte();
    proto.upvalues.push_back(static_cast<std::uint16_t>(low | r.byte() << 8));
  }
  for (std::uint32_t i = 0; i < gc_constants && r.ok; ++i) {
    std::uint32_t type = r.uleb();
    if (type >= kgc_string) {
      const std::string_view text(reinterpret_cast<const char*>(r.p), type - kgc_string);
      r.skip(text.size());
      for (const auto& [op, d] : globals)
        if (r.ok && d == gc_constants - 1 - i) (op == gget ? proto.out.reads : proto.out.writes).emplace_back(text);
    } else if (type == kgc_i64 || type == kgc_u64) {
      r.uleb();
      r.uleb();
    } else if (type == kgc_complex) {
      r.uleb();
      r.uleb();
      r.uleb();
      r.uleb();
    } else if (type == kgc_table) {
      std::uint32_t array = r.uleb(), hash = r.uleb();
      for (std::uint32_t n = 0; n < array && r.ok; ++n) skip_table_item(r);
      for (std::uint32_t n = 0; n < 2 * hash && r.ok; ++n) skip_table_item(r);
    } else if (type == kgc_child) {
      if (stack.empty()) return false;
      const Proto& child = all[stack.back()];
      stack.pop_back();
      for (std::size_t u = 0; u < child.upvalues.size(); ++u) {
        unsigned where = child.upvalues[u];
        if (child.out.assigned[u] && !(where & uv_local) && (where & uv_index) < upvalues)
          proto.out.assigned[where & uv_index] = true;
      }
    }
  }
  if (!r.ok) return false;
  stack.push_back(all.size());
  all.push_back(std::move(proto));
  return true;
}

}  // namespace

std::string dump_function(lua_State* L, int index) {
  std::string out;
  lua_pushvalue(L, index);
  lua_dump(
      L,
      [](lua_State*, const void* p, std::size_t n, void* ud) -> int {
        static_cast<std::string*>(ud)->append(static_cast<const char*>(p), n);
        return 0;
      },
      &out);
  lua_pop(L, 1);
  return out;
}

Result<std::vector<Prototype>> read_prototypes(std::string_view dump) {
  Error bad = make_error(ErrorKind::internal, "this LuaJIT dumps functions in a format that Rille does not know");
  auto* begin = reinterpret_cast<const unsigned char*>(dump.data());
  Reader r{begin, begin + dump.size()};
  if (dump.size() < 5 || std::memcmp(dump.data(), "\x1bLJ\x02", 4) != 0) return bad;
  r.skip(4);
  if (!(r.uleb() & 2)) r.skip(r.uleb());  // the dump has debug information: skip the chunk's name
  std::vector<Proto> all;
  std::vector<std::size_t> stack;
  while (r.ok) {
    std::uint32_t length = r.uleb();
    if (length == 0) break;
    if (static_cast<std::size_t>(r.end - r.p) < length) return bad;
    std::string_view bytes(reinterpret_cast<const char*>(r.p), length);
    if (!read_proto(bytes, all, stack)) return bad;
    r.skip(length);
  }
  if (!r.ok || all.empty()) return bad;
  std::vector<Prototype> out;
  for (Proto& p : all) out.push_back(std::move(p.out));
  return out;
}

}  // namespace rille::host
