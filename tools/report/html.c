/* SPDX-License-Identifier: Apache-2.0
 *
 * html.c - a page that needs nothing but itself.
 */
#include "html.h"
#include "svg.h"

static const char style[] =
    ":root { color-scheme: light dark;\n"
    "        --paper: #fff; --ink: #1b1f24; --faint: #5d6670; --line: #d5dae0; --soft: #f4f6f8; --band: "
    "#e4ecf3;\n"
    "        --blue: #0072b2; --red: #d55e00; --green: #009e73; --pink: #b3568c; --grey: #7b8794;\n"
    "        --slower: #a34700; --faster: #005b8f }\n"
    "@media screen and (prefers-color-scheme: dark) { :root {\n"
    "        --paper: #14181d; --ink: #e4e8ec; --faint: #9aa5b1; --line: #333b44; --soft: #1d232a; --band: "
    "#24303b;\n"
    "        --blue: #56b4e9; --red: #f0894d; --green: #2fc295; --pink: #e09bc4; --grey: #8894a1;\n"
    "        --slower: #f0a477; --faster: #7cc7f2 } }\n"
    "* { box-sizing: border-box }\n"
    "html { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, 'Segoe "
    "UI', "
    "Roboto,\n       'DejaVu Sans', sans-serif; -webkit-text-size-adjust: 100% }\n"
    "body { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }\n"
    "h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .25rem; overflow-wrap: anywhere }\n"
    "h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; padding-bottom: .25rem; "
    "border-bottom: 1px solid var(--line) }\n"
    "h3 { font-size: 1rem; margin: 1.25rem 0 .25rem }\n"
    "p { margin: .5rem 0; max-width: 46rem } li { margin: .25rem 0; max-width: 46rem }\n"
    ".note { color: var(--faint); font-size: .875rem }\n"
    ".facts { margin: 1rem 0; font-size: .875rem; display: grid; grid-template-columns: max-content 1fr;\n"
    "         gap: .2rem 1rem } .facts dt { color: var(--faint) } .facts dd { margin: 0; "
    "overflow-wrap: anywhere }\n"
    ".cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(11.5rem, 1fr)); gap: .75rem; "
    "margin: 1.25rem 0 }\n"
    ".card { background: var(--soft); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem "
    "1rem }\n"
    ".card b { display: block; font-size: 1.6rem; line-height: 1.25; font-variant-numeric: tabular-nums }\n"
    ".card span { display: block; font-size: .8125rem; color: var(--faint) }\n"
    "figure { margin: 1rem 0 1.5rem } figcaption { font-size: .875rem; max-width: 46rem; margin-bottom: "
    ".25rem }\n"
    "figcaption b { display: block }\n"
    "details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: 0 .75rem }\n"
    "summary { cursor: pointer; padding: .5rem 0 } summary span { color: var(--faint); font-size: .875rem }\n"
    ".scroll { overflow-x: auto; margin: .5rem 0 1rem }\n"
    "table { border-collapse: collapse; font-size: .8125rem; font-variant-numeric: tabular-nums }\n"
    "th, td { padding: .25rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid "
    "var(--line) }\n"
    "th { color: var(--faint); font-weight: 600; vertical-align: bottom } "
    "thead th { border-bottom: 2px solid var(--line) }\n"
    ".left { text-align: left } .wrap { white-space: normal; min-width: 18rem }\n"
    "td.slower { color: var(--slower); font-weight: 600 } td.faster { color: var(--faster); font-weight: "
    "600 }\n"
    "td.faint { color: var(--faint) } pre { font-size: .75rem; overflow-x: auto; background: var(--soft);\n"
    "  border: 1px solid var(--line); border-radius: .5rem; padding: .75rem }\n"
    "svg.plot { display: block; overflow: visible }\n"
    ".paper { display: none }\n"
    "@media (max-width: 30rem) { .facts { grid-template-columns: 1fr; gap: 0 } .facts dd { margin-bottom: "
    ".4rem }\n"
    "  .cards { grid-template-columns: 1fr 1fr; gap: .5rem } .card { padding: .5rem .75rem }\n"
    "  .card b { font-size: 1.3rem } }\n"
    "@media print { @page { size: A4; margin: 12mm } html { font-size: 9pt } body { max-width: none; "
    "padding: 0 }\n"
    "  h1 { font-size: 14pt } h2 { margin: 1rem 0 .25rem } .cards { margin: .5rem 0; gap: .4rem;\n"
    "  grid-template-columns: repeat(4, 1fr) } .card { padding: .3rem .5rem } .card b { font-size: 12pt }\n"
    "  .scroll { overflow: visible } svg.plot { zoom: .72 } h2, h3, figcaption { break-after: avoid }\n"
    "  figure, .card, tr, pre { break-inside: avoid } figure { margin: .5rem 0 } .paper { display: block }\n"
    "  details { border: 0; margin: 0; padding: 0 } summary { padding: 0 } p, li { max-width: none; "
    "margin: .15rem 0 }\n"
    "  table { font-size: 7pt } th, td { padding: .1rem .3rem }\n"
    "  * { -webkit-print-color-adjust: exact; print-color-adjust: exact } }\n";

/* How many bytes the character at `at` has; 0: it is one that XML has not, or a part of one that was cut. */
static int bytes_of_character(const unsigned char *at)
{
    const int bytes = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;

    for (int i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if (bytes == 1)
        return (*at >= ' ' && *at != 0x7f) || *at == '\n' || *at == '\t';
    if ((*at == 0xc2 && at[1] < 0xa0) || (*at == 0xef && at[1] == 0xbf && at[2] >= 0xbe))
        return 0;
    return bytes;
}

void html_text(FILE *to, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        const int bytes = bytes_of_character(at);

        switch (*at) {
        case '&': fputs("&amp;", to);  break;
        case '<': fputs("&lt;", to);   break;
        case '>': fputs("&gt;", to);   break;
        case '"': fputs("&quot;", to); break;
        default:  fwrite(at, 1, (size_t)bytes, to);
        }
        at += bytes ? bytes : 1;
    }
}

void html_open(FILE *to, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>", to);
    html_text(to, title);
    fprintf(to, "</title>\n<style>\n%s", style);
    svg_style(to, 1);
    fputs("</style>\n</head>\n<body>\n", to);
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

/* ---- folds, facts, cards ---- */

void html_fold_open(FILE *to, const char *title, const char *more)
{
    element(to, "<details>\n<summary>", title, " ");
    element(to, "<span>", more, "</span></summary>\n");
}

void html_fold_close(FILE *to)
{
    fputs("</details>\n", to);
}

void html_facts_open(FILE *to)
{
    fputs("<dl class=\"facts\">\n", to);
}

void html_fact(FILE *to, const char *name, const char *value)
{
    if (!*value)
        return;
    element(to, "<dt>", name, "</dt>");
    element(to, "<dd>", value, "</dd>\n");
}

void html_facts_close(FILE *to)
{
    fputs("</dl>\n", to);
}

void html_cards_open(FILE *to)
{
    fputs("<div class=\"cards\">\n", to);
}

void html_card(FILE *to, const char *what, const char *value, const char *more)
{
    element(to, "<div class=\"card\"><span>", what, "</span>");
    element(to, "<b>", value, "</b>");
    element(to, "<span>", more, "</span></div>\n");
}

void html_cards_close(FILE *to)
{
    fputs("</div>\n", to);
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
