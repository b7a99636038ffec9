#!/bin/sh
# Installs Rille, moves the tree, builds the programs here against it by find_package and by pkg-config, and runs them.
# usage: run.sh BUILD_FOLDER
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The manual shows the programs that are tested here, and promises fewer than 60 lines of each.
shown=0
for program in embed rules; do
  shown=$((shown + 1))
  awk -v wanted=$shown '/^```c$/ { on = ++n == wanted; next } /^```$/ { on = 0 } on' \
    "$here/../../docs/manual/embedding.md" | diff - "$here/$program.c" >&2 ||
    { echo "docs/manual/embedding.md shows another program than $program.c" >&2; exit 1; }
  [ "$(wc -l <"$here/$program.c")" -lt 60 ]
done

quietly() { # shows what a command printed only when it fails
  "$@" >"$work/log" 2>&1 || {
    echo "failed: $*" >&2
    tail -n 30 "$work/log" >&2
    exit 1
  }
}

# An installed tree may be moved.
quietly cmake --install "$build" --prefix "$work/first"
mkdir "$work/away"
mv "$work/first" "$work/away/rille"
prefix=$work/away/rille
library=$(dirname "$(find "$prefix" -name librille.so)")

# The shared library shows its C API and nothing else.
others=$(nm -D --defined-only "$library/librille.so" | awk '{ print $3 }' | grep -v '^rille_' || true)
[ -z "$others" ] || { echo "librille.so exports more than rille_*: $others" >&2; exit 1; }
case $(readelf -d "$library/librille.so") in
  *SONAME*librille.so.0*) ;;
  *) echo "librille.so has no SONAME librille.so.0" >&2; exit 1 ;;
esac

quietly cmake -G Ninja -S "$here" -B "$work/cmake" -D CMAKE_PREFIX_PATH="$prefix"
quietly cmake --build "$work/cmake"
ln -s "$prefix/libexec/rille/rille-kernel" "$work/cmake/"   # what hosts with the static library do

export PKG_CONFIG_PATH="$library/pkgconfig" LD_LIBRARY_PATH="$library"
for program in embed two_runtimes contract calls values scripts rules; do
  # shellcheck disable=SC2046  # flags are meant to split
  quietly cc -std=c11 -Wall -Wextra -Werror "$here/$program.c" $(pkg-config --cflags --libs rille) \
    -o "$work/${program}_pkg"
  # The library's allocations pass through the sanitizer too: what it does not free is a leak here.
  # shellcheck disable=SC2046
  quietly cc -std=c11 -g -fsanitize=address "$here/$program.c" $(pkg-config --cflags --libs rille) \
    -o "$work/${program}_asan"
done

check() { # check PROGRAM LINE...: it exits 0 and prints each line
  program=$1
  shift
  rm -rf "${work:?}/home"
  code=0
  RILLE_HOME=$work/home "$program" >"$work/out" 2>&1 || code=$?
  for line in "$@"; do
    grep -qxF "$line" "$work/out" || { echo "$program does not print '$line'" >&2; code=1; }
  done
  if [ "$code" -ne 0 ]; then
    echo "$program failed:" >&2
    cat "$work/out" >&2
    exit 1
  fi
  echo "ok: $program"
}

for way in cmake/%s_shared cmake/%s_static %s_pkg %s_asan; do
  # shellcheck disable=SC2059  # the pattern is ours
  check "$work/$(printf "$way" embed)" "hello, moon" "kind: invalid"
  # shellcheck disable=SC2059
  check "$work/$(printf "$way" two_runtimes)" "0 failures"
  # shellcheck disable=SC2059
  check "$work/$(printf "$way" contract)" "librille 0.1.0 keeps its contract"
  # shellcheck disable=SC2059
  check "$work/$(printf "$way" calls)" "calls, errors, signals and threads: as rille.h says"
  # shellcheck disable=SC2059
  check "$work/$(printf "$way" values)" "values, functions and memory: as rille.h says"
  # shellcheck disable=SC2059
  check "$work/$(printf "$way" scripts)" "scripts, calls and limits: as rille.h says"
  # shellcheck disable=SC2059
  check "$work/$(printf "$way" rules)" "order 2 costs 5" "pixel 1 of 4: 11" "image is free again"
done
check "$work/cmake/hostile_shared" "every hostile script was ended"
check "$work/cmake/jit_shared" "machine code where the host allows it"
check "$work/cmake/two_luas_first" "two Luas in one program"
check "$work/cmake/two_luas_last" "two Luas in one program"
