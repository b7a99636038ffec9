# What `cmake --install` lays down: the command, and librille (shared and static), its
# headers, find_package(Rille) and rille.pc. All of it may be moved as a whole: nothing holds an absolute path.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(cmake/luajit_apart.cmake)

# What an installation needs: `cmake --build build/release --target installed`. ./bootstrap build builds it.
add_custom_target(installed)
add_dependencies(installed rille rille_kernel rille_shared rille_static rille_texts)

# What the command says of itself: its manual page, and what makes shells complete it.
set(texts ${CMAKE_BINARY_DIR}/texts)
add_custom_command(OUTPUT ${texts}/rille.1 ${texts}/rille.bash ${texts}/_rille ${texts}/rille.fish
  COMMAND ${CMAKE_COMMAND} -D RILLE=$<TARGET_FILE:rille> -D OUTPUT=${texts}/rille.1 -D VERSION=${PROJECT_VERSION}
    -P ${PROJECT_SOURCE_DIR}/cmake/manpage.cmake
  COMMAND rille completion bash > ${texts}/rille.bash
  COMMAND rille completion zsh > ${texts}/_rille
  COMMAND rille completion fish > ${texts}/rille.fish
  DEPENDS rille ${PROJECT_SOURCE_DIR}/cmake/manpage.cmake COMMENT "Writing the manual page" VERBATIM)
add_custom_target(rille_texts ALL DEPENDS ${texts}/rille.1)
file(MAKE_DIRECTORY ${texts})
install(FILES ${texts}/rille.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${texts}/rille.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME rille)
install(FILES ${texts}/_rille DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${texts}/rille.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY workflows DESTINATION ${CMAKE_INSTALL_DATADIR}/rille FILES_MATCHING PATTERN "*.lua")
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/rille FILES_MATCHING PATTERN "*.md")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/rille RENAME copyright)

install(TARGETS rille RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS rille_kernel RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rille)
# Annotations for Lua language servers.
install(DIRECTORY stdlib/meta DESTINATION ${CMAKE_INSTALL_DATADIR}/rille FILES_MATCHING PATTERN "*.lua")

# The shared library exports what rille.h marks RILLE_API and nothing else, not even what a static part exports.
set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
add_library(rille_shared SHARED ${RILLE_OBJECTS})
set_target_properties(rille_shared PROPERTIES OUTPUT_NAME rille EXPORT_NAME rille LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
set(dependencies ${RILLE_DEPENDENCIES})
if(NOT RILLE_SANITIZE)   # sanitizers refuse what keeps LuaJIT apart
  list(REMOVE_ITEM dependencies PkgConfig::luajit)
  rille_luajit_apart(rille_shared)
endif()
target_link_libraries(rille_shared PRIVATE $<BUILD_INTERFACE:rille_flags> ${dependencies})
target_link_options(rille_shared PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)
set_target_properties(rille_shared PROPERTIES LINK_DEPENDS ${exports})
add_library(Rille::rille ALIAS rille_shared)
set_target_properties(rille_static PROPERTIES OUTPUT_NAME rille)

foreach(library rille_shared rille_static)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
install(FILES bindings/c/rille.h bindings/c/rille.hpp bindings/c/rille_values.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Programs to begin with: docs/manual/embedding.md, docs/manual/python.md. tests/consumer/hosts.sh runs each.
set(examples ${CMAKE_INSTALL_DATADIR}/rille/examples)
install(DIRECTORY bindings/c/examples/ bindings/python/examples/ DESTINATION ${examples} PATTERN __pycache__ EXCLUDE)
install(FILES tests/consumer/rules.c DESTINATION ${examples})
# The Python package: for pip, or PYTHONPATH with RILLE_LIBRARY.
install(DIRECTORY bindings/python/ DESTINATION ${CMAKE_INSTALL_DATADIR}/rille/python
  PATTERN __pycache__ EXCLUDE PATTERN examples EXCLUDE PATTERN build EXCLUDE PATTERN "*.egg-info" EXCLUDE)
install(TARGETS rille_shared EXPORT RilleTargets)
install(TARGETS rille_static EXPORT RilleStaticTargets)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Rille)
install(EXPORT RilleTargets NAMESPACE Rille:: DESTINATION ${package_dir})
install(EXPORT RilleStaticTargets NAMESPACE Rille:: DESTINATION ${package_dir})
configure_package_config_file(cmake/RilleConfig.cmake.in ${CMAKE_BINARY_DIR}/RilleConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/RilleConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/RilleConfig.cmake
  ${CMAKE_BINARY_DIR}/RilleConfigVersion.cmake DESTINATION ${package_dir})

file(RELATIVE_PATH RILLE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" RILLE_PC_PREFIX ${RILLE_PC_PREFIX})
configure_file(cmake/rille.pc.in ${CMAKE_BINARY_DIR}/rille.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/rille.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
