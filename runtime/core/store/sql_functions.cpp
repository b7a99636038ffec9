#include "runtime/core/store/sql_functions.hpp"

#include <cstring>
#include <string>
#include <string_view>
#include <unordered_set>

namespace rille::store {

namespace {

// The text in UTF-8, or the bytes of a blob. zeroblob(n) and values of other types are converted as SQLite casts them.
std::string_view bytes_of(sqlite3_value* v) {
  const void* bytes = sqlite3_value_type(v) == SQLITE_BLOB ? sqlite3_value_blob(v) : sqlite3_value_text(v);
  return {static_cast<const char*>(bytes ? bytes : ""), static_cast<std::size_t>(sqlite3_value_bytes(v))};
}

bool any_null(int n, sqlite3_value** v) {
  for (int i = 0; i < n; ++i)
    if (sqlite3_value_type(v[i]) == SQLITE_NULL) return true;
  return false;
}

std::size_t place_of(std::string_view text, std::string_view part, std::size_t from) {
  const void* at = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return at ? static_cast<std::size_t>(static_cast<const char*>(at) - text.data()) : text.npos;
}

bool begins_char(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// Positions count from 1: characters, or bytes if both values are blobs.
void instr(sqlite3_context* context, int n, sqlite3_value** v) {
  if (any_null(n, v)) return;
  const bool blobs = sqlite3_value_type(v[0]) == SQLITE_BLOB && sqlite3_value_type(v[1]) == SQLITE_BLOB;
  const std::string_view text = bytes_of(v[0]);
  const std::size_t at = place_of(text, bytes_of(v[1]), 0);
  sqlite3_int64 place = at == text.npos ? 0 : 1;
  for (std::size_t i = 0; place && i < at; ++i) place += blobs || begins_char(text[i]);
  sqlite3_result_int64(context, place);
}

void replace(sqlite3_context* context, int n, sqlite3_value** v) {
  if (any_null(n - 1, v)) return;
  const auto text_of = [](sqlite3_value* value) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
    return std::string_view(text ? text : "", text ? static_cast<std::size_t>(sqlite3_value_bytes(value)) : 0);
  };
  const std::string_view text = text_of(v[0]), part = text_of(v[1]), with = text_of(v[2]);
  if (part.empty() || part[0] == '\0') return sqlite3_result_value(context, v[0]);
  if (any_null(n, v)) return;
  const auto bytes_max =
      static_cast<std::size_t>(sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
  std::string out;
  for (std::size_t from = 0;;) {
    const std::size_t at = place_of(text, part, from);
    out += text.substr(from, at == text.npos ? at : at - from);
    if (at == text.npos) break;
    out += with;
    from = at + part.size();
    if (out.size() > bytes_max) return sqlite3_result_error_toobig(context);
  }
  sqlite3_result_text64(context, out.data(), out.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// Number of bytes of a text's first character.
std::size_t char_bytes(std::string_view text) {
  std::size_t n = 1;
  if (static_cast<unsigned char>(text[0]) >= 0xc0)
    while (n < text.size() && !begins_char(text[n])) ++n;
  return n;
}

enum Ends { front = 1, back = 2 };

template <int ends>
void trim(sqlite3_context* context, int n, sqlite3_value** v) {
  if (any_null(n, v)) return;
  std::string_view text = bytes_of(v[0]);
  std::unordered_set<std::string_view> dropped;
  const std::string_view given = bytes_of(v[1]);
  for (std::string_view rest = given.substr(0, given.find('\0')); !rest.empty(); rest.remove_prefix(char_bytes(rest)))
    dropped.insert(rest.substr(0, char_bytes(rest)));
  if (ends & front)
    while (!text.empty() && dropped.contains(text.substr(0, char_bytes(text)))) text.remove_prefix(char_bytes(text));
  while ((ends & back) && !text.empty()) {
    std::size_t at = text.size() - 1;
    while (at > 0 && !begins_char(text[at])) --at;
    if (!dropped.contains(text.substr(at))) break;
    text.remove_suffix(text.size() - at);
  }
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// An exception must not pass through SQLite.
template <auto Fn>
void guarded(sqlite3_context* context, int n, sqlite3_value** v) {
  try {
    Fn(context, n, v);
  } catch (const std::exception&) { sqlite3_result_error_nomem(context); }
}

}  // namespace

void add_linear_functions(sqlite3* db) {
  const auto add = [&](const char* name, int arguments, auto* fn) {
    constexpr int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    sqlite3_create_function_v2(db, name, arguments, flags, nullptr, fn, nullptr, nullptr, nullptr);
  };
  add("instr", 2, guarded<instr>);
  add("replace", 3, guarded<replace>);
  add("trim", 2, guarded<trim<front | back>>);
  add("ltrim", 2, guarded<trim<front>>);
  add("rtrim", 2, guarded<trim<back>>);
}

}  // namespace rille::store
