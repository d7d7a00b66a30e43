# SPDX-License-Identifier: Apache-2.0
# The library as its users meet it: installed, found by pkg-config and by CMake, used from C and
# C++, shared and static, then uninstalled without a trace.

CXX=${CXX-c++}
out=$PWD/tests/install.tmp
stage=$out/stage
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
# This make is no child of the one that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
unset CPATH LIBRARY_PATH LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
steps=0

step()          # WHAT COMMAND...
{
    what=$1
    shift
    steps=$((steps + 1))
    "$@" > "$out/said" 2>&1 && return
    echo "failed: $what: $*"
    tail -n 40 "$out/said"
    exit 1
}

wrong()
{
    echo "$*"
    exit 1
}

# ---- make install ---------------------------------------------------------------------

step "make install" "$MAKE" install DESTDIR="$stage"
pc=$(find "$stage" -name vernier.pc)
lib=$(dirname "$(dirname "$pc")")
grep -q '^prefix=' "$pc" || wrong "vernier.pc names no prefix"
prefix=$stage$(sed -n 's/^prefix=//p' "$pc")

for file in "$lib/libvernier.so" "$lib/libvernier.a" "$lib/cmake/Vernier/VernierConfig.cmake" \
            "$prefix/include/vernier.h" "$prefix/include/vernier.hpp" "$prefix/include/vernier_cuda.h" "$prefix/include/vernier_opencl.h" \
            "$prefix/share/man/man3/vn_gemm.3" "$prefix/share/man/man3/vn_opencl_queue_open.3" \
            "$prefix/share/man/man3/vernier.3" "$prefix/share/doc/vernier/method.md" "$prefix/share/doc/vernier/examples/two_queues.c"; do
    [ -e "$file" ] || wrong "not installed: ${file#"$stage"}"
done

if command -v man > /dev/null && command -v groff > /dev/null; then
    for function in vn_slice vn_gemm vn_cuda_buffer_open; do
        LC_ALL=C.UTF-8 MANPATH= man -M "$prefix/share/man" $function 2> /dev/null | grep -q "$function" ||
            wrong "man $function finds nothing about $function"
    done
fi

# Neither carries the path of the build, so that two builds are the same; the command has suites of its own.
for built in "$lib/libvernier.so" "$prefix/bin/vernier"; do
    [ -e "$built" ] || continue
    strip -o "$out/stripped" "$built"
    for folder in "$PWD" "$(cd "$srcdir" && pwd)"; do
        grep -Fq -e "$folder/" "$out/stripped" && wrong "${built#"$stage"} has the path $folder in it"
    done
done
if [ -e "$prefix/bin/vernier" ]; then
    strings -a "$prefix/bin/vernier" | grep -qx "${prefix#"$stage"}/share/vernier" ||
        wrong "the installed command looks for suites elsewhere than in ${prefix#"$stage"}/share/vernier"
fi

# ---- what the shared library shows and needs ------------------------------------------

# Thread-local memory is taken off the stack of each thread of the process, drivers' threads among them.
if command -v readelf > /dev/null; then
    local=$(readelf -lW "$lib/libvernier.so" | awk '$1 == "TLS" { print $6 }')
    [ $((${local:-0})) -le 8192 ] || wrong "libvernier.so has $((local)) bytes of thread-local memory"
fi

shown=$(nm -D --defined-only "$lib/libvernier.so" | awk '{ print $3 }' | sed 's/@.*//')
echo "$shown" | grep -v '^vn_[^_]' && wrong "^ shown by libvernier.so, though not public"
for header in vernier vernier_cuda vernier_opencl; do
    for function in $(sed -n 's/^VN_API .*[ *]\(vn_[a-z0-9_]*\)(.*/\1/p' "$srcdir/lib/$header.h"); do
        echo "$shown" | grep -qx "$function" || wrong "$function() is in $header.h, but not in libvernier.so"
    done
done

needed=$(objdump -p "$lib/libvernier.so" | awk '$1 == "NEEDED" { print $2 }')
for library in $needed; do
    case $library in
    libc.so.* | libdl.so.* | libpthread.so.* | libOpenCL.so.* | ld-linux*) ;;
    lib[autl]*san.so.* | libgcov*) ;;                   # --enable-sanitizers
    *) wrong "libvernier.so needs $library" ;;
    esac
done
objdump -p "$lib/libvernier.so" | grep -q 'SONAME *libvernier\.so\.[0-9]' || wrong "libvernier.so has no soname"

# ---- a program that uses it ------------------------------------------------------------

cat > "$out/program.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <vernier.h>
#include <vernier_opencl.h>

