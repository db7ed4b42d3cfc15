#!/bin/bash
# The library as `make install` leaves it: examples in C, C++ and Python build and run against it, its exported names are
# those of tests/golden/data/exports.txt, manual pages and completions are sound, and `make uninstall` leaves nothing.
# shellcheck disable=SC2317 # functions are called by `check`
set -u
# shellcheck source=tests/cli/lib.bash
. tests/cli/lib.bash

if [ "$TEST_VARIANT" != release ]; then
    echo "skip library: only the release build is installed"
    exit 0
fi
cc=${CC:-cc} cxx=${CXX:-c++}
dest=$TEST_TMP/dest prefix=/opt/allocrig
root=$dest$prefix
check installs flock .build make -s install DESTDIR="$dest" PREFIX=$prefix >"$out" 2>&1
[ -e "$root/lib/liballocrig.so.0" ] || { cat "$out" && finish; }
tail -n 1 "$out"

# ---- what is exported

names() { nm -D --defined-only "$root/lib/liballocrig.so" | awk '{ print $3 }' | sort; }
same_exports() {
    diff -u tests/golden/data/exports.txt <(names) && return
    echo "the exported names have changed; a removed one breaks programs. If that is meant: make library &&" \
        "nm -D --defined-only .build/release/liballocrig.so | awk '{ print \$3 }' | sort > tests/golden/data/exports.txt"
    return 1
}
only_prefixed() { ! names | grep -v '^ar_'; }
static_is_the_same() {
    diff <(names) <(nm --defined-only -g "$root/lib/liballocrig.a" | awk 'NF == 3 { print $3 }' | sort)
}
declared() { # all that is exported stands in an installed header
    local missing=0
    while read -r name; do
        grep -rqw "$name" "$root/include/allocrig" || { echo "$name is in no header" && missing=1; }
    done < <(names)
    return "$missing"
}
program_shows_the_same() { # policies in shared objects use these names of the program, too
    comm -23 <(grep -v '^ar_\(library\|register\|workload\|experiment\|results\|row\|capacit\|advice\|session\|metric\|version\|free\|policy_at\|device_kind_at\)' \
        tests/golden/data/exports.txt) <(nm -D --defined-only "$root/bin/allocrig" | awk '{ print $3 }' | sort) | (! grep .)
}
check exports_are_the_golden_ones same_exports
check exports_have_the_prefix only_prefixed
check the_archive_has_the_same_names static_is_the_same
check exports_are_declared declared
check the_program_shows_what_policies_use program_shows_the_same
check soname_is_versioned bash -c "readelf -d '$root/lib/liballocrig.so' | grep -q 'SONAME.*\[liballocrig.so.0\]'"

# ---- programs

flags=(-I"$root/include/allocrig" -L"$root/lib" -lallocrig)
if command -v pkg-config >/dev/null; then
    pc() { PKG_CONFIG_SYSROOT_DIR=$dest PKG_CONFIG_PATH=$root/lib/pkgconfig pkg-config "$@" allocrig; }
    check pkg_config_has_flags [ "$(pc --cflags --libs | tr -s ' ' | sed 's/ $//')" = "${flags[*]}" ]
    read -ra private < <(pc --static --libs | sed 's/.*-lallocrig//')
else
    echo "skip pkg_config: it is not installed"
    read -ra private < <(sed -n 's/^Libs.private: //p' "$root/lib/pkgconfig/allocrig.pc")
fi
examples=bench/library/examples
warn=(-Wall -Wextra -Wpedantic -Werror)
expected=$TEST_TMP/expected
"$ALLOCRIG" run -d sim -p growth -p vmm -w order_flip --json "$TEST_TMP/run.json" >/dev/null
awk '/"spec":/ && ++specs % 3 == 1 { gsub(/[",]/, ""); policy = $2 }
    /"peak_physical_bytes"/ { gsub(/,/, ""); print policy, $2, "passed" }' "$TEST_TMP/run.json" >"$expected"
