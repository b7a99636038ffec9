# What Rille links, all of it from Debian 12. RILLE_DEPENDENCIES is for the library; the command adds CLI11.
# bootstrap installs the packages; a name here that pkg-config does not find stops the configuration and says which.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
pkg_check_modules(luajit REQUIRED IMPORTED_TARGET luajit)
pkg_check_modules(libuv REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(libcurl REQUIRED libcurl)  # its header; the library is loaded when it is first used
pkg_check_modules(openssl REQUIRED IMPORTED_TARGET openssl)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
option(RILLE_FFTW "Fourier transforms on the CPU, by FFTW (GPL)" ON)
if(RILLE_FFTW)
  pkg_check_modules(fftw3 REQUIRED IMPORTED_TARGET fftw3 fftw3f)
  set(fftw PkgConfig::fftw3)
  set(RILLE_FFTW_PAIR fftw3=fftw3+fftw3f)      # for RilleConfig.cmake
  set(RILLE_FFTW_MODULES "fftw3 fftw3f")       # for rille.pc
  set_source_files_properties(kernels/generic/fourier.cpp PROPERTIES COMPILE_DEFINITIONS RILLE_FFTW)
endif()
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(pugixml REQUIRED IMPORTED_TARGET pugixml)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(libarchive REQUIRED IMPORTED_TARGET libarchive)
# Linked statically: Debian's shared libarchive brings libxml2 and ICU, 35 MB, for formats that Rille does not read.
# What the static one needs has no headers here: libarchive13 depends on the packages.
find_library(RILLE_LIBARCHIVE libarchive.a REQUIRED)
set(archive)
foreach(library ${RILLE_LIBARCHIVE} -l:liblzma.so.5 -l:libzstd.so.1 -l:liblz4.so.1 -l:libbz2.so.1.0 -l:libnettle.so.8)
  list(APPEND archive $<BUILD_INTERFACE:${library}>)
endforeach()
list(APPEND archive $<INSTALL_INTERFACE:PkgConfig::libarchive> PkgConfig::zlib)
pkg_check_modules(jpeg REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(png REQUIRED IMPORTED_TARGET libpng)
find_package(CLI11 REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_path(RILLE_RAPIDJSON_DIR rapidjson/document.h REQUIRED)  # headers only
# Not by find_package(dnnl): Debian's dnnl-config.cmake wants OpenCL's headers, which Rille does not use.
find_path(RILLE_DNNL_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(RILLE_DNNL_LIBRARY dnnl REQUIRED)

set(RILLE_DEPENDENCIES fmt::fmt PkgConfig::luajit PkgConfig::libuv PkgConfig::openssl
  PkgConfig::sqlite3 PkgConfig::xxhash ${fftw} PkgConfig::pcre2 PkgConfig::pugixml ${archive}
  PkgConfig::jpeg PkgConfig::png dnnl
  OpenMP::OpenMP_CXX Threads::Threads)
