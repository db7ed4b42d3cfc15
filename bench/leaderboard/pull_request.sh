#!/bin/bash
# Checks the submissions that were changed since a branch left a commit, makes their rows, and writes comment.md with their ranks among the
# rows of results/published/leaderboard.
# Usage: bench/leaderboard/pull_request.sh BASE [OUT [options of `submit run`..]]; OUT: results/leaderboard
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
cd "$(dirname "$0")/../.."
base=${1:?the commit to compare with} out=${2:-results/leaderboard}
shift $(($# > 1 ? 2 : 1))
mkdir -p "$out"
rows=() failed=0
: >"$out/comment.md"
while read -r name; do
    folder=bench/leaderboard/submissions/$name
    [ -d "$folder" ] || continue
    if ! ./allocrig submit check "$folder" >"$out/check.txt" 2>&1; then
        failed=1
    else
        ./allocrig submit run "$folder" -o "$out/$name.json" "$@"
        rows+=("$out/$name.json")
    fi
    # shellcheck disable=SC2016 # the quotes are those of Markdown
    printf '`%s`\n\n```text\n%s\n```\n\n' "$name" "$(cat "$out/check.txt")" >>"$out/comment.md"
done < <(git diff --name-only "$(git merge-base "$base" HEAD)" -- bench/leaderboard/submissions | cut -d / -f 4 | sort -u)
if [ ${#rows[@]} -gt 0 ]; then
    for row in results/published/leaderboard/*.json; do
        [ -e "$out/$(basename "$row")" ] || rows+=("$row")
    done
    ./allocrig submit page "${rows[@]}" -o "$out/tables.md" 2>"$out/left.txt"
    { cat "$out/tables.md" && sed "s/^/- /" "$out/left.txt"; } >>"$out/comment.md"
fi
[ -s "$out/comment.md" ] || echo "No submission differs from $base." >"$out/comment.md"
exit $failed