ran_alike() { # COMMAND...: its lines are those of the program
    LD_LIBRARY_PATH=$root/lib "$@" order_flip growth vmm >"$out" 2>"$err" && diff "$expected" "$out"
}
check c_builds "$cc" -std=c11 "${warn[@]}" $examples/peaks.c "${flags[@]}" -o "$TEST_TMP/peaks"
check c_runs ran_alike "$TEST_TMP/peaks"
check c_builds_statically "$cc" -std=c11 "${warn[@]}" $examples/peaks.c -I"$root/include/allocrig" \
    "$root/lib/liballocrig.a" "${private[@]}" -o "$TEST_TMP/peaks_static"
check c_runs_statically ran_alike "$TEST_TMP/peaks_static"
told() { ! LD_LIBRARY_PATH=$root/lib "$TEST_TMP/peaks" order_flip growht >"$out" 2>"$err" && grep -q 'did you mean "growth"' "$err"; }
check c_is_told_what_is_wrong told
if command -v "$cxx" >/dev/null; then
    check cxx_builds "$cxx" -std=c++17 "${warn[@]}" $examples/by_hand.cc "${flags[@]}" -o "$TEST_TMP/by_hand"
    by_hand() { LD_LIBRARY_PATH=$root/lib "$TEST_TMP/by_hand" growth >"$out" && grep -q '^live 37748736 reserved [0-9]*$' "$out"; }
    check cxx_runs by_hand
    each_header() {
        local bad=0
        while read -r header; do
            echo "#include \"$header\"" >"$TEST_TMP/one.cc"
            "$cxx" -std=c++17 "${warn[@]}" -fsyntax-only -I"$root/include/allocrig" "$TEST_TMP/one.cc" || bad=1
            { cat "$TEST_TMP/one.cc" && echo "int defined_here;"; } >"$TEST_TMP/one.c"
            "$cc" -std=c11 "${warn[@]}" -fsyntax-only -I"$root/include/allocrig" "$TEST_TMP/one.c" || bad=1
        done < <(cd "$root/include/allocrig" && find . -name '*.h' | sed 's,^\./,,')
        return "$bad"
    }
    check each_header_stands_alone_in_c_and_cxx each_header
else
    echo "skip cxx: no C++ compiler"
fi
{ echo '#include <getopt.h>' && cat allocators/skeleton/skeleton.c; } >"$TEST_TMP/mine.c"
check a_policy_may_include_getopt "$cc" -std=c11 -D_GNU_SOURCE "${warn[@]}" -shared -fPIC -I"$root/include/allocrig" \
    "$TEST_TMP/mine.c" -o "$TEST_TMP/mine.so"
with_so() { LD_LIBRARY_PATH=$root/lib "$TEST_TMP/peaks" order_flip "checked+$TEST_TMP/mine.so" >"$out" && grep -q passed "$out"; }
check the_library_loads_policies with_so

# ---- Python

python=${PYTHON:-python3}
if command -v "$python" >/dev/null; then
    export PYTHONDONTWRITEBYTECODE=1
    ran_python() { ALLOCRIG_LIBRARY=$root/lib/liballocrig.so.0 PYTHONPATH=bench/library/python ran_alike "$python" "$@"; }
    check python_runs ran_python -c "
