# cmake -D ROOT=.. -D VERSION=.. -D OUTPUT=.. -P build_id.cmake: writes what core/base/build_id.hpp declares, from the
# sources as they stand now.
set(all "${VERSION}")
foreach(folder kernels runtime bindings stdlib)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${folder}/*)
  list(SORT files)
  foreach(file ${files})
    file(SHA256 ${ROOT}/${file} hash)
    string(APPEND all "\n${file} ${hash}")
  endforeach()
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 16 id)
file(WRITE ${OUTPUT}.new "#include \"runtime/core/base/build_id.hpp\"\n\nnamespace rille {\n\
std::string_view build_id() { return \"${id}\"; }\n}  // namespace rille\n")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
