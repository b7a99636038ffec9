// The prompt's editor without a terminal: keys in, text and picture out.
#include "bindings/cli/prompt/line_editor.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "bindings/cli/prompt/characters.hpp"
#include "bindings/cli/prompt/lua_tokens.hpp"

using namespace rille::cli;

namespace {

// As the prompt asks Lua, but from the tokens alone.
bool opens_a_block(const std::string& text) {
  const std::vector<LuaToken> tokens = lua_tokens(text);
  return lua_depth(text) > 0 || (!tokens.empty() && tokens.back().open && text[tokens.back().begin] == '[');
}

struct Typist {
  History history{""};
  std::vector<std::string> words;
  std::size_t word_begin = 0;
  LineEditor editor;
  KeyReader keys;
  LineEditor::Outcome outcome = LineEditor::Outcome::editing;

  Typist()
      : editor(history, {opens_a_block,
                         [this](const std::string&) {
                           return Completions{word_begin, words};
                         },
                         nullptr}) {
    use_character_widths();
    editor.begin("> ", ". ");
  }
  Typist& type(std::string_view bytes) {
    for (const Key& key : keys.read(bytes)) {
      outcome = editor.press(key);
      if (outcome == LineEditor::Outcome::entry) break;
    }
    return *this;
  }
  std::string entry(std::string_view bytes) {
    type(bytes);
    REQUIRE(outcome == LineEditor::Outcome::entry);
    std::string text = editor.text();
    history.add(text);
    editor.begin("> ", ". ");
    return text;
  }
  // The picture's rows, with "|" at the cursor.
  std::vector<std::string> rows(std::size_t width = 40) {
    Picture picture = picture_of(editor.drawing(width, 24, false));
    std::string& row = picture.rows.at(picture.cursor_row);
    std::size_t at = 0;
    for (std::size_t column = 0; column < picture.cursor_column && at < row.size();) {
      const std::size_t next = next_character(row, at);
      column += shown_character(std::string_view(row).substr(at, next - at)).columns;
      at = next;
    }
    row.insert(at, "|");
    return picture.rows;
  }
};

using Rows = std::vector<std::string>;

constexpr const char* up = "\x1b[A";
constexpr const char* down = "\x1b[B";
constexpr const char* left = "\x1b[D";

}  // namespace

TEST_CASE("keys move, erase, cut and put back") {
  Typist t;
  CHECK(t.entry("ab\x01x\x05y\r") == "xaby");
  CHECK(t.entry("one two\x17three\r") == "one three");
  CHECK(t.entry("one two\x17\x17\x19\x19\r") == "one twoone two");
  CHECK(t.entry("one two\x01\x0b!\x19\r") == "!one two");
  CHECK(t.entry("ab\x14\r") == "ba");
  CHECK(t.entry("abc\x7f\x7f\r") == "a");
  CHECK(t.entry("one two\x1b[1;5Dx\r") == "one xtwo");
  CHECK(t.entry("word\x1f\x1fx\r") == "x");
  CHECK(t.type("\x04").outcome == LineEditor::Outcome::end);
}

TEST_CASE("characters are whole") {
  Typist t;
  CHECK(t.entry("a\u00e9\x7f\r") == "a");
  CHECK(t.entry("ae\u0301\x7fx\r") == "ax");  // e and an accent that combines with it
  CHECK(t.entry("\u4e2d\u6587\x1b[D\x7f\r") == "\u6587");
  t.type("\u4e2d\xff");
  t.type("\x01");
  CHECK(t.rows() == Rows{"> |\u4e2d\\xff"});
  t.type("\x1b[C");
  CHECK(t.rows() == Rows{"> \u4e2d|\\xff"});
}

TEST_CASE("an entry that is not complete goes on, indented as its blocks") {
  Typist t;
  CHECK(t.entry("for i = 1, 2 do\rif i then\rprint(i)\relse\rprint(2)\rend\rend\r") ==
        "for i = 1, 2 do\n  if i then\n    print(i)\n  else\n    print(2)\n  end\nend");
  CHECK(t.entry("x = [[\rtext\r]]\r") == "x = [[\ntext\n]]");
  CHECK(t.entry("f {\ra = 1,\r}\r") == "f {\n  a = 1,\n}");
  t.type("if x then\r");
  CHECK(t.rows() == Rows{"> if x then", ".   |"});
}

