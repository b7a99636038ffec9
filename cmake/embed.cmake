# cmake -D INPUT=FILE -D OUTPUT=FILE.cpp -D SYMBOL=NAME -P embed.cmake
# Writes any bytes as a C++ string literal. Every byte is escaped, so no byte can end or change the literal; lines keep
# the compiler's diagnostics and people's editors alive.
# -D NAMESPACE=a::b puts it elsewhere than with the Lua modules.
if(NOT NAMESPACE)
  set(NAMESPACE rille::host::embedded)
endif()
file(READ ${INPUT} bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR count "${digits} / 2")
string(REPEAT "[0-9a-f]" 64 line)
string(REGEX REPLACE "(${line})" "\\1\"\n\"" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <cstddef>\nnamespace ${NAMESPACE} {\nextern const char ${SYMBOL}[];\n"
  "extern const std::size_t ${SYMBOL}_bytes;\nconst char ${SYMBOL}[] =\n\"${bytes}\";\n"
  "const std::size_t ${SYMBOL}_bytes = ${count};\n}\n")
