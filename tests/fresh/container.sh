#!/bin/sh
# Builds the container image by cmake/container/Containerfile, from the .deb and a Debian 12 that debootstrap makes,
# since no registry is reachable, and runs the quickstart in it without a network. usage: container.sh BUILD [DEB].
# Needs root, mmdebstrap, buildah, and a mirror as /etc/apt has it.
set -eu
build=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" -eq 0 ] || { echo "needs root" >&2; exit 1; }
for tool in mmdebstrap buildah; do
  command -v "$tool" >/dev/null || { echo "missing: apt-get install $tool" >&2; exit 1; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/rille-container-XXXXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
package=${2:-}
if [ -z "$package" ]; then
  (cd "$build" && rm -f rille_*.deb && cpack -G DEB >/dev/null)
  package=$(ls "$build"/rille_*.deb)
fi
mkdir "$work/context" "$work/root"
cp "$package" "$work/context/rille.deb"

sources=
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
  [ -s "$file" ] && sources="$sources $file"
done
cat /etc/apt/apt.conf.d/* >"$work/apt" 2>/dev/null || true
# shellcheck disable=SC2086  # a list of files
mmdebstrap --quiet --mode=root --variant=minbase --aptopt="$work/apt" bookworm "$work/root" $sources \
  >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
cp /etc/apt/apt.conf.d/* "$work/root/etc/apt/apt.conf.d/"

# A store of its own; in chroots, which need no more rights than the test has.
b() {
  verb=$1
  shift
  buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs "$verb" "$@"
}
export BUILDAH_ISOLATION=chroot
base=$(b from scratch)
b add -q "$base" "$work/root" / >/dev/null
b commit -q "$base" rille-base >/dev/null
b rm "$base" >/dev/null
b bud -q --network host -t rille --build-arg BASE=localhost/rille-base --build-arg PACKAGE=rille.deb \
  -f "$here/cmake/container/Containerfile" "$work/context" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }

settings='{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Env}} {{.OCIv1.Config.Volumes}}'
entry=$(b inspect --type image --format "$settings" rille)
case $entry in "[rille]"*RILLE_HOME=/state*/state*) ;; *) echo "the image starts otherwise: $entry" >&2; exit 1 ;; esac
box=$(b from --pull-never localhost/rille)
inside() { b run --network none "$box" -- "$@"; }
inside rille --version
inside rille run /usr/share/rille/workflows/quickstart.lua --steps 20 | tail -n 3
answer=$(inside rille -e "print(rille.device('cpu'):ones{2,3}:sum():item())")
[ "$answer" = 6 ] || { echo "a tensor's sum is '$answer'" >&2; exit 1; }
inside test -d /state/runs || { echo "its state is not in /state" >&2; exit 1; }
echo "container: built, ran"
