#!/bin/bash
# By hand: do the tests catch a broken protocol? Copies the tree, plants one bug after the other into the
# kernels' text, builds the conformance tests of one level and runs them. Every bug must make them fail,
# and the tree without a bug must pass. Takes some minutes; prints one line per bug, ends with 1 if one
# was not caught.
#
#   test/plant/plant.sh [NAME...]     all bugs, or those named; FCCL_PLANT_DIR keeps the copy
set -u -o pipefail
source_tree=$(cd "$(dirname "$0")/../.." && pwd)
work=${FCCL_PLANT_DIR:-$(mktemp -d)}
[ -n "${FCCL_PLANT_DIR:-}" ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree"
jobs=${JOBS:-$(nproc)}

# name | sanitizer | file | text | what stands there instead
bugs() {
  cat <<'END'
plain_store|thread|device/protocol/lamport.h|store_peer(slots_.outgoing(i) + index * kPackBytes, without_sentinel(p));|store_staged(slots_.outgoing(i) + index * kPackBytes, without_sentinel(p));
no_sentinel_replacement||device/protocol/lamport.h|without_sentinel(p));|p);
forgotten_rearm||device/protocol/lamport.h|store_peer(slots_.incoming(q) + index * kPackBytes, sentinel_pack());|if (q != 1) store_peer(slots_.incoming(q) + index * kPackBytes, sentinel_pack());
forgotten_ll_zero||device/protocol/ll.h|store_peer(line + kLineBytes, zero_pack());|
one_generation||device/protocol/exchange.h|line_.gen == kGenerations - 1 ? 0 : line_.gen + 1|line_.gen
one_staging||device/protocol/flags.h|exchange.epoch() & 1u, hop)|0u, hop)
lost_arrival||device/protocol/flags.h|[&](int i) { arrive(blk, i, tile); });|[&](int i) { if (tile != 1 || i != 1) arrive(blk, i, tile); });
arrival_before_data||device/protocol/flags.h|store_release(&control_of(ex, i).pads[hop_][ex.rank][tile], exchange_.epoch());|store_release(&control_of(ex, i).pads[hop_][ex.rank][tile], exchange_.epoch() + 1u);
compare_32_bits||device/protocol/flags.h|static_cast<int64_t>(load_acquire(&pad) - exchange_.epoch()) >= 0|static_cast<int32_t>(load_acquire(&pad)) >= static_cast<int32_t>(exchange_.epoch())
generation_from_epoch||device/protocol/exchange.h|line_.gen == kGenerations - 1 ? 0 : line_.gen + 1|static_cast<uint32_t>(line_.epoch + 1) % 3u
no_tag_zero||device/protocol/ll.h|static_cast<uint32_t>(exchange.epoch()) == 0 ? 0x80000000u|static_cast<uint32_t>(exchange.epoch()) == 0 ? 0u
open_broadcast||device/algo/gather.h|closing.acquire(blk, 0, 0)|true
no_final_wait||device/algo/twoshot_rows.h|if (!gather_.acquire_from(blk_, owner, tile, first)) return false;|
END
}

copy_tree() {
  (cd "$source_tree" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) | tar -xf - -C "$work/tree"
}

# build SANITIZER: 0 if fccl_test_conformance is there
build() {
  local folder="$work/build-${1:-plain}"
  { cmake -S "$work/tree" -B "$folder" -DFCCL_SAN="$1" -DFCCL_CPU_LEVELS=v3 -DFCCL_CUDA=OFF -DFCCL_TOOLS=OFF -DFCCL_WERROR=OFF &&
    cmake --build "$folder" -j "$jobs" --target fccl_test_conformance; } >"$work/build.log" 2>&1
}

# run SANITIZER: 0 if all tests pass (under a sanitizer only those that take seconds)
run() {
  local tests='kernels:*~[slow],collectives:*'
  [ -z "$1" ] || tests='kernels: mixed*,kernels: chaos*'
  TSAN_OPTIONS=halt_on_error=1 timeout 600 "$work/build-${1:-plain}/bin/fccl_test_conformance" \
    "$tests" --abort >"$work/run.log" 2>&1
}

plant() { # FILE TEXT INSTEAD
  python3 - "$work/tree/$1" "$2" "$3" <<'END'
import sys
path, text, instead = sys.argv[1:4]
whole = open(path).read()
if whole.count(text) < 1:
    sys.exit(f"{path} does not hold: {text}")
open(path, "w").write(whole.replace(text, instead))
END
}

wanted=" $* "
uncaught=0
copy_tree
for sanitizer in "" thread; do
  build "$sanitizer" || { tail -20 "$work/build.log"; exit 1; }
  run "$sanitizer" || { tail -30 "$work/run.log"; echo "the tests fail without any bug (sanitizer: ${sanitizer:-none})"; exit 1; }
  echo "no bug (${sanitizer:-plain} build): passes"
done
while IFS='|' read -r name sanitizer file text instead; do
  if [ "$wanted" != "  " ] && [[ "$wanted" != *" $name "* ]]; then continue; fi
  cp -p "$work/tree/$file" "$work/clean"
  plant "$file" "$text" "$instead" || exit 1
  if ! build "$sanitizer"; then
    tail -20 "$work/build.log"
    echo "$name: does not build"
    exit 1
  fi
  if run "$sanitizer"; then
    echo "$name: NOT CAUGHT"
    uncaught=1
  else
    echo "$name: caught by $(grep -m1 -E '^(kernels|collectives): |ThreadSanitizer: data race' "$work/run.log")"
  fi
  cp "$work/clean" "$work/tree/$file"
done < <(bugs)
exit $uncaught