TEST_CASE("what is pasted stays as it is, and is one entry") {
  Typist t;
  const std::string text = "function f()\n\tlocal a\n\n\n\treturn 1\nend";
  t.type("\x1b[200~function f()\r\n\tlocal a\r\r\n\n\treturn 1\n\x1b[31mend\x1b[201~");
  CHECK(t.editor.text() == "function f()\n\tlocal a\n\n\n\treturn 1\n[31mend");  // without its escape
  t.editor.begin("> ", ". ");
  CHECK(t.entry("\x1b[200~" + text + "\x1b[201~\r") == text);
}

TEST_CASE("an entry of several lines comes back as it was") {
  Typist t;
  const std::string text = t.entry("if a then -- why\rb()\rend\r");
  t.entry("c()\r");
  t.type(up).type(up);
  CHECK(t.editor.text() == text);
  CHECK(t.entry("\r") == text);
  CHECK(t.entry(std::string("if") + up + "\r") == text);  // what begins so
  t.type("draft").type(up).type(down);
  CHECK(t.editor.text() == "draft");
}

TEST_CASE("up and down move in an entry first") {
  Typist t;
  t.entry("old\r");
  t.type("if a then\rlonger line\rx");
  t.type(up);
  CHECK(t.rows() == Rows{"> if a then", ".   l|onger line", ".   x"});
  t.type(up);
  CHECK(t.rows()[0] == "> if |a then");
  t.type(down).type(down);
  CHECK(t.rows()[2] == ".   x|");
}

TEST_CASE("search finds earlier entries, and the suggestion is the newest that begins so") {
  Typist t;
  t.entry("alpha(1)\r");
  t.entry("beta(2)\r");
  t.entry("alpha(3)\r");
  t.type("\x12pha");
  CHECK(t.editor.text() == "alpha(3)");
  CHECK(t.rows()[0].starts_with("search pha> "));
  t.type("\x12");
  CHECK(t.editor.text() == "alpha(1)");
  t.type("\x07");
  CHECK(t.editor.text().empty());
  t.type("al");
  CHECK(t.rows() == Rows{"> al|pha(3)"});
  CHECK(t.entry("\x1b[C\r") == "alpha(3)");
  CHECK(t.entry("\x12"
                "bet\r") == "beta(2)");
}

TEST_CASE("Tab completes as far as it is certain, then goes through what is left") {
  Typist t;
  t.words = {"rille.rent", "rille.resume"};
  t.type("x = ri");
  t.word_begin = 4;
  t.type("\t");
  CHECK(t.rows() == Rows{"> x = rille.re|", " rille.rent    rille.resume "});
  t.type("\t\t");
  CHECK(t.editor.text() == "x = rille.resume");
  t.type("\x1b[Z");
  CHECK(t.editor.text() == "x = rille.rent");
  t.type("(");
  CHECK(t.rows() == Rows{"> x = rille.rent(|"});
  t.editor.begin("> ", ". ");
  t.type("\t");
  CHECK(t.editor.text() == "  ");  // nothing to complete: an indent
}

TEST_CASE("a long entry wraps, and of a tall one the part at the cursor is shown") {
  Typist t;
  t.type("0123456789");
  CHECK(t.rows(6) == Rows{"> 0123", "456789", "|"});
  t.type(left);
  CHECK(t.rows(6) == Rows{"> 0123", "45678|9"});
  t.editor.begin("> ", ". ");
  for (int i = 0; i < 50; ++i) t.type("if a then\r");
  const std::string bytes = Screen().show(picture_of(t.editor.drawing(200, 10, false)), 10);
  CHECK(std::count(bytes.begin(), bytes.end(), '\n') == 9);
}

TEST_CASE("keys in pieces, and keys that are not known") {
  KeyReader keys;
  CHECK(keys.read("\x1b").empty());
  CHECK(keys.waits_for_more());
  CHECK(keys.flush() == std::vector<Key>{{Key::Kind::escape}});
  CHECK(keys.read("\x1b[").empty());
  CHECK(keys.read("1;5").empty());
  CHECK(keys.read("C") == std::vector<Key>{{Key::Kind::word_right}});
  CHECK(keys.read("\xe4").empty());
  CHECK(keys.read("\xb8\xad") == std::vector<Key>{{Key::Kind::text, "\u4e2d"}});
  CHECK(keys.read("\x1b[24~") == std::vector<Key>{{Key::Kind::unknown}});
  CHECK(keys.read("\x1b[200~ab").empty());
  CHECK_FALSE(keys.waits_for_more());
  CHECK(keys.read("c\x1b[20").empty());
  CHECK(keys.read("1~d") == std::vector<Key>{{Key::Kind::paste, "abc"}, {Key::Kind::text, "d"}});
}

