# SPDX-License-Identifier: Apache-2.0
# Each file says whose it is and under which license (https://reuse.software), and the license is there.

cmp "$srcdir/LICENSE" "$srcdir/LICENSES/Apache-2.0.txt" || exit 1
for suite in "$srcdir"/suites/*.csv; do
    grep -Fq "\`${suite##*/}\`" "$srcdir/suites/README.md" ||
        { echo "suites/README.md does not say where ${suite##*/} is from"; exit 1; }
done
[ -d "$srcdir/.git" ] || { echo "skipped: this is no clone, so that what was built here is not known"; exit 77; }
command -v reuse > /dev/null || { echo "skipped: install reuse (pip install reuse)"; exit 77; }
reuse --root "$srcdir" lint
