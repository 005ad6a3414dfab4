#!/bin/bash
# example.sh [BUILD]: installs into a temporary folder, builds examples/train.c against what was
# installed (shared and static, by its pkg-config file), runs it on a small text, and checks the
# names and versions that a distribution relies on.
set -u
cd "$(dirname "$0")/../.."
top=$PWD
build=${1:-build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/usr
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
cc=${CC:-cc}
passed=0
failed=0

check() { # what command...
    local what=$1
    shift
    if "$@" >"$folder/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what: $*"
        tail -5 "$folder/log" | sed 's/^/     | /'
    fi
}

equal() { # what wanted found
    check "$1: want \"$2\", have \"$3\"" test "$2" = "$3"
}

needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
steps() { sed -n 's/^\(step .* loss [0-9.]*\) .*/\1/p' "$1"; } # without the speed
foreign() { nm -D --defined-only "$1" | awk '{print $3}' | grep -v '^tg_'; }

check "make install" make --no-print-directory -s BUILD="$build" PREFIX="$prefix" install
for file in bin/tinygpt include/tinygpt.h lib/libtinygpt.{a,so} lib/pkgconfig/tinygpt.pc; do
    check "$file is installed" test -e "$prefix/$file"
done
check "a staged install" make --no-print-directory -s BUILD="$build" DESTDIR="$folder/stage" \
    PREFIX=/opt/tg install
equal "prefix of a staged install" /opt/tg \
    "$(sed -n 's/^prefix=//p' "$folder/stage/opt/tg/lib/pkgconfig/tinygpt.pc")"

# Versions, the soname, and that nothing but tg_ names is offered to a linker.
version=$(pkg-config --modversion tinygpt)
equal "version of the program" "tinygpt $version" "$("$prefix/bin/tinygpt" --version)"
equal "version of the header" "$version" \
    "$(sed -n 's/.*TG_VERSION_TEXT *"\(.*\)".*/\1/p' "$prefix/include/tinygpt.h")"
soname=libtinygpt.so.${version%%.*}
equal soname "$soname" \
    "$(readelf -d "$prefix/lib/libtinygpt.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')"
equal "the link of the soname" "libtinygpt.so.$version" "$(readlink "$prefix/lib/$soname")"
equal "names that the shared library offers beside tg_*" "" "$(foreign "$prefix/lib/libtinygpt.so")"

# The example, as a stranger would build it: with the header and pkg-config alone.
cp examples/train.c "$folder/"
cd "$folder" || exit 1
compile="$cc -std=c11 -Wall -Wextra -Wpedantic -Werror train.c $(pkg-config --cflags tinygpt)"
check "build against the shared library" bash -c "$compile $(pkg-config --libs tinygpt) -o shared"
check "build against the static library" bash -c \
    "$compile -Wl,-Bstatic $(pkg-config --static --libs tinygpt) -Wl,-Bdynamic -o static"
equal "what the shared build needs" "$soname" "$(needed shared | grep tinygpt)"
equal "what the static build needs" "" "$(needed static | grep tinygpt)"
echo '#include <tinygpt.h>' >header.cc
check "the header as C++" bash -c \
    "clang++-19 -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags tinygpt) header.cc"

check "a text" "$prefix/bin/tinygpt" corpus stories --bytes 200k --out text.txt
for kind in shared static; do
    mkdir "$kind.run"
    check "run the $kind build" bash -c \
        "cd $kind.run && LD_LIBRARY_PATH=$prefix/lib ../$kind ../text.txt >out.txt"
    equal "lines of steps" 8 "$(steps $kind.run/out.txt | wc -l)"
    loss=$(sed -n 's/^step  400  loss \([0-9.]*\) .*/\1/p' $kind.run/out.txt)
    check "it learns (last loss $loss)" awk "BEGIN { exit !($loss > 0.2 && $loss < 2.5) }"
    check "it writes text" bash -c "tail -n +9 $kind.run/out.txt | grep -q '[a-z][a-z]'"
    check "its file is whole" "$prefix/bin/tinygpt" verify $kind.run/tiny.tinygpt
done
equal "both builds do the same" "$(steps shared.run/out.txt)" "$(steps static.run/out.txt)"
check "both files are equal" cmp shared.run/tiny.tinygpt static.run/tiny.tinygpt
check "the program reads the example's file" \
    "$prefix/bin/tinygpt" sample shared.run/tiny.tinygpt --tokens 20
LD_LIBRARY_PATH=$prefix/lib ./shared >usage.txt 2>&1
equal "exit code without a text" 2 $?
LD_LIBRARY_PATH=$prefix/lib ./shared none.txt >usage.txt 2>&1
equal "exit code for a missing text" 1 $?
check "the message names the text" grep -q none.txt usage.txt

cd "$top" || exit 1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
