#!/bin/bash
# The top level holds what the README says and nothing else, but for a policy that is being written there
# (allocators/README.md, step 1), which git ignores.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

allowed=" Makefile allocators workloads bench sim tests results plots README.md LICENSE CHANGELOG.md CITATION.cff
 CONTRIBUTING.md allocrig .build .ci .clang-format .clang-tidy .editorconfig .git .gitattributes .github .gitignore "
mapfile -t names < <(ls -A)
findings=$(for name in "${names[@]}"; do
    case "${allowed//$'\n'/ }" in
    *" $name "*) ;;
    *) [[ $name = *.c || $name = *.so ]] || echo "$name: does not belong at the top level" ;;
    esac
done)
lint_verdict top_level ${#names[@]} "$findings"
