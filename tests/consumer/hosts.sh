#!/bin/sh
# Installs Rille and builds and runs the five example hosts from the install tree alone, and a C++ program that checks
# rille.hpp. usage: hosts.sh BUILD_FOLDER PYTHON    (a Python with NumPy)
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
python=$2
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/rille" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
library=$(dirname "$(find "$work/rille" -name librille.so)")
examples=$work/rille/share/rille/examples
export PKG_CONFIG_PATH="$library/pkgconfig" LD_LIBRARY_PATH="$library"
export RILLE_HOME="$work/home" PATH="$work/rille/bin:$PATH"

expect() { # expect NAME LINE...: the file NAME.out has each line
  name=$1
  shift
  for line in "$@"; do
    grep -qxF "$line" "$work/$name.out" && continue
    echo "$name does not print '$line':" >&2
    cat "$work/$name.out" >&2
    exit 1
  done
  echo "ok: $name"
}

# The commands are those that the examples begin with.
# shellcheck disable=SC2046  # flags are meant to split
cc -std=gnu11 -Wall -Wextra -Werror "$examples/epoll.c" $(pkg-config --cflags --libs rille) -o "$work/epoll"
"$work/epoll" >"$work/epoll.out" 2>&1
expect epoll "script: 3" 'result: {"sum":6}' "the program's own timer went on: yes"
# shellcheck disable=SC2046
cc -std=gnu11 -Wall -Wextra -Werror "$examples/uv.c" $(pkg-config --cflags --libs rille libuv) -o "$work/uv"
"$work/uv" >"$work/uv.out" 2>&1
expect uv "the function answered 42" "result: 42"
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror "$examples/rules.c" $(pkg-config --cflags --libs rille) -o "$work/rules"
"$work/rules" >"$work/rules.out" 2>&1
expect rules "order 2 costs 5" "pixel 1 of 4: 11" "image is free again"

# The package and the library of the install tree, away from the checkout.
(cd "$work" && env PYTHONPATH="$work/rille/share/rille/python" RILLE_LIBRARY="$library/librille.so" \
  "$python" -B "$examples/asyncio_host.py") >"$work/asyncio_host.out" 2>&1 ||
  { cat "$work/asyncio_host.out" >&2; exit 1; }
expect asyncio_host "['the content of a', 'the content of b']" "[0.  2.5 5.  7.5]" "quota - no more today"
[ "$(find "$examples" -type f | wc -l)" -eq 5 ] || { echo "an example is not tested here" >&2; exit 1; }

flags="-std=c++17 -Wall -Wextra -Werror -Wshadow"
for options in "" "-g -fsanitize=address,undefined"; do
  # shellcheck disable=SC2046,SC2086
  c++ $flags $options "$here/wrapper.cpp" $(pkg-config --cflags --libs rille) -o "$work/wrapper"
  "$work/wrapper" >"$work/wrapper.out" 2>&1 || { cat "$work/wrapper.out" >&2; exit 1; }
  expect wrapper "rille.hpp does what it says"
done

# shellcheck disable=SC2046,SC2086
c++ $flags "$examples/http.cpp" $(pkg-config --cflags --libs rille cpp-httplib) -pthread -o "$work/http"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$work/http" "$port" >"$work/server.out" 2>&1 &
server=$!
python3 "$here/ask_http.py" "$port" >"$work/http.out" 2>&1 || { cat "$work/http.out" "$work/server.out" >&2; exit 1; }
kill "$server" && wait "$server"
server=
expect http "200 42" "200 \"ABC\"" "422 timeout" "422 invalid" "422 memory" "32 of 32 at once"
