# SPDX-License-Identifier: Apache-2.0
# aliases.awk PAGE.3...: each function of a synopsis, and the page that it is in, a line each; but for
# those that have a page of their own name.
BEGIN                         { for (i = 1; i < ARGC; i++) { page = ARGV[i]; sub(/.*\//, "", page); own[page] = 1 } }
FNR == 1                      { page = FILENAME; sub(/.*\//, "", page); on = 0 }
/^\.Sh /                      { on = $2 == "SYNOPSIS" }
on && /^\.Fn vn_[a-z0-9_]+ / && !($2 ".3" in own) { print $2, page }
