# SPDX-License-Identifier: Apache-2.0
# wgsl_small.awk - a shader as few lines of C without comments, line ends and spaces beside brackets
# and commas: for modules that are downloaded. Line numbers in messages are lost.
#
# Only where a bracket, comma or semicolon stands is a space taken away: between others it may hold
# two tokens apart (a - -b, a< b >= c).
BEGIN { limit = 3500 } # C takes literals of 4,095 bytes
function out() {
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    printf "\"%s\\n\",\n", text
    text = ""
}
{
    sub(/\/\/.*/, "")
    gsub(/[ \t]+/, " ")
    sub(/^ /, "")
    sub(/ $/, "")
    while (match($0, / [(){},;]|[(){},;] /)) {
        part = substr($0, RSTART, RLENGTH)
        gsub(/ /, "", part)
        $0 = substr($0, 1, RSTART - 1) part substr($0, RSTART + RLENGTH)
    }
    if ($0 == "") next
    if (length(text) + length($0) > limit) out()
    text = text (text == "" || text ~ /[(){},;]$/ || /^[(){},;]/ ? "" : " ") $0
}
END { if (text != "") out(); print "NULL," }
