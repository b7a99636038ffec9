# The CUDA plug-in, librille_cuda.so (docs/design/cuda.md). It needs neither toolkit nor driver to build, so it is
# always built, and stands beside the command. kernels/cuda says which images of its kernels it has.
file(GLOB cuda_sources CONFIGURE_DEPENDS runtime/compute/device/cuda/*.cpp)
add_library(rille_cuda_objects OBJECT ${cuda_sources} runtime/compute/device/cuda_libraries.cpp)
target_link_libraries(rille_cuda_objects PRIVATE rille_flags)
# Its own objects, the launches, and `images`: where the kernels come from.
function(rille_cuda_plugin target images)
  add_library(${target} MODULE $<TARGET_OBJECTS:rille_cuda_objects> $<TARGET_OBJECTS:rille_cuda_launches>
    $<TARGET_OBJECTS:rille_cuda_sources> ${images})
  set(exports ${PROJECT_SOURCE_DIR}/cmake/exports_cuda.map)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS ${exports})
  target_link_libraries(${target} PRIVATE rille_flags ${CMAKE_DL_LIBS})
  target_link_options(${target} PRIVATE LINKER:--no-undefined LINKER:-Bsymbolic LINKER:--version-script=${exports})
endfunction()
rille_cuda_plugin(rille_cuda $<TARGET_OBJECTS:rille_cuda_images>)
add_dependencies(rille rille_cuda)
install(TARGETS rille_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# Rille and the plug-in pass plain structs to each other: both must have been made from the same headers.
set(cuda_seam runtime/compute/device/cuda/plugin.hpp kernels/call.hpp kernels/fused.hpp kernels/dtype.hpp
  kernels/operations.hpp runtime/core/base/error.hpp)
set(cuda_build_id "${PROJECT_VERSION} ${CMAKE_CXX_COMPILER_ID}")
foreach(header ${cuda_seam})
  file(SHA256 ${PROJECT_SOURCE_DIR}/${header} hash)
  string(APPEND cuda_build_id " ${hash}")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${cuda_seam})
string(SHA256 cuda_build_id "${cuda_build_id}")
string(SUBSTRING ${cuda_build_id} 0 16 cuda_build_id)
set_source_files_properties(runtime/compute/device/cuda/plugin.cpp runtime/compute/device/cuda_plugin.cpp PROPERTIES
  COMPILE_DEFINITIONS RILLE_CUDA_BUILD_ID="${cuda_build_id}")
