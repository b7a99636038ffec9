// Lua source as tokens, for colors, indentation and completion. Any bytes are accepted: what is not Lua is punctuation,
// and what has no end reaches to the end of the text.
#pragma once

#include <string_view>
#include <vector>

namespace rille::cli {

struct LuaToken {
  enum class Kind { name, keyword, constant, number, string, comment, mark };
  Kind kind = Kind::mark;
  std::size_t begin = 0, end = 0;
  bool open = false;  // a string or long comment without its end
};

const char* kind_name(LuaToken::Kind kind);  // "name", "keyword", ..

std::vector<LuaToken> lua_tokens(std::string_view source);

// How many blocks and brackets are open behind the last token; less than 0: more are closed than opened.
int lua_depth(std::string_view source);

}  // namespace rille::cli
