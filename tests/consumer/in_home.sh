#!/bin/sh
# Runs a program with an empty RILLE_HOME, which is removed at its end: in_home.sh PROGRAM [ARGUMENT..]
set -eu
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
RILLE_HOME=$home/home "$@"
