#!/bin/sh
# Installs the .deb in a minimal Debian 12, runs the quickstart from it without a network, and removes it: nothing of it
# may stay but the state in RILLE_HOME. usage: deb.sh BUILD. Needs root and mmdebstrap, and a mirror as /etc/apt has it.
set -eu
build=$1
[ "$(id -u)" -eq 0 ] || { echo "needs root" >&2; exit 1; }
command -v mmdebstrap >/dev/null || { echo "missing: mmdebstrap" >&2; exit 1; }
(cd "$build" && rm -f rille_*.deb && cpack -G DEB >/dev/null)
package=$(ls "$build"/rille_*.deb)
root=$(mktemp -d "${TMPDIR:-/tmp}/rille-deb-XXXXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
chmod 755 "$root"
sources=
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
  [ -s "$file" ] && sources="$sources $file"
done
cat /etc/apt/apt.conf.d/* >"$root.apt" 2>/dev/null || true
# shellcheck disable=SC2086  # a list of files
mmdebstrap --quiet --mode=root --variant=minbase --aptopt="$root.apt" bookworm "$root" $sources >"$root.log" 2>&1 ||
  { tail -n 20 "$root.log" >&2; exit 1; }
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/"
for file in resolv.conf hosts; do cp -L "/etc/$file" "$root/etc/$file"; done
rm -f "$root.apt" "$root.log"
cp "$package" "$root/rille.deb"

# shellcheck disable=SC2016,SC2086  # a script for another shell; nothing, or a word
within() {  # in the root, with the network or without
  space=$1
  shift
  unshare --mount --pid --fork --kill-child $space sh -eu -c '
    mount --make-rprivate /
    mount --bind "$1" "$1"
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    root=$1
    shift
    chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
      PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' sh "$root" "$@"
}
list() { (cd "$root" && find usr etc lib opt -xdev \( -type f -o -type l \) 2>/dev/null | sort); }

install="apt-get update -qq && apt-get install -y -qq --no-install-recommends /rille.deb"
within "" sh -c "$install" >"$root/install.log" 2>&1 ||
  { tail -n 30 "$root/install.log" >&2; exit 1; }
list >"$root/with"
within --net sh -euc 'ip link set lo up 2>/dev/null || true
  export RILLE_HOME=/root/state
  rille --version
  rille doctor >/dev/null || true
  rille run /usr/share/rille/workflows/quickstart.lua --steps 20 | tail -n 3
  echo "print(6 * 7)" | rille'
within "" apt-get purge -y -qq rille >/dev/null 2>&1
list >"$root/without"
left=$(grep -i rille "$root/without" | grep -v "^etc/apt\|^usr/share/doc/apt" || true)
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
[ -d "$root/root/state" ] || { echo "the state is gone" >&2; exit 1; }
echo "deb: $(du -h "$package" | cut -f1), installed, ran, removed"
