# The .deb: `./bootstrap deb`, or cpack in the build folder. It holds what cmake --install lays down, and depends on
# the packages whose libraries it links.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rille)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Rille's maintainers <maintainers@rille.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "rent GPUs, train, checkpoint and release from one Lua script")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Rille runs workflows written in Lua: they rent machines and GPUs of clouds,
 bring data there, train, keep checkpoints, and release everything again.
 Runs are durable: one that was killed goes on where it was.
 The package has the command, the library for programs that embed it, and
 annotations for editors.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_DEPENDS "ca-certificates, libcurl4")  # libcurl is loaded when it is first needed
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++, openssh-client")  # kernels on the CPU; machines by ssh
include(CPack)