/* [1 2; 3 4] [5 6; 7 8] */
int main(void)
{
    static const float a[] = { 1, 2, 3, 4 }, b[] = { 5, 6, 7, 8 }, right[] = { 19, 22, 43, 50 };
    float      c[4] = { 0, 0, 0, 0 };
    vn_device *d = NULL;
    vn_queue  *q = NULL;
    vn_buffer *x = NULL, *y = NULL, *z = NULL;
    vn_status  s = vn_device_open(&d, NULL);

    if (s == VN_NO_DEVICE) {
        printf("%s\n", vn_last_error());
        return 77;
    }
    if (s || vn_queue_open(&q, d) || vn_buffer_open(&x, d, sizeof a) || vn_buffer_open(&y, d, sizeof b) ||
        vn_buffer_open(&z, d, sizeof c) || vn_write(q, x, 0, a, sizeof a) || vn_write(q, y, 0, b, sizeof b) ||
        vn_gemm(q, 1.0, vn_matrix(x, VN_F32, 2, 2), vn_matrix(y, VN_F32, 2, 2),
                   0.0, vn_matrix(z, VN_F32, 2, 2), NULL) || vn_read(q, c, z, 0, sizeof c)) {
        printf("%s\n", vn_last_error());
        return 1;
    }
    vn_buffer_close(x);
    vn_buffer_close(y);
    vn_buffer_close(z);
    vn_queue_close(q);
    vn_device_close(d);
    return vn_opencl_device_open(NULL, NULL, NULL) != VN_INVALID || memcmp(c, right, sizeof c) != 0;
}
END
cp "$out/program.c" "$out/program.cpp"

run()           # WHAT PROGRAM: the program is right, or there is no device
{
    "$2" > "$out/said" 2>&1
    case $? in
    0) ;;
    77) echo "$1: not run: $(cat "$out/said")" ;;
    *) cat "$out/said"; wrong "$1: the program fails" ;;
    esac
}

flags='-DCL_TARGET_OPENCL_VERSION=120 -Wall -Wextra -Werror'
if [ "$(objdump -p "$lib/libvernier.so" | grep -c 'NEEDED *lib.*san')" != 0 ]; then
    flags="$flags -fsanitize=address,undefined"
fi

# ---- pkg-config -----------------------------------------------------------------------------

if command -v pkg-config > /dev/null; then
    config="pkg-config --define-variable=prefix=$prefix"
    PKG_CONFIG_PATH=$lib/pkgconfig
    export PKG_CONFIG_PATH
    [ "$(pkg-config --modversion vernier)" = "$(sed -n 's/^#define VN_VERSION_[A-Z]* //p' "$srcdir/lib/vernier.h" | paste -sd.)" ] ||
        wrong "vernier.pc says another version than vernier.h"
    for standard in c99 c11 c17 c2x; do
        step "$standard" $CC -std=$standard $flags $($config --cflags vernier) "$out/program.c" -o "$out/shared" \
            $($config --libs vernier) -Wl,-rpath,"$lib"
    done
    run "pkg-config, shared" "$out/shared"
    # Where there is no shared library, -lvernier is the archive.
    mkdir "$out/archive"
    cp "$lib/libvernier.a" "$out/archive"
    step "static" $CC -std=c99 $flags $($config --cflags vernier) "$out/program.c" -o "$out/static" -L"$out/archive" \
        $($config --static --libs vernier | sed "s|-L$lib||")
    run "pkg-config, static" "$out/static"
    objdump -p "$out/static" | grep -q libvernier && wrong "the static program needs libvernier.so"
    if command -v "$CXX" > /dev/null; then
        for standard in c++11 c++14 c++17 c++20; do
            step "$standard" $CXX -std=$standard $flags $($config --cflags vernier) "$out/program.cpp" -o "$out/shared_cpp" \
                $($config --libs vernier) -Wl,-rpath,"$lib"
        done
        run "pkg-config, C++" "$out/shared_cpp"
    else
        echo "C++ left out: install g++"
    fi
else
    echo "pkg-config left out: install it"
fi

# ---- CMake -------------------------------------------------------------------------------------

if command -v cmake > /dev/null; then
    cat > "$out/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.10)
project(consumer C)
find_package(Vernier 0.1 REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared Vernier::vernier)
add_executable(static program.c)
target_link_libraries(static Vernier::vernier_static)
END
    step "cmake" cmake -S "$out" -B "$out/cmake" -DVernier_DIR="$lib/cmake/Vernier" -DCMAKE_C_COMPILER="${CC%% *}" -DCMAKE_C_FLAGS="$flags"
    step "cmake --build" cmake --build "$out/cmake"
    run "CMake, shared" "$out/cmake/shared"
    run "CMake, static" "$out/cmake/static"
    sed -i 's/Vernier 0.1/Vernier 99.0/' "$out/CMakeLists.txt"
    cmake -S "$out" -B "$out/cmake99" -DVernier_DIR="$lib/cmake/Vernier" -DCMAKE_C_COMPILER="${CC%% *}" > /dev/null 2>&1 &&
        wrong "CMake finds a Vernier 99.0"
else
    echo "CMake left out: install cmake"
fi

# ---- make uninstall ----------------------------------------------------------------------

step "make uninstall" "$MAKE" uninstall DESTDIR="$stage"
left=$(find "$stage" ! -type d; find "$stage" -type d -iname '*vernier*')
[ -z "$left" ] || wrong "left by make uninstall: $left"
echo "$steps steps, all right"
