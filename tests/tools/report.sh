# SPDX-License-Identifier: Apache-2.0
# What `vernier gap --from` and `vernier compare` make of recorded reports: the page, the figures, the CSV, the
# schema, and the plot made from the CSV alone.  No device is needed.

[ -x ./vernier ] || { echo "skipped: the command is not built"; exit 77; }

# The first Python that has a module, if there is one.
python_with()
{
    for python in python3 /usr/bin/python3; do
        $python -c "import $1" 2> /dev/null && { echo $python; return; }
    done
}
python=$(python_with csv)
[ "$python" ] || { echo "skipped: install python3"; exit 77; }

failures=0
fail()
{
    echo "$*"
    failures=$((failures + 1))
}

out=tests/report.tmp
rm -rf $out
mkdir $out
trap 'rm -rf $out' EXIT
recorded=$srcdir/tests/tools/report.json older=$srcdir/tests/tools/gap_report.json

# An older report; and one with what no honest report has: values that no axis can hold, control characters.
$python - "$recorded" $out/hostile.json $out/tiny.json <<'EOF' || fail "the hostile report was not written"
import json, sys
report = json.load(open(sys.argv[1]))
rows = report["benchmarks"]
rows[0]["real_time"] = rows[0]["same_time"][0] = 1e-323
json.dump(report, open(sys.argv[3], "w"))
rows[0]["real_time"] = rows[0]["same_time"][0] = 1e-17
rows[1]["toolchain_gap"], rows[1]["library_gap"]["cublas"] = 1e29, 1e-17
rows[2]["flops"], rows[2]["bytes"] = 1e29, 1e-17
rows[3].update(name="gemm:\x1b[31m\x9b31m</title>\ufffe\"'<script>,\n:f32", label="\x07", variant="v\x01w\x7f", suite="../\u20ac" * 40)
rows[4].update(op=7, type=None, runs=[None, 3], gaps=[], name={"a": 1})
report["context"].update(device="\x1b]0;title\x07", peers={"\x1b[2J": "\x9b2J"})
report["vernier"]["pair"][0].update(name="\x1b[2J" * 100, spec="opencl:0")
json.dump(report, open(sys.argv[2], "w"))
EOF

# draw NAME JSON: as page, figures and CSV, in ten seconds.
draw()
{
    timeout 10 ./vernier gap --from "$2" --html $out/$1.html --svg $out/$1 --csv $out/$1.csv > $out/$1.txt 2>&1 ||
        fail "vernier gap --from $2: exit status $?: $(tail -n 1 $out/$1.txt)"
}
draw recorded "$recorded"
draw older "$older"
draw hostile $out/hostile.json
timeout 10 ./vernier gap --from $out/tiny.json --html $out/tiny.html > /dev/null 2>&1
[ $? = 2 ] || fail "vernier gap --from a report with a time of 1e-323: not refused"
[ ! -e $out/tiny.html ] || fail "a page was drawn of a time of 1e-323"
cp "$recorded" $out/recorded.json
cp "$older" $out/older.json
for pair in "recorded recorded" "older recorded" "hostile recorded" "recorded hostile"; do
    set -- $pair
    name=$out/compare-$1-$2
    timeout 10 ./vernier compare $out/$1.json $out/$2.json --html $name.html --svg $name --json $name.json \
        > $name.txt 2>&1 || fail "vernier compare $pair: exit status $?: $(tail -n 1 $name.txt)"
done

# Pages and figures are XML without anything from elsewhere; samples are lines; what sums up is what the CSV says.
cat > $out/check.py <<'EOF'
import csv, glob, json, os, re, statistics, sys, xml.etree.ElementTree as tree
out, failures = sys.argv[1], 0

def check(right, what):
    global failures
    if not right:
        failures += 1
        print(what)

pages = glob.glob(out + "/*.html")
figures = glob.glob(out + "/*/*.svg")
check(len(pages) == 7 and len(figures) > 40, f"{len(pages)} pages, {len(figures)} figures")
for path in pages + figures:
    text = open(path, encoding="utf-8", newline="").read()
    try:
        root = tree.fromstring(text)
    except tree.ParseError as error:
        check(False, f"{path} is not well-formed: {error}")
        continue
    outside = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    check(not re.search(r"(?i)<(script|img|link|iframe|object|embed)|https?:|url\(|@import|\b(src|href)\s*=", outside),
          f"{path} needs something from elsewhere")
    check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), f"{path} has control characters")
    check(not re.search(r'="-?(nan|inf)', text), f"{path} has a place that is no number")
    check(os.path.getsize(path) < 2e6, f"{path} is {os.path.getsize(path)} bytes")
    if path.endswith(".html"):
        for needed in ("viewport", "prefers-color-scheme: dark", "@media print", "How to cite", "<h1>"):
            check(needed in text, f"{path} has no {needed}")
        check(root.find(".//figure") is not None, f"{path} has no figure")
