#!/bin/sh
# Runs ./bootstrap in a fresh Debian 12: a minimal root with git in it and nothing else, no CUDA, no compiler.
# usage: debian12.sh [--sudo] [--keep | --in ROOT] [bootstrap's arguments; default: build]
#   --sudo      as a plain user with sudo, rather than as root
#   --keep      leave the root in place and say where
#   --in ROOT   go on in a root that --keep has left, with the newest commit
# Needs root, mmdebstrap, and this machine's own /etc/apt to reach a mirror.
# What is tested is the last commit of this checkout, as a clone. Exits with bootstrap's exit code. After `cuda`,
# `rille doctor` must show images for the architectures among the arguments: else exit code 1.
# shellcheck disable=SC2016,SC2317  # quoted scripts for other shells; a function for trap
set -eu

user=root
keep=
root=
while [ $# -gt 0 ]; do
  case $1 in
    --sudo) user=someone ;;
    --keep) keep=1 ;;
    --in)
      root=$2
      keep=1
      shift
      ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || set -- build

fail() {
  echo "missing: $*" >&2
  exit 1
}
[ "$(id -u)" -eq 0 ] || fail "this mounts and changes root, and needs root: sudo $0"
command -v mmdebstrap >/dev/null || fail "mmdebstrap: apt-get install mmdebstrap"
command -v unshare >/dev/null || fail "unshare: apt-get install util-linux"

checkout=$(cd "$(dirname "$0")/../.." && pwd)
say() { echo "fresh: $*"; }

# The mirrors and the settings of apt and pip are this machine's, so that proxies and snapshots hold here too.
make_root() {
  say "making a minimal Debian 12 in $root"
  packages="git"
  [ "$user" = root ] || packages="git,sudo"
  sources=
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
    [ -s "$file" ] && sources="$sources $file"
  done
  chmod 755 "$root"
  cat /etc/apt/apt.conf.d/* >"$root.apt" 2>/dev/null || true
  made=yes
  # shellcheck disable=SC2086  # a list of files
  mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" --aptopt="$root.apt" \
    --customize-hook='rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap' bookworm "$root" $sources >"$root.log" 2>&1 || made=
  [ -n "$made" ] || tail -n 20 "$root.log" >&2
  rm -f "$root.apt" "$root.log"
  [ -n "$made" ] || fail "mmdebstrap could not make the root"
  cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/"
  for file in resolv.conf hosts pip.conf; do [ ! -e "/etc/$file" ] || cp -L "/etc/$file" "$root/etc/$file"; done
  [ ! -f "${PIP_CERT:-}" ] || install -D -m 644 "$PIP_CERT" "$root$(realpath -s "$PIP_CERT")"
  if [ "$user" != root ]; then
    chroot "$root" /usr/sbin/useradd -m -s /bin/sh "$user"
    echo "$user ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$user"
  fi
}

finish() {
  if [ -n "$keep" ]; then say "the root is left in $root"; else rm -rf --one-file-system "$root"; fi
}

home=/root
[ "$user" = root ] || home=/home/$user
if [ -z "$root" ]; then
  root=$(mktemp -d "${TMPDIR:-/tmp}/rille-fresh-XXXXXXXX")
  trap finish EXIT
  make_root
  git clone -q --no-local "$checkout" "$root$home/rille"
else
  trap finish EXIT
  git -C "$root$home/rille" -c safe.directory='*' fetch -q "$checkout" HEAD
  git -C "$root$home/rille" -c safe.directory='*' reset -q --hard FETCH_HEAD
fi
chroot "$root" chown -R "$user" "$home/rille"

# A process namespace of its own: whatever bootstrap leaves running ends with it.
say "$(git -C "$checkout" log -1 --format='%h %s'): ./bootstrap $* as $user"
start=$(date +%s)
code=0
ROOT=$root RUN_AS=$user RUN_HOME=$home unshare --mount --pid --fork --kill-child sh -eu -c '
  mount --make-rprivate /
  mount --bind "$ROOT" "$ROOT"
  mount -t proc proc "$ROOT/proc"
  mount --rbind /dev "$ROOT/dev"
  mount -t tmpfs tmpfs "$ROOT/tmp"
  proxies=$(env | grep -E "^(PIP_(CERT|INDEX_URL|DEFAULT_TIMEOUT)|(http|https|no|HTTP|HTTPS|NO)_(proxy|PROXY))=" ||
    true)
  # A login that has just been made: few variables, no sbin in PATH.
  # Not exec: a change of user would undo --kill-child.
  chroot --userspec="$RUN_AS:" "$ROOT" /usr/bin/env -i HOME="$RUN_HOME" USER="$RUN_AS" LC_ALL=C.UTF-8 \
    PATH=/usr/local/bin:/usr/bin:/bin $proxies \
    sh -c "cd ~/rille && ./bootstrap \"\$@\" && { build/release/rille doctor >build/doctor.log 2>&1 || true; }" \
    sh "$@"' sh "$@" || code=$?

# Whether `rille doctor` shows images of the CUDA part for each architecture among the arguments of `cuda`.
has_images() {
  part=$(grep '^CUDA part' "$root$home/rille/build/doctor.log" || true)
  say "${part:-rille doctor shows no CUDA part}"
  images=${part#*images for }
  images=", ${images%% and PTX*},"
  case $part in *"images for "*) ;; *) return 1 ;; esac
  for architecture in "$@"; do
    case $architecture in [0-9]*) ;; *) continue ;; esac
    case $images in *", sm_$architecture,"*) ;; *) return 1 ;; esac
  done
}
if [ "$1" = cuda ] && [ "$code" -eq 0 ]; then
  shift
  has_images "$@" || code=1
fi
say "exit code $code after $((($(date +%s) - start) / 60)) min $((($(date +%s) - start) % 60)) s"
exit "$code"
