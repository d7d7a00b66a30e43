# SPDX-License-Identifier: Apache-2.0
# The manual pages say something of each public function and environment variable, and format cleanly.

cd "$srcdir" || exit 1
failures=0

fail()
{
    echo "$*"
    failures=$((failures + 1))
}

for header in vernier vernier_cuda vernier_opencl; do
    for function in $(sed -n 's/^VN_API .*[ *]\(vn_[a-z0-9_]*\)(.*/\1/p' lib/$header.h); do
        grep -qw "$function" doc/$header*.3 || fail "doc/$header*.3 does not say what $function() does"
    done
done

# `man vn_gemm` finds its page: one synopsis has each function.
awk -f doc/aliases.awk doc/*.3 > /dev/null || fail "doc/aliases.awk fails"
for header in vernier vernier_cuda vernier_opencl; do
    for function in $(sed -n 's/^VN_API .*[ *]\(vn_[a-z0-9_]*\)(.*/\1/p' lib/$header.h); do
        pages=$(awk -f doc/aliases.awk doc/*.3 | awk -v f="$function" '$1 == f' | wc -l)
        [ -e "doc/$function.3" ] && pages=$((pages + 1))
        [ "$pages" = 1 ] || fail "$function() is in $pages synopses, not in one"
    done
done

for name in $(grep -ohE '"VERNIER_[A-Z_]+"' $(find lib backends vendors tools cblas -name '*.c') | tr -d '"' | sort -u); do
    grep -q "$name" doc/vernier.7 || fail "doc/vernier.7 does not say what $name is for"
done

if command -v man > /dev/null && command -v groff > /dev/null; then
    for page in doc/*.[137]; do
        said=$(LC_ALL=C.UTF-8 MANROFFSEQ= man --warnings=w -l "$page" 2>&1 > /dev/null)
        [ -z "$said" ] || fail "$page: $said"
    done
else
    echo "formatting left out: install man-db and groff"
fi

# As HTML: every page is on the first one, and no link leads nowhere.
if command -v mandoc > /dev/null; then
    html=$(mktemp -d)
    trap 'rm -rf "$html"' EXIT
    sh doc/html.sh . "$html" > /dev/null || fail "doc/html.sh fails"
    for page in doc/*.[137]; do
        grep -q "href=\"${page##*/}.html\"" "$html/index.html" || fail "doc/html.sh does not list $page"
    done
    for file in "$html"/*.html; do
        for link in $(grep -o 'href="[^"#:]*' "$file" | sed 's/href="//' | grep -v '[*]' | sort -u); do
            [ -e "$html/$link" ] || [ -e "$link" ] || fail "${file##*/}: its link $link leads nowhere"
        done
    done
    [ ! -d results ] || [ "$(grep -c '<svg' "$html/index.html")" -ge 2 ] || fail "index.html lacks its figures"
else
    echo "HTML left out: install mandoc"
fi
echo "$failures failures"
[ $failures = 0 ]
