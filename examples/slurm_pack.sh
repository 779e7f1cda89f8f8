#!/bin/bash
# Packs a data set on four nodes of a Slurm cluster: four tasks make the parts, then a job that waits for them joins these.
#
#   sbatch examples/slurm_pack.sh data/train /shared/train.pack
#
# A task that fails or is killed goes on where it stopped: sbatch --array=3-3 --export=ALL,PARTS=4 examples/slurm_pack.sh ...
#SBATCH --job-name=stoker-pack
#SBATCH --array=1-4
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --requeue
set -euo pipefail
source_path=$1 pack=$2
shift 2 # the rest are options of stoker pack

if [ "${JOIN:-}" = 1 ]; then
  exec stoker pack "$source_path" "$pack" "$@" --join
fi
if [ "$SLURM_ARRAY_TASK_ID" = "$SLURM_ARRAY_TASK_MIN" ] && [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
  sbatch --array=1-1 --export=ALL,JOIN=1 --dependency="afterok:$SLURM_ARRAY_JOB_ID" "$0" "$source_path" "$pack" "$@"
fi
exec stoker pack "$source_path" "$pack" "$@" --part "$SLURM_ARRAY_TASK_ID/${PARTS:-$SLURM_ARRAY_TASK_COUNT}"
