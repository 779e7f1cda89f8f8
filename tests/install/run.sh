#!/usr/bin/env bash
# Installs a build into a folder of its own, then builds and runs examples/cpp against what was installed, as a C++ user does.
# usage: run.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source_folder=$1 build_folder=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build_folder" --prefix "$scratch/prefix" >/dev/null
"$scratch/prefix/bin/stoker" --version
python3 "$source_folder/tests/install/headers.py" "$source_folder" "$scratch/prefix"

# The example is copied away, so that nothing of the source tree can be found by accident.
cp -r "$source_folder/examples/cpp" "$scratch/example"
cmake -G Ninja -S "$scratch/example" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_BUILD_TYPE=Debug >/dev/null
cmake --build "$scratch/build"

# 6 pictures in 2 classes: 48 x 40 PNG, stored deflate blocks, written with nothing but the standard library.
python3 - "$scratch/photos" <<'PY'
import os, struct, sys, zlib
def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
for i in range(6):
    folder = os.path.join(sys.argv[1], ["cat", "dog"][i % 2])
    os.makedirs(folder, exist_ok=True)
    rows = b"".join(b"\0" + bytes((i * 40 + x + y) % 256 for x in range(48) for _ in range(3)) for y in range(40))
    with open(os.path.join(folder, f"{i}.png"), "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 48, 40, 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY

output=$(XDG_CACHE_HOME=$scratch/cache "$scratch/build/feed" "$scratch/photos")
printf '%s\n' "$output"
steps=$(grep -c '^step: [42] images of 32 x 32, first label [01]$' <<<"$output")
[ "$steps" -eq 4 ] || { echo "expected 4 steps (2 epochs of 4 + 2 images), saw $steps"; exit 1; }
[ "$(tail -n 1 <<<"$output")" = "12 samples" ] || { echo "expected \`12 samples\` at the end"; exit 1; }

# Bad use ends with a sentence and its own exit code, not with a crash.
status=0
"$scratch/build/feed" "$scratch/nowhere" 2>"$scratch/error" || status=$?
if [ "$status" -ne 1 ] || ! grep -q nowhere "$scratch/error"; then
  echo "a missing folder must exit 1 and be named"
  cat "$scratch/error"
  exit 1
fi
