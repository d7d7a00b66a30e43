# SPDX-License-Identifier: Apache-2.0
# What quickstart tells a user without root to install is there to be installed: of what only tests need, it names
# the packages that apt knows.  Stand-ins for dpkg-query, apt-cache, id and sudo say what is there.

out=$PWD/tests/quickstart.tmp
rm -rf "$out"
mkdir -p "$out/bin"
trap 'rm -rf "$out"' EXIT
cp "$srcdir/quickstart" "$out"

fake()          # NAME, with its text on stdin
{
    { echo '#!/bin/sh'; cat; } > "$out/bin/$1"
    chmod +x "$out/bin/$1"
}
fake id << 'END'
echo 1000
END
fake sudo << 'END'
exit 1
END
fake apt-get << 'END'
exit 1
END
fake apt-cache << 'END'
case $2 in
clang-19) ;;                                    # unknown
clang-15) echo '  Candidate: (none)' ;;
*)        echo '  Candidate: 1.0' ;;
esac
END

failures=0
# says INSTALLED WHAT: what quickstart prints where of all packages those that match INSTALLED are there.
says()
{
    echo "case \$4 in $1) echo installed ;; *) exit 1 ;; esac" | fake dpkg-query
    PATH=$out/bin:$PATH sh "$out/quickstart" --build < /dev/null > "$out/said" 2>&1
    line=$(grep '^    apt-get' "$out/said")
    case $line in
    *clang-1[59]*) echo "it names a package that apt does not have: $line" ;;
    *'install -y --no-install-recommends '*"$2"*) return ;;
    *) echo "it does not name $2, or recommends: $line"; cat "$out/said" ;;
    esac
    failures=$((failures + 1))
}
says none gcc
says 'g*|l*|make|auto*|pkg*|opencl*|ocl*|pocl*' cmake

echo "$failures failures"
[ $failures = 0 ]
