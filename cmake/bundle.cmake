# Target `bundle`: rille-VERSION-linux-x86_64.tar.gz, the command with its own loader and libraries, for any x86-64
# Linux. docs/design/bundle.md has the reasons, cmake/bundle.py gathers and packs. It needs Python, and glibc here.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" OR RILLE_SANITIZE)
  return()
endif()
find_package(Python3 QUIET COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  return()
endif()

# The same objects, with an entry that maps ../lib/ld-linux-x86-64.so.2. RPATH, not RUNPATH: it holds for the libraries'
# libraries and for dlopen, and comes before LD_LIBRARY_PATH.
add_executable(rille_bundled EXCLUDE_FROM_ALL $<TARGET_OBJECTS:rille_cli> bindings/cli/own_loader.c)
target_link_libraries(rille_bundled PRIVATE rille_cli)
# The entry runs before there is a C library: nothing of it may become a call.
set_source_files_properties(bindings/cli/own_loader.c PROPERTIES COMPILE_OPTIONS
  "-O2;-ffreestanding;-fno-stack-protector;-fno-tree-loop-distribute-patterns;-fcf-protection=none")
target_link_options(rille_bundled PRIVATE LINKER:--no-dynamic-linker LINKER:-e,rille_bundle_start
  LINKER:--disable-new-dtags LINKER:--build-id -pie -s
  # What has become part of libc, and drivers still name: loaded from the start, since a library with a RUNPATH of its
  # own (cuDNN) would find the host's, which belong to another glibc.
  LINKER:--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -l:librt.so.1 -l:libutil.so.1 LINKER:--pop-state)
set_target_properties(rille_bundled PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" BUILD_WITH_INSTALL_RPATH ON)

set(RILLE_BUNDLE rille-${PROJECT_VERSION}-linux-x86_64)
file(GLOB_RECURSE bundle_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/stdlib/meta/*.lua
  ${PROJECT_SOURCE_DIR}/workflows/*.lua ${PROJECT_SOURCE_DIR}/docs/*.md)
# Packed anew when another key is to sign: a bundle of yesterday must not stay unsigned in silence.
set(bundle_key ${CMAKE_BINARY_DIR}/bundle_signing_key)
add_custom_target(rille_bundle_key BYPRODUCTS ${bundle_key} COMMAND sh -c
  "echo \"$RILLE_SIGNING_KEY\" | cmp -s - ${bundle_key} || echo \"$RILLE_SIGNING_KEY\" >${bundle_key}" VERBATIM)
set(bundle_nvcc)
if(RILLE_CUDA_IMAGES_BY)
  set(bundle_nvcc --nvcc ${RILLE_CUDA_IMAGES_BY})
endif()
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/${RILLE_BUNDLE}.tar.gz ${CMAKE_BINARY_DIR}/${RILLE_BUNDLE}.cdx.json
  COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/bundle.py $<TARGET_FILE:rille_bundled>
    --source ${PROJECT_SOURCE_DIR} --name ${RILLE_BUNDLE} --version ${PROJECT_VERSION}
    --into ${CMAKE_BINARY_DIR} --cuda $<TARGET_FILE:rille_cuda> ${bundle_nvcc}
  DEPENDS rille_bundled rille_cuda rille_bundle_key ${bundle_key} ${PROJECT_SOURCE_DIR}/cmake/bundle.py
    ${PROJECT_SOURCE_DIR}/cmake/sbom.py ${bundle_files}
  COMMENT "Packing ${RILLE_BUNDLE}.tar.gz" VERBATIM)
add_custom_target(bundle DEPENDS ${CMAKE_BINARY_DIR}/${RILLE_BUNDLE}.tar.gz)
