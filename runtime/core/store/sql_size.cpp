#include "runtime/core/store/sql_size.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace rille::store {

namespace {

constexpr int levels_max = 200;

struct Token {
  char kind = 0;     // 'a': a name or keyword, else the character itself
  std::string name;  // in lower case
  std::size_t at = 0;
};

bool in_name(char c) {
  const auto u = static_cast<unsigned char>(c);
  return (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || (u >= '0' && u <= '9') || u == '_' || u == '$' ||
         u >= 0x80;
}

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c; }

// Texts in any quotes count as names, because SQLite accepts them as names.
std::vector<Token> tokens_of(std::string_view sql) {
  std::vector<Token> out;
  for (std::size_t i = 0; i < sql.size();) {
    const char c = sql[i];
    const bool line = sql.substr(i).starts_with("--");
    if (line || sql.substr(i).starts_with("/*")) {
      const std::size_t end = line ? sql.find('\n', i) : sql.find("*/", i + 2);
      i = end == sql.npos ? sql.size() : end + (line ? 1 : 2);
      continue;
    }
    Token token{c, {}, i++};
    if (c == '"' || c == '\'' || c == '`' || c == '[') {
      const char quote = c == '[' ? ']' : c;
      for (; i < sql.size(); ++i) {
        if (sql[i] == quote && (c == '[' || i + 1 == sql.size() || sql[++i] != quote)) break;
        token.name += small(sql[i]);
      }
      if (c == '[' && i < sql.size()) ++i;
      token.kind = 'a';
    } else if (in_name(c)) {
      token.name = small(c);
      while (i < sql.size() && in_name(sql[i])) token.name += small(sql[i++]);
      token.kind = 'a';
    }
    if (token.kind != ' ' && token.kind != '\n') out.push_back(std::move(token));
  }
  return out;
}

struct Definition {
  double bytes = 0;  // size of its text; once `known`, including the definitions that it uses
  std::map<std::string, int, std::less<>> uses;
  enum { untried, tried, known } state = untried;
};
using Definitions = std::map<std::string, Definition, std::less<>>;

struct Text {
  std::vector<Token> tokens;
  std::vector<std::size_t> closing;  // per '(': the index of its ')', or the end
};

Text text_of(std::string_view sql) {
  Text out{tokens_of(sql), {}};
  out.closing.assign(out.tokens.size(), out.tokens.size());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < out.tokens.size(); ++i) {
    if (out.tokens[i].kind == '(') open.push_back(i);
    if (out.tokens[i].kind != ')' || open.empty()) continue;
    out.closing[open.back()] = i;
    open.pop_back();
  }
  return out;
}

// Adds the names in [from, to), except those before a dot, and the texts of WITH among them.
void add(const Text& text, std::size_t from, std::size_t to, Definition& into, Definitions& all, int level) {
  if (level > levels_max) into.bytes = INFINITY;
  if (level > levels_max) return;
  const auto is = [&](std::size_t i, std::string_view name) { return i < to && text.tokens[i].name == name; };
  const auto opens = [&](std::size_t i) { return i < to && text.tokens[i].kind == '('; };
  for (std::size_t i = from; i < to; ++i) {
    if (text.tokens[i].kind != 'a' || (i + 1 < to && text.tokens[i + 1].kind == '.')) continue;
    std::size_t body = i + 1;
    if (opens(body)) body = text.closing[body] + 1;
    const bool as = is(body, "as");
    if (as) ++body;
    if (as && is(body, "not")) ++body;
    if (as && is(body, "materialized")) ++body;
    if (!as || !opens(body)) {
      ++into.uses[text.tokens[i].name];
      continue;
    }
    const std::size_t end = std::min(text.closing[body], to);
    Definition& made = all[text.tokens[i].name];
    made.bytes += static_cast<double>(text.tokens[end - 1].at - text.tokens[body].at);
    add(text, body + 1, end, made, all, level + 1);
    i = end;
  }
}

double bytes_of(Definition& d, Definitions& all, int level) {
  if (d.state == Definition::known) return d.bytes;
  if (d.state == Definition::tried) return 0;  // it uses itself
  if (level > levels_max) return INFINITY;
  d.state = Definition::tried;
  for (const auto& [name, times] : d.uses)
    if (const auto used = all.find(name); used != all.end()) d.bytes += times * bytes_of(used->second, all, level + 1);
  d.state = Definition::known;
  return d.bytes;
}

}  // namespace

double expanded_bytes(std::string_view sql, const std::vector<std::pair<std::string, std::string>>& schema) {
  Definitions all;
  Definition whole{static_cast<double>(sql.size()), {}, {}};
  const auto add_text = [&](std::string_view text, Definition& into) {
    const Text read = text_of(text);
    add(read, 0, read.tokens.size(), into, all, 0);
  };
  add_text(sql, whole);
  for (const auto& [name, text] : schema) {
    std::string key;
    for (const char c : name) key += small(c);
    Definition& view = key.empty() ? whole : all[key];
    view.bytes += static_cast<double>(text.size());
    add_text(text, view);
    view.uses.erase(key);
  }
  return bytes_of(whole, all, 0);
}

}  // namespace rille::store
