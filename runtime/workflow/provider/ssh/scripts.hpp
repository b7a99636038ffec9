// The POSIX shell scripts that the provider `ssh` runs on a host. In each script $1 is the parent of the instance
// directories; "": the default directory.
#pragma once

namespace rille::provider::ssh_scripts {

constexpr int no_slot = 75, not_there = 74, no_folder = 73, no_program = 127;  // exit codes of the scripts

// The common beginning of all scripts. live() sets n to the number of instances that have not expired.
constexpr const char* begin = R"sh(set -u
root=${1:-${XDG_STATE_HOME:-$HOME/.local/state}/rille/rented}
live() {
  now=$(date +%s) n=0
  for file in "$root"/i-*/machine.json; do
    [ -e "$file" ] || continue
    ends=$(sed -n 's/.*"expires_wall_us":\([0-9]*\)[0-9]\{6\}[^0-9].*/\1/p' "$file")
    [ -n "$ends" ] && [ "$ends" -gt 0 ] && [ "$ends" -le "$now" ] || n=$((n + 1))
  done
}
)sh";

// Prints the host's CPUs, memory, live instances and GPUs, one per line.
constexpr const char* probe = R"sh(live
echo "cpus $(getconf _NPROCESSORS_ONLN)"
echo "memory $(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
echo "live $n"
nvidia-smi --query-gpu=memory.total,name --format=csv,noheader,nounits 2>/dev/null | sed 's/^/gpu /'
exit 0
)sh";

// Creates an instance unless it exists, and prints its directory and machine.json. $2: the instance id; $3: the text of
// machine.json; $4: the host's slots. Exit 75: no free slot; 73: the directory cannot be created or written.
constexpr const char* create = R"sh(set -e
umask 077
mkdir -p "$root" || exit 73
[ -w "$root" ] || { echo "$root is not writable" >&2; exit 73; }
exec 9>"$root/lock"
flock 9
if [ ! -e "$root/$2/machine.json" ]; then
  live
  [ "$n" -lt "$4" ] || exit 75
  rm -rf "$root/.new-$2"
  mkdir -p "$root/.new-$2/work"
  printf '%s\n' "$3" >"$root/.new-$2/machine.json"
  sync "$root/.new-$2/machine.json"
  rm -rf "$root/$2"
  mv "$root/.new-$2" "$root/$2"
  sync "$root"
fi
echo "$root/$2"
cat "$root/$2/machine.json"
)sh";

// $2: an instance id. Prints the instance's directory, machine.json and, if present, notice.json. Exit 74: no such
// instance.
constexpr const char* describe = R"sh([ -e "$root/$2/machine.json" ] || exit 74
echo "$root/$2"
cat "$root/$2/machine.json"
if [ -e "$root/$2/notice.json" ]; then echo; cat "$root/$2/notice.json"; fi
)sh";

// Prints the directory and machine.json of every instance.
constexpr const char* list = R"sh(for file in "$root"/i-*/machine.json; do
  [ -e "$file" ] || continue
  echo "${file%/machine.json}"
  cat "$file"
  echo
done
)sh";

// $2: the instance id. Once machine.json says "terminating", no agent starts. The agent's keeper kills the agent's
// descendants; then all processes with RILLE_INSTANCE set to this directory are killed. machine.json is removed last.
constexpr const char* terminate = R"sh(dir=$root/$2
[ -e "$dir/machine.json" ] || { rm -rf "$dir"; exit 0; }
sed 's/"terminating":false/"terminating":true/' "$dir/machine.json" >"$dir/machine.json.new" &&
  mv "$dir/machine.json.new" "$dir/machine.json" || exit 1
dir=$(cd "$dir" && pwd -P)
marked() {
  for entry in /proc/[0-9]*/environ; do
    pid=${entry#/proc/}
    pid=${pid%/environ}
    [ "$pid" = "$$" ] || ! tr '\0' '\n' 2>/dev/null <"$entry" | grep -qxF "RILLE_INSTANCE=$dir" || echo "$pid"
  done 2>/dev/null
}
is_keeper() { tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -q ' agent keeper '; }
round=0
while pids=$(marked) && [ -n "$pids" ]; do
  round=$((round + 1))
  [ "$round" -le 100 ] || { echo "processes that do not end: $pids" >&2; exit 1; }
  for pid in $pids; do
    if is_keeper "$pid" && [ "$round" -le 50 ]; then continue; fi
    if [ "$round" -le 10 ]; then kill -TERM "$pid"; else kill -KILL "$pid"; fi 2>/dev/null
  done
  sleep 0.1
done
cd "$root" && find "$2" -mindepth 1 ! -name machine.json -delete 2>/dev/null
find "$2" -mindepth 1 ! -name machine.json | grep -q . && { echo "files that stay in $dir" >&2; exit 1; }
rm -rf "$root/$2"
)sh";

}  // namespace rille::provider::ssh_scripts
