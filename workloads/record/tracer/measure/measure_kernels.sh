#!/bin/bash
# Measures all families at once, some processes each, then the workspaces of cuBLAS by its settings.
#   measure_kernels.sh OUT [SECONDS [FAMILY:PARTS[:REGEX]]...]
# Writes OUT/kernels.tsv.gz, OUT/errors.tsv, OUT/settings.tsv.gz, OUT/log.
set -u
here=$(dirname "$0") out=$1 seconds=${2:-90} work=$(mktemp -d)
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- blas:1 index:2 reduce:1 norm:1 attention:3 optim:1 image:1 data:1 linalg:1 \
    random:3
jobs=()
for job; do
    IFS=: read -r family parts only <<<"$job"
    for ((part = 0; part < parts; part++)); do
        timeout $((seconds + 30)) python3 -W ignore "$here/measure_kernels.py" \
            -o "$work/$family-$part" --families "$family" --part "$part/$parts" --only "$only" \
            --seed "${SEED:-18}" --seconds "$seconds" >"$work/$family-$part.log" 2>&1 &
        jobs+=($!)
    done
done
setting() { # NAME VARIABLE=VALUE: the same few products under a setting
    timeout 60 env "$2" python3 -W ignore "$here/measure_kernels.py" -o "$work/set-$1" \
        --families blas --only "$few" --seconds 20 >"$work/set-$1.log" 2>&1
    sed "1d;s|^|$2\t|" "$work/set-$1/kernels.tsv" >>"$work/settings.tsv"
}
few='^(mm|linear|bmm|side_stream|scaled_mm)\((bf16|f8)\[(128|2,64)'
if [ -z "${NO_SETTINGS:-}" ]; then
    setting default NOTHING=1
    setting config CUBLAS_WORKSPACE_CONFIG=:4096:8
    setting config16 CUBLAS_WORKSPACE_CONFIG=:16:8
    setting lt CUBLASLT_WORKSPACE_SIZE=8192
    setting apart TORCH_CUBLASLT_UNIFIED_WORKSPACE=0
    setting unified TORCH_CUBLASLT_UNIFIED_WORKSPACE=1
    gzip -9c "$work/settings.tsv" >"$out/settings.tsv.gz"
fi
wait "${jobs[@]}"
{
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
    tail -qn 3 "$work"/*.log
} >"$out/log"
printf 'operator\trun\tthread\targuments\toutputs\tsequence\tcase\n' >"$work/all.tsv"
for folder in "$work"/*-[0-9]*/; do
    sed 1d "$folder/kernels.tsv" >>"$work/all.tsv"
    cat "$folder/errors.tsv" >>"$out/errors.tsv"
done
gzip -9c "$work/all.tsv" >"$out/kernels.tsv.gz"