TEST_CASE("the history keeps entries of several lines, and reads the file of earlier versions") {
  char name[] = "/tmp/rille-history-XXXXXX";
  ::close(::mkstemp(name));
  std::ofstream(name) << "_HiStOrY_V2_\nx\\040=\\0401\nprint(\\042a\\134n\\042)\n";
  {
    History history(name);
    REQUIRE(history.size() == 2);
    CHECK(history.at(0) == "x = 1");
    CHECK(history.at(1) == "print(\"a\\n\")");
    history.add("if a then\n  b = '\\n'\nend");
    history.add("if a then\n  b = '\\n'\nend");
    History other(name);
    other.add("other");
    history.add("own");
  }
  History history(name);
  REQUIRE(history.size() == 5);
  CHECK(history.at(2) == "if a then\n  b = '\\n'\nend");
  CHECK(history.at(3) == "other");
  CHECK(history.at(4) == "own");
  ::unlink(name);
}

TEST_CASE("tokens of Lua") {
  using Kind = LuaToken::Kind;
  const auto kinds = [](std::string_view source) {
    std::vector<Kind> out;
    for (const LuaToken& token : lua_tokens(source)) out.push_back(token.kind);
    return out;
  };
  CHECK(kinds("local x = 1e-3 -- c") ==
        std::vector<Kind>{Kind::keyword, Kind::name, Kind::mark, Kind::number, Kind::comment});
  CHECK(kinds("f[[a]]") == std::vector<Kind>{Kind::name, Kind::string});
  CHECK(lua_tokens("x = [==[ a ]] ").back().open);
  CHECK(lua_tokens("'a\\").back().end == 3);
  CHECK(lua_depth("for i = 1, 2 do if x then") == 2);
  CHECK(lua_depth("function f() end") == 0);
  CHECK(lua_depth("repeat until x") == 0);
  CHECK(lua_depth("if a then b() elseif c then d() else e() end") == 0);
}

TEST_CASE("random keys neither crash nor lose the cursor") {
  const int count = std::getenv("RILLE_LONG") ? 1'000'000 : 20'000;
  std::mt19937 random(28);
  const std::vector<std::string> pieces = {"a",
                                           "end",
                                           "\r",
                                           "\t",
                                           "\x7f",
                                           " ",
                                           "\x01",
                                           "\x05",
                                           "\x0b",
                                           "\x15",
                                           "\x17",
                                           "\x19",
                                           "\x14",
                                           "\x1f",
                                           "\x1b_",
                                           "\x12",
                                           "\x07",
                                           "\x1b[A",
                                           "\x1b[B",
                                           "\x1b[C",
                                           "\x1b[D",
                                           "\x1b"
                                           "b",
                                           "\x1b\r",
                                           "\x1b[3~",
                                           "\u4e2d",
                                           "\u0301",
                                           "e\u0301",
                                           "\xff",
                                           "\x1b[Z",
                                           "if x then",
                                           "[[",
                                           "]]",
                                           "\"",
                                           "(",
                                           "{",
                                           "}",
                                           "function f()",
                                           "\x1b[200~p\nq\x1b[201~",
                                           "\x1b[",
                                           "\xf0\x9f"};
  Typist t;
  t.words = {"alpha", "alps", "\u4e2d\u6587"};
  int entries = 0;
  for (int i = 0; i < count; ++i) {
    std::string piece = pieces[random() % pieces.size()];
    if (random() % 20 == 0) piece = std::string(1 + random() % 3, static_cast<char>(random()));
    t.word_begin = 0;
    t.type(piece);
    if (random() % 50 == 0)
      for (const Key& key : t.keys.flush()) t.editor.press(key);
    if (t.outcome == LineEditor::Outcome::entry || t.editor.text().size() > 2000) {
      ++entries;
      t.history.add(t.editor.text());
      t.editor.begin("> ", ". ");
      t.outcome = LineEditor::Outcome::editing;
    }
    if (i % 7 != 0) continue;
    const std::size_t width = 2 + random() % 90;
    const Picture picture = picture_of(t.editor.drawing(width, 5, i % 2 == 0));
    REQUIRE(picture.cursor_row < picture.rows.size());
    REQUIRE(picture.cursor_column < width);
    Screen screen;
    REQUIRE(screen.show(picture, 1 + random() % 10).size() > 0);
  }
  CHECK(entries > 10);
}
