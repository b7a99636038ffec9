# rille_batches(TARGET PART): compiles the files of each folder together, in batches, so that what they include is read
# and instantiated once for a batch: less than half of the processor time of one file each. A batch stays within one
# folder; those of providers and tests are smaller, so that a changed file is compiled again in seconds. File-local
# names are therefore unique within a folder. Files with flags of their own are compiled alone, by CMake's own rule.
# The standard library's heavy headers are read from a precompiled one: that of the part rille_PART, which has the same
# flags. RILLE_BATCHES=OFF (preset dev) does neither, which shows a missing #include.
option(RILLE_BATCHES "Compile the files of a folder in batches" ON)

set(RILLE_PRECOMPILED <fmt/format.h> <algorithm> <deque> <filesystem> <functional> <map> <memory> <optional> <set>
  <string> <unordered_map> <variant> <vector>)

# rille_group_files(TARGET): the batches alone, without the precompiled header.
function(rille_group_files target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  set(last "")
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder})
    if(NOT EXISTS ${source})
      continue()   # made by the build
    endif()
    cmake_path(GET source PARENT_PATH room)
    file(SIZE ${source} bytes)
    if(NOT room STREQUAL last)
      set(last ${room})
      set(batch 1)
      set(filled 0)
      set(bytes_max 100000)
      if(room MATCHES "/provider/|/tests/")
        set(bytes_max 50000)
      endif()
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${room})
      string(REPLACE "/" "_" name ${name})
    elseif(filled GREATER 0)
      math(EXPR sum "${filled} + ${bytes}")
      if(sum GREATER bytes_max)
        math(EXPR batch "${batch} + 1")
        set(filled 0)
      endif()
    endif()
    math(EXPR filled "${filled} + ${bytes}")
    set_source_files_properties(${source} DIRECTORY ${folder} PROPERTIES UNITY_GROUP ${name}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(rille_batches target part)
  if(NOT RILLE_BATCHES)
    return()
  endif()
  rille_group_files(${target})
  if(target STREQUAL "rille_${part}")
    target_precompile_headers(${target} PRIVATE ${RILLE_PRECOMPILED})
  else()
    target_precompile_headers(${target} REUSE_FROM rille_${part})
  endif()
endfunction()
