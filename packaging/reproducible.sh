#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reproducible.sh [CONFIGURE-OPTION...]: this commit, built in two folders of different names and in two time zones and
# locales, installs the same files byte for byte.  Debugging information names the sources by their folder, so that
# it is mapped away, as distributions do.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build()         # FOLDER CONFIGURE-OPTION...
{
    folder=$1
    shift
    mkdir -p "$folder/vernier"
    git -c safe.directory='*' -C "$top" archive HEAD | tar -x -C "$folder/vernier"
    (cd "$folder/vernier" &&
     autoreconf -fi > /dev/null 2>&1 &&
     ./configure -q --prefix=/usr CFLAGS="-O2 -g -ffile-prefix-map=$folder/vernier=." "$@" > /dev/null &&
     make -s -j2 > /dev/null && make -s install DESTDIR="$folder/stage" > /dev/null 2>&1)
}

first=$work/one second=$work/another/folder
(TZ=UTC LC_ALL=C; export TZ LC_ALL; build "$first" "$@")
(TZ=Pacific/Auckland LC_ALL=C.UTF-8; export TZ LC_ALL; umask 022; build "$second" "$@")
(cd "$first/stage" && find . -type f | sort | xargs sha256sum) > "$work/first"
(cd "$second/stage" && find . -type f | sort | xargs sha256sum) > "$work/second"
diff "$work/first" "$work/second" || { echo "^ differ"; exit 1; }
echo "$(wc -l < "$work/first") files, the same in both"
