# texts.awk - turns text files into one C file: a table of (path, text, length).
function close_entry() { if (NR > 1) printf ",\n      %d },\n", length_of }
BEGIN    { print "/* made by texts.awk: do not edit */\n#include \"core.h\"\n"
           print "const struct vn_text vn__texts[] = {" }
FNR == 1 { close_entry(); printf "    { \"%s\",\n", FILENAME; length_of = 0 }
         { length_of += length($0) + 1; gsub(/\\/, "&&"); gsub(/"/, "\\\""); printf "      \"%s\\n\"\n", $0 }
END      { NR = NR ? NR : 0; close_entry(); print "    { 0, 0, 0 }\n};" }
