#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# example.sh [BUILD]: installs into a temporary folder and checks what a distribution and a stranger
# rely on: names, versions and the soname, manual pages, completions, the header in every C and C++,
# that uninstall takes away what install put there; and the examples, built with the header and
# pkg-config alone (shared and static) and run.
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
equal "version of the program" "tinygpt $version" "$("$prefix/bin/tinygpt" --version | head -1)"
equal "version of the header" "$version" \
    "$(sed -n 's/.*TG_VERSION_TEXT *"\(.*\)".*/\1/p' "$prefix/include/tinygpt.h")"
soname=libtinygpt.so.${version%.*} # while it is 0.x
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
printf '#include <tinygpt.h>\nint main(void) { return tg_status_text(TG_OK) == 0; }\n' >header.c
cp header.c header.cc
for standard in c99 c11 c17; do
    check "the header as $standard" bash -c \
        "$cc -std=$standard -Wall -Wextra -Wpedantic -Werror header.c $(pkg-config --cflags --libs tinygpt) -o header"
    check "which runs" env LD_LIBRARY_PATH="$prefix/lib" ./header
done
for standard in c++98 c++11 c++17 c++20; do
    check "the header as $standard" bash -c \
        "clang++-19 -nostdlib++ -std=$standard -Wall -Wextra -Wpedantic -Werror header.cc $(pkg-config --cflags --libs tinygpt) -o header"
    check "which runs" env LD_LIBRARY_PATH="$prefix/lib" ./header
done

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

