#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# html.sh SOURCES FOLDER: the manual as HTML, by mandoc, with a first page that has the figures of results/.
set -eu

sources=$1 out=$2
command -v mandoc > /dev/null || { echo "make html needs mandoc (Debian, Ubuntu: apt-get install mandoc)" >&2; exit 1; }
mkdir -p "$out"

# ---- the pages, each with links to the others --------------------------------------------------------

for page in "$sources"/doc/*.[137]; do
    mandoc -T html -O 'toc,style=style.css,man=%N.%S.html' "$page" > "$out/${page##*/}.html"
done

# A function leads to the page that describes it; a page of another system has no link.
awk -f "$sources/doc/aliases.awk" "$sources"/doc/*.3 | while read -r function page; do
    [ -e "$out/$function.3.html" ] ||
        printf '<!DOCTYPE html>\n<title>%s</title>\n<meta http-equiv="refresh" content="0; url=%s.html#%s"/>\n<a href="%s.html">%s</a>\n' \
            "$function" "$page" "$function" "$page" "$function" > "$out/$function.3.html"
done
for file in "$out"/*.html; do
    for link in $(grep -o 'href="[^"#:/]*\.html' "$file" | sed 's/href="//' | sort -u); do
        [ -e "$out/$link" ] || [ "$link" = index.html ] ||
            sed -i "s|<a class=\"Xr\" href=\"$link\"\([^>]*\)>\([^<]*\)</a>|\2|g" "$file"
    done
    grep -q 'class="head"' "$file" &&
        sed -i 's|<table class="head">|<p class="up"><a href="index.html">Vernier</a></p>\n&|' "$file"
done

cat > "$out/style.css" <<'CSS'
:root { --ink: #1b1f24; --faint: #5d6670; --line: #d5dae0; --soft: #f4f6f8; --band: #e4ecf3;
        --blue: #0072b2; --red: #d55e00; --green: #009e73; --grey: #7b8794; --back: #fff }
@media (prefers-color-scheme: dark) {
    :root { --ink: #e6e9ed; --faint: #a3adb8; --line: #39424c; --soft: #1f252b; --band: #26303a;
            --blue: #56b4e9; --red: #ff8c42; --green: #3ddbb0; --grey: #8d99a6; --back: #14181c } }
html { background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', Roboto,
       'DejaVu Sans', sans-serif }
body { max-width: 58rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }
h1 { font-size: 1.3rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line) } h2 { font-size: 1.05rem }
a { color: var(--blue) } a.permalink { color: inherit; text-decoration: none }
code, pre, .Li, .Pa { font-family: ui-monospace, 'DejaVu Sans Mono', monospace; font-size: .875em }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .8rem; overflow-x: auto }
table.head, table.foot { width: 100%; color: var(--faint); font-size: .8125rem }
td.head-vol, td.foot-date { text-align: center } td.head-rtitle, td.foot-os { text-align: right }
table { border-collapse: collapse } table.Nm td { padding-right: .5rem } .scroll { overflow-x: auto }
table.Bl-column td, .figures td, .figures th { padding: .2rem .7rem .2rem 0; vertical-align: top; text-align: left }
.figures { font-size: .875rem } .figures td, .figures th { border-bottom: 1px solid var(--line) }
dt { margin-top: .5rem } dd { margin-left: 2rem } .Bl-compact > dt { margin-top: 0 }
.Bd-indent { margin-left: 2rem } .Nd { display: inline } .up, .note { color: var(--faint); font-size: .875rem }
nav.index li { margin: .2rem 0 }
svg { display: block; font: 12px system-ui, -apple-system, 'DejaVu Sans', sans-serif; fill: var(--ink) }
svg.plot { width: 100%; min-width: 40rem; height: auto } svg .mono { font: 11px ui-monospace, 'DejaVu Sans Mono', monospace }
svg .faint { fill: var(--faint) } svg .axis { stroke: var(--grey); fill: none } svg .grid { stroke: var(--line); fill: none }
svg .band { fill: var(--band) } svg .end { text-anchor: end } svg .middle { text-anchor: middle }
svg .blue { fill: var(--blue) } svg .red { fill: var(--red) } svg .green { fill: var(--green) } svg .grey { fill: var(--grey) }
svg .blue-line { stroke: var(--blue); fill: none; stroke-width: 2 }
svg .red-line { stroke: var(--red); fill: none; stroke-width: 2; stroke-dasharray: 6 4 }
svg .mark { fill-opacity: .75; stroke: var(--back); stroke-width: .75 }
svg .hollow { fill: none; stroke: var(--red); stroke-width: 1.5 }
CSS

# ---- the first page -----------------------------------------------------------------------------------

# What follows a heading of README.md, up to the next, as HTML: paragraphs, lists, code and tables.
section()       # HEADING
{
    awk -v heading="## $1" '
        function inline(s,   n, at, bits) {
            gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s)
            while (match(s, /\[[^]]*\]\([^)]*\)/)) {
                bits = substr(s, RSTART + 1, RLENGTH - 2); at = index(bits, "](")
                s = substr(s, 1, RSTART - 1) "<a href=\"" substr(bits, at + 2) "\">" substr(bits, 1, at - 1) "</a>" \
                    substr(s, RSTART + RLENGTH)
            }
            while (match(s, /\*\*[^*]*\*\*/))
                s = substr(s, 1, RSTART - 1) "<b>" substr(s, RSTART + 2, RLENGTH - 4) "</b>" substr(s, RSTART + RLENGTH)
            while (match(s, /`[^`]*`/))
                s = substr(s, 1, RSTART - 1) "<code>" substr(s, RSTART + 1, RLENGTH - 2) "</code>" substr(s, RSTART + RLENGTH)
            return s
        }
        function close_block() { if (block != "") print (block == "table" ? "</table></div>" : "</" block ">"); block = "" }
        function flush_text()  { if (text != "") print inline(text); text = "" }
        /^## / { flush_text(); if (on) close_block(); on = $0 == heading; next }
        !on    { next }
        /^\|[-|: ]*$/ { next }
        /^\|/  { flush_text(); cell = block == "table" ? "td" : "th"
                 if (block != "table") { close_block(); block = "table"; print "<div class=\"scroll\"><table class=\"figures\">" }
                 n = split($0, part, /\|/); row = ""
                 for (i = 2; i < n; i++) row = row "<" cell ">" inline(part[i]) "</" cell ">"
                 print "<tr>" row "</tr>"; next }
        /^    / { flush_text(); if (block != "pre") { close_block(); block = "pre"; printf "<pre>" }
                 s = substr($0, 5); gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); print s; next }
        /^- /  { flush_text(); if (block != "ul") { close_block(); block = "ul"; print "<ul>" }
                 sub(/^- /, ""); printf "<li>"; text = $0; next }
        /^$/   { flush_text(); close_block(); next }
               { if (block == "" ) { block = "p"; print "<p>" } text = text (text == "" ? "" : "\n") $0 }
        END    { flush_text(); if (on) close_block() }' "$sources/README.md"
}

# A chart that `vernier gap --svg` wrote, with its own style.
figure()        # FILE
{
    grep -v '^<?xml' "$1"
}

{
    echo '<!DOCTYPE html>'
    echo '<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>'
    echo '<title>Vernier</title><link rel="stylesheet" href="style.css"/></head><body>'
    echo '<h1>Vernier</h1>'
    awk '/^# / { on = 1; next } /^- / { exit } on' "$sources/README.md" | awk 'BEGIN { print "<p>" } { print } END { print "</p>" }'
    echo '<h1>Manual</h1><nav class="index"><ul>'
    for page in vernier.1 vernier.3 vernier_queues.3 vernier_tensors.3 vn_attention.3 vn_conv.3 vn_cross_entropy.3 \
                vernier_opencl.3 vernier_cuda.3 vernier_cblas.3 vernier.7; do
        printf '<li><a href="%s.html">%s(%s)</a>: %s</li>\n' "$page" "${page%.*}" "${page##*.}" \
            "$(sed -n 's/^\.Nd //p' "$sources/doc/$page")"
    done
    echo '</ul></nav>'
    printf '<p class="note">Functions: '
    awk -f "$sources/doc/aliases.awk" "$sources"/doc/*.3 | sort -u | awk '{ printf "%s<a href=\"%s.3.html\">%s</a>", sep, $1, $1; sep = ", " }'
    echo '.</p>'
    if [ -d "$sources/results" ]; then
        mkdir -p "$out/results"
        cp -r "$sources"/results/. "$out/results"
        report=$sources/results/h100/report.html
        echo '<h1>One kernel through OpenCL and CUDA</h1>'
        printf '<p>The time through OpenCL over that through CUDA of the same kernel text, on one GPU (%s). <a href="results/h100/report.html">The whole report</a> has every row.</p>\n' \
            "$(sed -n 's|.*<h1>\(.*\)</h1>.*|\1|p' "$report" | head -n 1)"
        echo '<div class="scroll">'; figure "${report%/*}/toolchain-gap.svg"; echo '</div>'
        echo '<h1>Against the device</h1><div class="scroll">'; figure "${report%/*}/roofline.svg"; echo '</div>'
        echo '<h1>What is fast where</h1>'
        section 'What is fast where'
    fi
    echo '<h1>Try it</h1>'
    section 'Try it'
    echo '</body></html>'
} > "$out/index.html"
echo "$out/index.html"
