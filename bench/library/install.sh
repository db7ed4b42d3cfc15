#!/bin/bash
# Installs what was built, or removes it again. Usage: bench/library/install.sh install|uninstall BUILD PREFIX VERSION
# Files go to $DESTDIR$PREFIX. The recorder and the plug-in are installed if they are built. LIBS: what a program that
# links the static library needs besides it.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
cd "$(dirname "$0")/../.."
action=$1 build=$2 prefix=$3 version=$4
root=${DESTDIR:-}$prefix
shared=liballocrig.so.$version
short=liballocrig.so.${version%%.*}

# put MODE FILE PLACE, and link TARGET PLACE
put() {
    if [ "$action" = uninstall ]; then
        rm -f "$root/$3"
    else
        install -D -m "$1" "$2" "$root/$3"
    fi
}
link() {
    if [ "$action" = uninstall ]; then
        rm -f "$root/$2"
    else
        ln -sfn "$1" "$root/$2"
    fi
}

made=
if [ "$action" = install ]; then
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    bench/library/manual.sh "$build/allocrig" "$made"
    bench/library/archive.sh "$build/liballocrig.a" "$made/liballocrig.a"
    cat >"$made/allocrig.pc" <<END
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include/allocrig

Name: allocrig
Description: A test rig for GPU memory allocator policies
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lallocrig
Libs.private: ${LIBS:--ljansson -lzstd -lz -lsqlite3 -lm -ldl -lpthread}
END
fi

put 755 "$build/allocrig" bin/allocrig
put 755 "$build/$shared" "lib/$shared"
link "$shared" "lib/$short"
link "$short" lib/liballocrig.so
put 644 "$made/liballocrig.a" lib/liballocrig.a
put 644 "$made/allocrig.pc" lib/pkgconfig/allocrig.pc
put 644 bench/library/allocrig.h include/allocrig/allocrig.h
for header in allocators/{policy,backing,options,spec}.h allocators/base/*.h sim/device.h; do
    put 644 "$header" "include/allocrig/$header"
done
put 644 "$made/allocrig.1" share/man/man1/allocrig.1
put 644 "$made/allocrig-trace.5" share/man/man5/allocrig-trace.5
put 644 bench/library/completion.bash share/bash-completion/completions/allocrig
put 644 bench/library/completion.zsh share/zsh/site-functions/_allocrig
if [ "$action" = uninstall ] || [ -e "$build/liballocrig_record.so" ]; then
    put 755 "$build/liballocrig_record.so" lib/liballocrig_record.so
fi
if [ "$action" = uninstall ] || [ -e "$build/liballocrig_torch.so" ]; then
    put 755 "$build/liballocrig_torch.so" lib/liballocrig_torch.so
    put 644 bench/plugin/allocrig_torch.py lib/allocrig/allocrig_torch.py
fi
for module in bench/library/python/allocrig/*.py; do # for PYTHONPATH=$PREFIX/lib/allocrig, without pip
    put 644 "$module" "lib/allocrig/allocrig/${module##*/}"
done
for file in plots/{style,grid,key,twin}.gp plots/twin.awk; do # of `allocrig twin --figure`
    put 644 "$file" "share/allocrig/$file"
done
put 755 plots/twin.sh share/allocrig/plots/twin.sh
put 755 bench/leaderboard/submit.py share/allocrig/leaderboard/submit.py
put 644 bench/leaderboard/page.html share/allocrig/leaderboard/page.html
while read -r file; do # of `allocrig trace`
    put 644 "$file" "share/allocrig/tracer/${file#workloads/record/tracer/}"
done < <(find workloads/record/tracer/start workloads/record/tracer/allocrig_tracer -type f \( -name '*.py' -o -name '*.tsv' \) 2>/dev/null | LC_ALL=C sort)

if [ "$action" = uninstall ]; then # folders that are empty now, the deepest first
    find "$root"/{include,lib,share}/allocrig -depth -type d -empty -delete 2>/dev/null || true
    for folder in lib/pkgconfig share/man/man1 share/man/man5 share/man share/bash-completion/completions \
        share/bash-completion share/zsh/site-functions share/zsh share bin lib include; do
        rmdir "$root/$folder" 2>/dev/null || true
    done
else
    echo "installed to $root: cc program.c \$(pkg-config --cflags --libs allocrig); a policy in a shared object:" \
        "cc -shared -fPIC -I$prefix/include/allocrig mine.c -o mine.so"
fi
