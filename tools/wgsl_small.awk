# SPDX-License-Identifier: Apache-2.0
# wgsl_small.awk - a shader as few lines of C without comments, line ends and spaces that no token
# needs: for modules that are downloaded. Line numbers in messages are lost.
#
# A space stays between two words and between two signs, which it may hold apart (a - -b, f32> =):
# it goes beside a bracket, comma or semicolon, and between a word and a sign.
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
    while (match($0, / [(){},;]|[(){},;] |[A-Za-z0-9_\]] [^A-Za-z0-9_ ]|[^A-Za-z0-9_ ] [A-Za-z0-9_]/)) {
        part = substr($0, RSTART, RLENGTH)
        gsub(/ /, "", part)
        $0 = substr($0, 1, RSTART - 1) part substr($0, RSTART + RLENGTH)
    }
    if ($0 == "") next
    if (length(text) + length($0) > limit) out()
    text = text (text == "" || text ~ /[(){},;]$/ || /^[(){},;]/ ? "" : " ") $0
}
END { if (text != "") out(); print "NULL," }