# The other examples run on models that the set-up fetches.
models=$top/.cache/models
for example in train chat embed batch; do
    lines=$(python3 -c 'import re, sys
code = re.sub(r"/\*.*?\*/", "", open(sys.argv[1], encoding="utf-8").read(), flags=re.S)
print(sum(1 for line in code.split("\n") if line.strip()))' "$top/examples/$example.c")
    check "$example.c is under 40 lines, without comments: $lines" test "$lines" -lt 40
done
for example in chat embed batch; do
    check "build $example.c" bash -c \
        "${compile/train.c/$top/examples/$example.c} $(pkg-config --libs tinygpt) -o $example"
    LD_LIBRARY_PATH=$prefix/lib ./$example >usage.txt 2>&1
    equal "$example: exit code without a model" 2 $?
    LD_LIBRARY_PATH=$prefix/lib timeout 60 ./$example none.gguf >usage.txt 2>&1 </dev/null
    check "$example: a missing model is an error" test $? -ne 0
done
check "chat answers" bash -c "echo 'Say hello.' | LD_LIBRARY_PATH=$prefix/lib timeout 120 ./chat \
    $models/SmolLM2-135M-Instruct.Q4_1.gguf | grep -q '[a-z][a-z]'"
check "embed compares" bash -c "LD_LIBRARY_PATH=$prefix/lib ./embed $models/minilm.zip \
    'a cat on the mat' 'a kitten on a rug' 'stock markets fell' >cosines.txt"
check "itself, what is near, what is far" awk 'NR == 1 && $1 < 0.999 { bad = 1 }
    NR == 2 && $1 < 0.5 { bad = 1 } NR == 3 && $1 > 0.3 { bad = 1 }
    END { exit bad || NR != 3 }' cosines.txt

# Stripped, and with a manual page for each command that says what its help says.
for file in bin/tinygpt "lib/libtinygpt.so.$version"; do
    equal "debugging sections of $file" "" \
        "$(readelf -SW "$prefix/$file" | grep -o '\.debug_[a-z]*\|\.symtab')"
done
commands=$("$prefix/bin/tinygpt" --help | sed -n 's/^  \([a-z]*\) .*/\1/p' | grep -v tinygpt)
check "there are commands" test "$(wc -w <<<"$commands")" -ge 15
shown_options() { "$prefix/bin/tinygpt" "$@" --help | sed -n 's/^  \(--[-a-z0-9]*\).*/\1/p'; }
for command in "" $commands; do
    page=$prefix/share/man/man1/tinygpt${command:+-}$command.1
    equal "warnings about the page of tinygpt $command" "" "$(groff -man -Tutf8 -ww -z "$page" 2>&1)"
    MANWIDTH=200 man -l "$page" 2>man.err | col -bx >page.txt
    check "the page of $command has a name" grep -q "^ *tinygpt${command:+-}$command - [a-z]" page.txt
    [ -n "$command" ] || continue
    equal "tinygpt help $command" "$("$prefix/bin/tinygpt" "$command" --help)" \
        "$("$prefix/bin/tinygpt" help "$command")"
    for option in $(shown_options "$command"); do
        check "the page of $command has $option" grep -qe "^ *$option\b" page.txt
    done
done
MANWIDTH=200 man -l "$prefix/share/man/man1/tinygpt-bench.1" 2>man.err | col -bx >page.txt
check "the page of bench has those of its commands" grep -q "TINYGPT BENCH MATMUL" page.txt
check "help of a command's command" bash -c "'$prefix/bin/tinygpt' help bench matmul | grep -qe --preset"

# Options that mean nothing to a command are taken, and not shown.
equal "options that verify's help shows" "--json" "$(shown_options verify)"
check "verify takes --device" "$prefix/bin/tinygpt" verify shared.run/tiny.tinygpt --device cpu
check "train's help shows --device" bash -c "'$prefix/bin/tinygpt' train --help | grep -qe --device"

# Completions, as bash asks for them.
completed() { # words... the last one is being written
    bash -c '
        source "$0"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _tinygpt
        printf "%s\n" "${COMPREPLY[@]}" | LC_ALL=C sort | xargs' \
        "$prefix/share/bash-completion/completions/tinygpt" "$@"
}
in_order() { tr ' ' '\n' <<<"$*" | LC_ALL=C sort | xargs; }
equal "completed: tra" "train" "$(completed tinygpt tra)"
equal "completed: all commands" "$(in_order --version help $commands)" "$(completed tinygpt "")"
equal "completed: help emb" "embed" "$(completed tinygpt help emb)"
equal "completed: train --sched" "--schedule" "$(completed tinygpt train --sched)"
equal "completed: the words of an option" "constant cosine wsd" \
    "$(completed tinygpt train --schedule "")"
equal "completed: the words behind a sign" "cosine" "$(completed tinygpt train --schedule = cos)"
equal "completed: a number" "" "$(completed tinygpt train --steps "")"
equal "completed: a file" "text.txt" "$(completed tinygpt train --data tex)"
equal "completed: a model" "text.txt" "$(completed tinygpt info tex)"
equal "completed: a command's commands" "decode fusion levers matmul prefill profile tiles train" \
    "$(completed tinygpt bench "")"
equal "completed: their options" "--preset" "$(completed tinygpt bench matmul --pre)"
equal "completed: shells" "bash fish zsh" "$(completed tinygpt completion "")"
equal "completed: only options that apply" "" "$(completed tinygpt verify --dev)"
for command in $commands; do
    case $command in bench | corpus) continue ;; esac
    equal "completed: all options of $command" "$(in_order --help $(shown_options "$command"))" \
        "$(completed tinygpt "$command" --)"
done
for shell in bash zsh fish; do
    check "completions of $shell" bash -c "'$prefix/bin/tinygpt' completion $shell | grep -q schedule"
done
"$prefix/bin/tinygpt" completion csh >/dev/null 2>usage.txt
equal "exit code for another shell" 2 $?

# What was there before stays, and nothing of ours does.
cd "$top" || exit 1
echo other >"$prefix/share/man/man1/tinygpt-other.1"
check "make uninstall" make --no-print-directory -s BUILD="$build" PREFIX="$prefix" uninstall
equal "files that uninstall leaves" "$prefix/share/man/man1/tinygpt-other.1" \
    "$(find "$prefix" ! -type d)"
check "uninstall of a staged install" make --no-print-directory -s BUILD="$build" \
    DESTDIR="$folder/stage" PREFIX=/opt/tg uninstall
equal "files that it leaves" "" "$(find "$folder/stage" ! -type d)"

cd "$top" || exit 1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
