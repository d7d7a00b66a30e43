/* SPDX-License-Identifier: Apache-2.0
 *
 * html.c - a page that needs nothing but itself.
 *
 * Colours are of Okabe and Ito's palette, which the colour-blind can tell apart; charts also
 * differ in shape, so that they survive a printer without colour.
 */
#include "html.h"

static const char style[] =
    ":root { --ink: #1b1f24; --faint: #5d6670; --line: #d5dae0; --soft: #f4f6f8; --band: #e4ecf3;\n"
    "        --blue: #0072b2; --red: #d55e00; --green: #009e73; --grey: #7b8794 }\n"
    "* { box-sizing: border-box }\n"
    "html { background: #fff; color: var(--ink); "
    "font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto,\n"
    "       'DejaVu Sans', sans-serif; -webkit-text-size-adjust: 100% }\n"
    "body { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }\n"
    "h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .25rem }\n"
    "h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; padding-bottom: .25rem; border-bottom: 1px solid "
    "var(--line) }\n"
    "h3 { font-size: 1rem; margin: 1.5rem 0 .25rem }\n"
    "p { margin: .5rem 0; max-width: 46rem } li { margin: .25rem 0; max-width: 46rem }\n"
    ".note, .note p { color: var(--faint); font-size: .875rem }\n"
    ".cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(11.5rem, 1fr)); gap: .75rem; "
    "margin: 1.25rem 0 }\n"
    ".card { background: var(--soft); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem "
    "1rem }\n"
    ".card b { display: block; font-size: 1.6rem; line-height: 1.25; font-variant-numeric: tabular-nums }\n"
    ".card span { display: block; font-size: .8125rem; color: var(--faint) }\n"
    ".scroll { overflow-x: auto; margin: .5rem 0 1rem }\n"
    "table { border-collapse: collapse; font-size: .8125rem; font-variant-numeric: tabular-nums }\n"
    "th, td { padding: .25rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid "
    "var(--line) }\n"
    "th { color: var(--faint); font-weight: 600; vertical-align: bottom } "
    "thead th { border-bottom: 2px solid var(--line) }\n"
    ".left { text-align: left } .wrap { white-space: normal; min-width: 18rem }\n"
    "td.slower { color: #a34700; font-weight: 600 } td.faster { color: #005b8f; font-weight: 600 } "
    "td.faint { color: var(--faint) }\n"
    "svg { display: block; font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', "
    "sans-serif; fill: var(--ink) }\n"
    "svg.plot { width: 100%; min-width: 44rem; height: auto } svg .mono { font: 11px ui-monospace, 'DejaVu "
    "Sans Mono', monospace }\n"
    "svg .faint { fill: var(--faint) } svg .axis { stroke: var(--grey); fill: none } "
    "svg .grid { stroke: var(--line); fill: none }\n"
    "svg .band { fill: var(--band) } svg .end { text-anchor: end } svg .middle { text-anchor: middle }\n"
    "svg .blue { fill: var(--blue) } svg .red { fill: var(--red) } svg .green { fill: var(--green) } "
    "svg .grey { fill: var(--grey) }\n"
    "svg .blue-line { stroke: var(--blue); fill: none; stroke-width: 2 }\n"
    "svg .red-line { stroke: var(--red); fill: none; stroke-width: 2; stroke-dasharray: 6 4 }\n"
    "svg .mark { fill-opacity: .75; stroke: #fff; stroke-width: .75 } "
    "svg .hollow { fill: none; stroke: var(--red); stroke-width: 1.5 }\n"
    "@media print { @page { margin: 14mm } html { font-size: 10.5pt } body { max-width: none; padding: 0 }\n"
    "  .scroll { overflow: visible } h2, h3 { break-after: avoid } svg, .card, tr { break-inside: avoid }\n"
    "  table { font-size: 7pt } th, td { padding: .1rem .3rem } svg.plot { min-width: 0 }\n"
    "  * { -webkit-print-color-adjust: exact; print-color-adjust: exact } }\n";

void html_text(FILE *to, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", to);  break;
        case '<': fputs("&lt;", to);   break;
        case '>': fputs("&gt;", to);   break;
        case '"': fputs("&quot;", to); break;
        default:  fputc(*text, to);
        }
}

void html_open(FILE *to, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>", to);
    html_text(to, title);
    fprintf(to, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", style);
}

void html_close(FILE *to)
{
    fputs("</body>\n</html>\n", to);
}

static void element(FILE *to, const char *open, const char *text, const char *close)
{
    fputs(open, to);
    html_text(to, text);
    fputs(close, to);
}

void html_head(FILE *to, const char *title)
{
    element(to, "\n<h2>", title, "</h2>\n");
}

void html_note(FILE *to, const char *text)
{
    element(to, "<p class=\"note\">", text, "</p>\n");
}

/* ---- tables ---- */

static int is_text(const char *title)
{
    return *title == '<';
}

void html_table_open(struct html_table *t, FILE *to, const char *const *titles)
{
    *t = (struct html_table){ to, titles, 0 };
    fputs("<div class=\"scroll\"><table>\n<thead><tr>", to);
    for (; *titles; titles++)
        element(to, is_text(*titles) ? "<th class=\"left\">" : "<th>", *titles + is_text(*titles), "</th>");
    fputs("</tr></thead>\n<tbody>\n", to);
}

void html_shaded_cell(struct html_table *t, const char *shade, const char *text)
{
    fprintf(t->to, "%s<td class=\"%s%s\">", t->at ? "" : "<tr>", is_text(t->titles[t->at]) ? "left " : "",
            shade);
    element(t->to, "", text, "</td>");
    if (!t->titles[++t->at]) {
        fputs("</tr>\n", t->to);
        t->at = 0;
    }
}

void html_cell(struct html_table *t, const char *text)
{
    html_shaded_cell(t, "", text);
}

void html_table_close(struct html_table *t)
{
    fputs("</tbody>\n</table></div>\n", t->to);
}
