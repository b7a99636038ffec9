# rille_luajit_apart(TARGET): TARGET calls LuaJIT by jumps of its own, and loads its library privately (dlopen) instead
# of linking it. A program's dynamic symbols are one namespace: another Lua in the program would otherwise take the
# calls of librille.so, or LuaJIT those of the program. Debian's libluajit-5.1.a cannot be linked into a shared library:
# its thread-local variable has the model of executables (R_X86_64_TPOFF32).
set(RILLE_LUAJIT_SONAME libluajit-5.1.so.2)

function(rille_luajit_apart target)
  set(names)
  foreach(header lua lauxlib lualib luajit)
    file(READ ${luajit_INCLUDE_DIRS}/${header}.h text)
    string(REGEX MATCHALL "LUA(LIB)?_API[^;]*" declarations "${text}")
    foreach(declaration ${declarations})
      if(declaration MATCHES "(lua(L|JIT)?_?[a-z][A-Za-z_]*)\\)? *\\(")
        list(APPEND names ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(RILLE_LUAJIT_NAMES "")
  set(RILLE_LUAJIT_JUMPS "")
  set(at 0)
  foreach(name ${names})
    string(APPEND RILLE_LUAJIT_NAMES "\n  \"${name}\",")
    string(APPEND RILLE_LUAJIT_JUMPS "\"\n  \".globl ${name}\\n.hidden ${name}\\n.type ${name},@function\\n\"\n"
      "  \"${name}: endbr64\\njmp *rille_luajit_functions+${at}(%rip)\\n")
    math(EXPR at "${at} + 8")
  endforeach()
  set(made ${CMAKE_BINARY_DIR}/luajit_apart.c)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/luajit_apart.c.in ${made} @ONLY)
  target_sources(${target} PRIVATE ${made})
endfunction()