import sys; sys.modules['pandas'] = None; sys.argv = ['frame.py'] + sys.argv[1:]
exec(open('$examples/frame.py').read())"
    check python_answers env ALLOCRIG_PROGRAM="$ALLOCRIG" ALLOCRIG_LIBRARY="$root/lib/liballocrig.so.0" PYTHONPATH=bench/library/python \
        "$python" tests/cli/library.py "$TEST_TMP/run.json"
    check pytorch_and_cupy_are_switched env PYTHONPATH=bench/library/python:tests/cli "$python" tests/cli/library_torch.py
    if "$python" -m pip --version >/dev/null 2>&1; then
        wheel() {
            ALLOCRIG_BUILD=$PWD/.build/release "$python" -m pip wheel --no-deps --no-index -q -w "$TEST_TMP/wheel" \
                bench/library/python && ls "$TEST_TMP"/wheel/allocrig-*.whl
        }
        installed() {
            "$python" -m pip install --no-deps --no-index -q --target "$TEST_TMP/site" "$TEST_TMP"/wheel/allocrig-*.whl &&
                (cd "$TEST_TMP" && PYTHONPATH=$TEST_TMP/site "$python" -c "
import allocrig, allocrig._library
assert allocrig._library.Library().path.startswith('$TEST_TMP/site/'), allocrig._library.Library().path
assert allocrig.run('growth', 'order_flip')[0]['passed']")
        }
        check pip_makes_a_wheel wheel
        check the_wheel_holds_the_library installed
        of_the_wheel() { # the command, which finds its tracer
            (cd "$TEST_TMP" && PYTHONPATH=$TEST_TMP/site "$python" site/bin/allocrig trace -- true) 2>"$err"
            [ $? = 3 ] && grep -q 'true imported neither torch nor jax' "$err" && [ -e "$TEST_TMP/site/allocrig/share/allocrig/tracer/start/sitecustomize.py" ]
        }
        check the_wheel_has_the_command of_the_wheel
    else
        echo "skip pip: it is not installed"
    fi
else
    echo "skip python: it is not installed"
fi

# ---- manual pages and completions

man1=$root/share/man/man1/allocrig.1 man5=$root/share/man/man5/allocrig-trace.5
lint_page() {
    if command -v mandoc >/dev/null; then
        mandoc -T lint -W error "$1"
    elif command -v groff >/dev/null; then
        groff -man -Tutf8 -ww -z -K utf8 "$1" 2>&1 | (! grep .)
    fi
}
command -v mandoc >/dev/null || command -v groff >/dev/null || echo "skip manual_pages_lint: neither mandoc nor groff"
check manual_page_is_sound lint_page "$man1"
check manual_page_of_the_format_is_sound lint_page "$man5"
whole_manual() {
    local missing=0
    while read -r command; do
        grep -q "^\.SS $command\$" "$man1" || { echo "$command is not in the manual page" && missing=1; }
    done < <("$ALLOCRIG" help | sed -nE 's|^  ([a-z]+) {2,}.*|\1|p' | grep -v '^help$')
    return "$missing"
}
check manual_page_has_all_commands whole_manual
completes() { # WORD EXPECTED COMMAND...: in bash
    local word=$1 expected=$2
    shift 2
    bash -c '. "$1"; word=$2; shift 2; COMP_WORDS=("$@" "$word"); COMP_CWORD=$#; _allocrig; printf "%s\n" "${COMPREPLY[@]}"' \
        bash "$root/share/bash-completion/completions/allocrig" "$word" "$ALLOCRIG" "$@" 2>"$err" | grep -qx -e "$expected"
}
check bash_completes_a_command completes ru run
check bash_completes_a_policy completes gro growth run -p
check bash_completes_a_workload completes order_f order_flip run -w
check bash_completes_a_card completes rtx4 rtx4090 run --card
check bash_completes_an_option completes --pol --policy run
if command -v zsh >/dev/null; then
    check zsh_completion_is_sound zsh -n "$root/share/zsh/site-functions/_allocrig"
else
    echo "skip zsh_completion_is_sound: zsh is not installed"
fi

# ---- the end

check the_tracer_is_installed [ -e "$root/share/allocrig/tracer/start/sitecustomize.py" ]
"$root/bin/allocrig" trace -- true 2>"$err"
check the_installed_program_finds_it grep -q 'true imported neither torch nor jax' "$err"
check uninstalls make -s uninstall DESTDIR="$dest" PREFIX=$prefix
nothing_left() { [ -z "$(find "$dest" ! -type d)" ] && [ ! -e "$root/include" ] && [ ! -e "$root/share" ]; }
check nothing_is_left nothing_left
finish
