#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# debian.sh [FOLDER]: the Debian packages of this commit, built in a clean Debian 12, checked by lintian, and
# tested as installed in another clean Debian 12.  The packages land in FOLDER (packages).
#
# It needs mmdebstrap, git and root, and a mirror of Debian ($MIRROR: as apt is configured here).
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
out=${1-packages}
mkdir -p "$out"
out=$(cd "$out" && pwd)
command -v mmdebstrap > /dev/null || { echo "install mmdebstrap"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

version=$(sed -n 's/^#define VN_VERSION_[A-Z]* //p' "$top/lib/vernier.h" | paste -sd.)
source=vernier-$version
mkdir "$work/build"
git -c safe.directory='*' -C "$top" archive --prefix="$source/" HEAD | tar -x -C "$work/build"
cp -r "$work/build/$source/packaging/debian" "$work/debian"
rm -rf "$work/build/$source/packaging" "$work/build/$source/results"
tar -C "$work/build" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@1795348800 \
    -cJf "$work/build/vernier_$version.orig.tar.xz" "$source"
mv "$work/debian" "$work/build/$source/debian"

# What the packages need to be built, from their own control file.
needed=$(sed -n '/^Build-Depends:/,/^[A-Z]/p' "$work/build/$source/debian/control" | sed -n 's/^ \([^ ,:]*\).*/\1/p' |
         sed 's/^debhelper-compat$/debhelper/' | paste -sd,)

echo "== build, in a clean chroot with $needed"
mmdebstrap --quiet --variant=buildd --include="$needed,lintian" \
    --customize-hook="copy-in $work/build /" \
    --customize-hook="chroot \"\$1\" sh -c 'cd /build/$source && DEB_BUILD_OPTIONS=parallel=2 dpkg-buildpackage -us -uc'" \
    --customize-hook="chroot \"\$1\" sh -c 'cd /build && lintian --allow-root --fail-on error --info --display-info *.changes > lintian.txt; echo \$? > lintian.status'" \
    --customize-hook="sync-out /build $work/done" \
    bookworm /dev/null ${MIRROR-}
cp "$work"/done/*.deb "$work"/done/*.dsc "$work"/done/*.xz "$work"/done/*.changes "$out"
grep -E '^[EWI]:' "$work/done/lintian.txt" || :
echo "== lintian exits with $(cat "$work/done/lintian.status")"
[ "$(cat "$work/done/lintian.status")" = 0 ]

echo "== install and test, in a clean chroot"
mkdir "$work/debs"
cp "$out"/*_"$version"-*.deb "$work/debs"
rm -f "$work"/debs/*-dbgsym_*
depends=$(sed -n 's/^Depends: @, //p' "$work/build/$source/debian/tests/control" | tr -d ' ')
mmdebstrap --quiet --variant=apt --include="$depends" \
    --customize-hook="copy-in $work/debs $work/build/$source/debian/tests /" \
    --customize-hook="chroot \"\$1\" sh -c 'apt-get install -qy --no-install-recommends /debs/*.deb'" \
    --customize-hook="chroot \"\$1\" sh -ec 'export HOME=/tmp; for t in command library python blas; do echo \"-- \$t\"; /tests/\$t; done'" \
    bookworm /dev/null ${MIRROR-}
echo "== the packages are in $out"
