# SPDX-License-Identifier: Apache-2.0
# Who may know what: the rules of CONVENTIONS.md that a pattern can check.

cd "$srcdir" || exit 1
failures=0

# rule "what is wrong" PATTERN FILES...: no line of the files may match.
rule()
{
    what=$1 pattern=$2
    shift 2
    if grep -nHE -e "$pattern" -- "$@"; then
        echo "^ $what"
        failures=$((failures + 1))
    fi
}

# but NAME... -- FILES...: the files without those named.
but()
{
    names=
    while [ "$1" != -- ]; do names="$names $1 "; shift; done
    shift
    for file; do
        case "$names" in *" $file "*) ;; *) printf '%s\n' "$file" ;; esac
    done
}

c_files=$(find lib backends vendors cblas tools tests examples -name '*.[ch]' ! -path lib/texts.c ! -name torch_script.h ! -path 'tests/*.tmp/*')
library=$(but lib/texts.c -- $(find lib -name '*.[ch]'))
shipped=$(but lib/texts.c -- $(find lib backends vendors -name '*.c'))
kernels=$(but cl/words.h -- $(find cl -name '*.cl' -o -name '*.h' | grep -v ^cl/atoms/))
texts=$(find cl cuda -name '*.cl' -o -name '*.h')

rule "lib/ may not know OpenCL or CUDA" \
    '#[[:space:]]*include[[:space:]]*[<"](CL/|cuda|nvrtc|cublas|cudnn|clblast)' $(but lib/vernier_opencl.h -- $library)
rule "backends/ may not know an operation" \
    '#[[:space:]]*include.*[<"/](gemm|conv|softmax|attention|cross_entropy)\.h' $(find backends -name '*.[ch]')
rule "what is known of a device is a fact, or stands in a tune file, also in comments" \
    '(^|[^[:alnum:]_])(H[12]00|A100|V100|MI[23][0-9][0-9]|RTX|Radeon|GeForce|EPYC|Xeon|Zen ?[0-9])([^[:alnum:]_]|$)' \
    $(but lib/vernier.h -- $library) $(find backends vendors -name '*.[ch]')
rule "the library does not print, abort or exit" \
    '(^|[^_[:alnum:]])(printf|puts|putchar|perror|abort|exit|_exit|assert)[[:space:]]*\(' \
    $shipped
rule "only log.c writes to stderr" \
    '(^|[^_[:alnum:]])std(err|out)([^_[:alnum:]]|$)' $(but lib/log.c -- $shipped)
rule "the environment is read with secure_getenv()" \
    '(^|[^_[:alnum:]])getenv[[:space:]]*\(' $shipped
rule "kernels are written in words, not in a language" \
    '(^|[^_[:alnum:]])(__(kernel|global|local|constant|shared__|device__)|(block|thread)(Idx|Dim))([^_[:alnum:]]|$)' $kernels
rule "kernels call words, not a language's functions" \
    '(^|[^_[:alnum:]])(__syncthreads|get_(group|local|global)_(id|size)|barrier|as_u?(int|long|float|double)[0-9]*|v(load|store)(_half)?[0-9]*)\(' $kernels
rule "kernels do not ask which language they are in" \
    '#.*(__OPENCL|__CUDA|__cplusplus|__NVCC|__clang__)' $kernels
rule "which operation it is, only tools/problem/ asks: a struct op says the rest" \
    '(->|\.)op[[:space:]]*[!=]=|[!=]=[[:space:]]*&op_|case[[:space:]]+(GEMM|CONV|SOFTMAX)([^_[:alnum:]]|$)|[[:space:]]op[[:space:]]*[!=]=|strcmp\([^;]*op->name|enum op([^_[:alnum:]]|$)' \
    $(find tools -name '*.[ch]' ! -path 'tools/problem/*')
rule "structs do not end in _t" \
    '^[[:space:]]*}[[:space:]]*[[:alnum:]_]+_t[[:space:]]*;' $c_files
rule "no code left behind" \
    '^[[:space:]]*#[[:space:]]*if[[:space:]]+0([^-_[:alnum:]]|$)|(^|[^[:alnum:]])(TODO|FIXME|XXX)([^[:alnum:]]|$)' $c_files $kernels

# wide FILES...: no line is longer than 110 columns.
wide()
{
    awk 'length > 110 { printf "%s:%d: %d columns; 110 are the most\n", FILENAME, FNR, length; found++ }
         END          { exit !!found }' "$@" || failures=$((failures + 1))
}

wide $c_files $texts

# cl/tile: a macro is defined by one header, so that any of them can meet in a kernel; and each says at its top
# what it takes and what it gives.
awk '/^#[[:space:]]*define/ { name = $0
                              sub(/^#[[:space:]]*define[[:space:]]+/, "", name)
                              sub(/[^[:alnum:]_].*/, "", name)
                              if (name in file && file[name] != FILENAME) {
                                  print FILENAME ":" FNR ": " name " is defined in " file[name] ", too"
                                  found++
                              }
                              file[name] = FILENAME }
     END                    { exit !!found }' cl/tile/*.h || failures=$((failures + 1))
for file in cl/tile/*.h; do
    for word in Takes Gives; do
        sed '/\*\//q' "$file" | grep -q "^ \* $word[: ]" ||
            { echo "$file: its first comment does not say what it $(echo $word | tr TG tg)"; failures=$((failures + 1)); }
    done
done

license='SPDX-License''-Identifier: Apache-2.0'
for file in $c_files; do
    head -n 1 "$file" | grep -q "$license" ||
        { echo "$file: its first line is no SPDX line"; failures=$((failures + 1)); }
done

others=$(find cl cuda doc tests suites -name '*.cl' -o -name '*.h' -o -name '*.tune' -o -name '*.sh' -o -name '*.[137]' | grep -vE '^tests/(cache|.*\.tmp)/')
for file in $c_files $others ./*.md configure.ac Makefile.am m4/vernier.m4 quickstart; do
    lines=$(wc -l < "$file")
    [ "$lines" -le 1000 ] || { echo "$file: $lines lines; two nouns in one file"; failures=$((failures + 1)); }
    case "${file##*/}" in
    *util* | *helper* | *common* | *fast* | *_new* | *_v2*)
        echo "$file: a name that says nothing"; failures=$((failures + 1)) ;;
    esac
done

echo "$failures failures"
[ $failures = 0 ]