for path in glob.glob(out + "/*.txt"):
    text = open(path, encoding="utf-8", newline="").read()
    check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), f"{path} has control characters")

page = open(out + "/recorded.html").read()
for needed in ("OpenCL against CUDA on Recorded GPU", "commit 0123abc", "cuBLAS 13.1.0", "700 W", "Recorded CPU",
               "HGMMA bf16 x 3 against FFMA", "gemm f32 by FMA", "<summary>resnet50", "1.25 [1.24, 1.26]"):
    check(needed in page, f"the page does not say {needed}")
check(page.count('class="error"') >= 3 * 6, "intervals are not drawn")
check('class="error"' not in open(out + "/older.html").read(), "an older report has intervals drawn")
check("of an axis, drawn there" in open(out + "/hostile.html").read(), "nothing is said to lie outside of an axis")

report = json.load(open(out + "/recorded.json"))
lines = list(csv.reader(open(out + "/recorded.csv", newline="")))
samples = sum(len(run.get("samples_s", [])) for row in report["benchmarks"] for run in row["runs"])
check(len(lines) == 1 + samples, f"recorded.csv has {len(lines)} lines for {samples} samples")
check({len(line) for line in lines} == {len(lines[0])}, "lines of recorded.csv differ in their number of columns")
check({line[lines[0].index("device")] for line in lines[1:]} == {"1", "2"}, "recorded.csv has not both devices")
sys.exit(failures != 0)
EOF
$python $out/check.py $out || fail "a check of pages, figures or CSV failed"

# A report that is none is refused.
for text in "{" "[]" "{\"a\": \"\\u0000\"}" '{"benchmarks": 1}' '{"benchmarks": [], "vernier": {}}' '{"a": "x'; do
    printf '%s' "$text" > $out/none.json
    ./vernier gap --from $out/none.json > $out/none.txt 2>&1
    [ $? = 2 ] || fail "vernier gap --from a file with $text: not refused"
    grep -q "none.json" $out/none.txt || fail "vernier gap --from a file with $text: said $(cat $out/none.txt)"
done
./vernier gap --from "$recorded" --svg $out/recorded.csv > $out/none.txt 2>&1 && fail "a file was taken for a folder"
grep -q 'cannot be' $out/none.txt || fail "--svg with a file said: $(cat $out/none.txt)"

# The schema.
schema=$srcdir/doc/report.schema.json
python=$(python_with jsonschema)
if [ "$python" ]; then
    $python - "$schema" "$recorded" $out/hostile.json <<'EOF' || fail "the schema and the recorded report disagree"
import json, jsonschema, sys
schema, report, hostile = (json.load(open(path)) for path in sys.argv[1:])
validator = jsonschema.validators.validator_for(schema)
validator.check_schema(schema)
validator(schema).validate(report)
if validator(schema).is_valid(hostile):
    sys.exit("a report with a row whose name is no text is valid")
del report["benchmarks"][0]["samples_s"]
if validator(schema).is_valid(report):
    sys.exit("a report whose row has no samples is valid")
EOF
else
    echo "skipped: the schema, since there is no python3-jsonschema"
fi

# The plot from the CSV alone has the groups, the medians and the numbers of rows that the summary figures have.
[ "$(wc -l < "$srcdir/doc/summary.py")" -le 60 ] || fail "doc/summary.py has more than 60 lines"
python=$(python_with matplotlib)
if [ "$python" ]; then
    $python - "$srcdir/doc/summary.py" $out <<'EOF' || fail "doc/summary.py does not reproduce the summary figures"
import os, re, runpy, statistics, sys
script, out = sys.argv[1:]
sys.argv = [script, out + "/recorded.csv", out + "/plot.svg"]
panels = runpy.run_path(script)["panels"]
failures = 0
for panel, file in ("Toolchain gap", "toolchain"), ("Library gap", "library"), ("Share of the roof", "roof"):
    text = re.findall(r">([^<>]+)</text>", open(f"{out}/recorded/summary-{file}.svg").read())
    drawn = [(text[i], text[i + 1], text[i + 3].split()[0]) for i in range(len(text) - 3)
             if re.fullmatch(r"\d+ rows?(, .*)?", text[i + 3])]
    plotted = [(re.sub(r" \(.*", "", name), f"{statistics.median(values):.2f}", str(len(values)))
               for name, values in panels[panel].items() if any(values)]
    if sorted(drawn) != sorted(plotted) or not drawn:
        failures += 1
        print(panel, "drawn:", sorted(drawn), "plotted:", sorted(plotted))
sys.exit(failures != 0 or not os.path.getsize(out + "/plot.svg"))
EOF
else
    echo "skipped: the plot from the CSV, since there is no python3-matplotlib"
fi

echo "$failures failures"
[ $failures = 0 ]
