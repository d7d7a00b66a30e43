#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mingw.sh: this tree's library as a DLL for Windows, cross-built by mingw-w64; and where Wine is installed, a program
# that is linked with it and run there.  The headers of OpenCL and xxHash are those of the system; OpenCL.dll is Wine's
# own, which hands on what the system's loader lists.  The program runs twice: without a driver, where it must be told
# so, and, where the system's CPU can be had, for a product.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
host=x86_64-w64-mingw32
for cc in $host-gcc-posix $host-gcc none; do
    command -v "$cc" > /dev/null && break
done
[ "$cc" != none ] || { echo "skipped: install gcc-mingw-w64-x86-64-posix"; exit 77; }
wine=
for it in wine64 /usr/lib/wine/wine64 wine; do
    command -v "$it" > /dev/null && { wine=$it; break; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/vernier" "$work/include" "$work/lib"
git -c safe.directory='*' -C "$top" ls-files -co --exclude-standard | (cd "$top" && tar -c --ignore-failed-read -T - 2> /dev/null) | tar -x -C "$work/vernier"
ln -s /usr/include/CL "$work/include"
for header in /usr/include/xxhash.h /usr/include/xxh3.h; do
    [ ! -f $header ] || ln -s $header "$work/include"
done

# How OpenCL.dll is linked: by the names of the functions that the library calls.
{ echo 'LIBRARY OpenCL.dll'; echo EXPORTS
  grep -rhoE '\bcl[A-Z][A-Za-z]*\(' "$work/vernier/backends/opencl" "$work/vernier/vendors" | tr -d '(' | sort -u
} > "$work/opencl.def"
$host-dlltool -d "$work/opencl.def" -l "$work/lib/libOpenCL.a"

cd "$work/vernier"
[ -x configure ] || autoreconf -fi > /dev/null 2>&1
./configure -q --host=$host --without-tools --disable-static --enable-werror PKG_CONFIG=false CC="$cc" CPPFLAGS="-I$work/include" \
    LDFLAGS="-L$work/lib" > /dev/null 2>&1 || { tail -n 20 config.log; exit 1; }
make -s -j2 libvernier.la > /dev/null
cat > product.c <<'END_OF_C'
#include <stdio.h>
#include <vernier.h>

int main(int count, char **names)
{
    const float a[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    float c[2][2] = { { 0 } };
    vn_device *dev;
    vn_queue *q;
    vn_buffer *A, *C;
    const vn_status s = vn_device_open(&dev, count > 1 ? names[1] : NULL);

    if (s) {
        printf("%s %s\n", vn_status_name(s), vn_last_error());
        return 0;
    }
    if (vn_queue_open(&q, dev) || vn_buffer_open(&A, dev, sizeof a) || vn_buffer_open(&C, dev, sizeof c) ||
        vn_write(q, A, 0, a, sizeof a) ||
        vn_gemm(q, 1.0, vn_matrix(A, VN_F32, 2, 3), vn_transpose(vn_matrix(A, VN_F32, 2, 3)), 0.0,
                vn_matrix(C, VN_F32, 2, 2), NULL) ||
        vn_read(q, c, C, 0, sizeof c))
        return printf("%s\n", vn_last_error()), 1;
    printf("%g %g %g %g\n%s\n", c[0][0], c[0][1], c[1][0], c[1][1], vn_queue_explain(q));
    vn_buffer_close(A);
    vn_buffer_close(C);
    vn_queue_close(q);
    vn_device_close(dev);
    return 0;
}
END_OF_C
$cc -Ilib product.c -o product.exe .libs/libvernier.dll.a
cp .libs/libvernier-0.dll .
for dll in libwinpthread-1.dll libgcc_s_seh-1.dll; do
    file=$("$cc" -print-file-name=$dll)
    [ ! -f "$file" ] || cp "$file" .
done
$host-nm .libs/libvernier.dll.a | sed -n 's/.* T \(vn_\)/\1/p' | sort > exported
awk -f doc/aliases.awk doc/*.3 | awk '{ print $1 }' | grep '^vn_' | sort > documented
comm -13 exported documented > missing
[ ! -s missing ] || { cat missing; echo "^ documented, and not exported"; exit 1; }
echo "libvernier-0.dll exports $(wc -l < exported) functions, and all that have a page"
[ -n "$wine" ] || { echo "skipped: install wine64, which runs what was built"; exit 77; }

HOME=$work WINEPREFIX=$work/wine WINEDEBUG=-all
export HOME WINEPREFIX WINEDEBUG
mkdir "$work/none"
said=$(OCL_ICD_VENDORS=$work/none timeout 280 "$wine" product.exe | tr -d '\r')
echo "$said"
case $said in VN_NO_DEVICE*) ;; *) echo "^ without a driver VN_NO_DEVICE was to be said"; exit 1 ;; esac

# OpenCL devices reach a program through Wine where the system's driver can be loaded there.
said=$(timeout 280 "$wine" product.exe cpu | tr -d '\r')
case $said in
'14 32 32 77'*) ;;
VN_NO_DEVICE*)  echo "skipped: the product, since Wine finds no device"; exit 77 ;;
*)              echo "$said"; echo "^ 14 32 32 77 was to be computed"; exit 1 ;;
esac

# The same kernel by a row of the user's, whose patterns the library matches itself on Windows.
words=$(echo "$said" | sed -n 's/.*"variant": "\([a-z0-9_]*\)".*"row": "[a-z]*", "parameters": {\([^}]*\)}.*"estimate.*/\1 \2/p' |
        sed 's/"[A-Z0-9_]*"://g; s/,//g')
variant=${words%% *}
echo "$variant [!g]p[a-z]/?*/* open* f3[12] * ${words#* }" > user.tune
said=$(VERNIER_TUNE=user.tune VERNIER_LOG=all timeout 280 "$wine" product.exe cpu 2> log | tr -d '\r')
case $said in
'14 32 32 77'*"\"variant\": \"$variant\""*'"row": "user"'*) ;;
*) cat user.tune log; echo "$said" | head -c 800; echo; echo "^ the user's row was to be used"; exit 1 ;;
esac
echo "14 32 32 77 is right, by $variant with the shipped row and with a user's"
