# SPDX-License-Identifier: Apache-2.0
# aliases.awk PAGE.3...: each function of a synopsis, and the page that it is in, a line each.
FNR == 1                      { page = FILENAME; sub(/.*\//, "", page); on = 0 }
/^\.Sh /                      { on = $2 == "SYNOPSIS" }
on && /^\.Fn vn_[a-z0-9_]+ /  { print $2, page }
