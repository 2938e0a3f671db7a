#!/bin/bash
# By hand: do the tests catch a broken protocol? Copies the tree, plants one bug after the other into the
# kernels' text, builds the tests of the kernels at one level and runs them. Every bug must make them fail,
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
cache=$(command -v ccache || true)
export CCACHE_NOHASHDIR=1 # a copy elsewhere finds the objects of the last one
catch_library=$(pkg-config --libs catch2-with-main 2>/dev/null || true) # Catch2 version 3; version 2 is headers

# name | sanitizer | file | text | what stands there instead
bugs() {
  cat <<'END'
plain_store|thread|device/protocol/lamport.h|store_peer(outgoing(i, index), without_sentinel(p));|store_staged(outgoing(i, index), without_sentinel(p));
no_sentinel_replacement||device/protocol/lamport.h|without_sentinel(p));|p);
forgotten_rearm||device/protocol/lamport.h|store_peer(slots().incoming(q, index), sentinel_pack());|if (q != 1) store_peer(slots().incoming(q, index), sentinel_pack());
forgotten_ll_zero||device/protocol/ll.h|store_peer(line + kLineBytes, zero_pack());|
one_generation||device/protocol/exchange.h|gen_ = generation_of(epoch());|gen_ = 0;
one_staging||device/protocol/flags.h|exchange.epoch() & 1u|exchange.epoch() & 0u
lost_arrival||device/protocol/flags.h|arrive(0, ex.rank, tile);|if (tile != 1) arrive(0, ex.rank, tile);
lost_arrival_of_one||device/protocol/flags.h|arrive(0, rank_at(i), tile);|if (tile != 1 || i != 1) arrive(0, rank_at(i), tile);
arrival_before_data||device/protocol/flags.h|pads[hop_][column][tile], exchange_.epoch());|pads[hop_][column][tile], exchange_.epoch() + 1u);
compare_32_bits||device/protocol/flags.h|static_cast<int64_t>(load_acquire(&pad) - exchange_.epoch()) >= 0|static_cast<int32_t>(load_acquire(&pad)) >= static_cast<int32_t>(exchange_.epoch())
generation_from_epoch||device/protocol/exchange.h|gen_ = generation_of(epoch());|gen_ = static_cast<uint32_t>(epoch()) % 3u;
advance_by_block_0||device/protocol/exchange.h|blk.id() == 0 ? rest : 1|blk.id() == 0 ? line_of(1) : 0
no_tag_zero||device/protocol/ll.h|? 0x80000000u|? 0u
open_broadcast||device/algo/gather.h|closing.acquire(blk, 0, 0)|true
no_final_wait||device/algo/twoshot_rows.h|if (!gather_.acquire_from(blk_, owner, tile, first)) return false;|
last_but_one_reduces||device/protocol/roll_call.h|const bool last = count == all;|const bool last = count == (all > 2 ? all - 1 : all);
made_before_result||device/algo/twoshot_rows.h|sum_own_row<false>(Range{0, 1, 0}, 0, kept, squares);|roll_call.tell_made(1.0f); sum_own_row<false>(Range{0, 1, 0}, 0, kept, squares);
own_part_kept||device/algo/twoshot_rows.h|blk_.each_pack(0, a_.packs, [&](Slot, int p) { out.put(p, input.load(p)); });|if (a_.ex.rank != 0) blk_.each_pack(0, a_.packs, [&](Slot, int p) { out.put(p, input.load(p)); });
END
}

copy_tree() {
  (cd "$source_tree" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) | tar -xf - -C "$work/tree"
  main='#define CATCH_CONFIG_MAIN'
  printf '%s\n#include "harness/catch.h"\n' "$main" >"$work/tree/test/main.cc"
}

# build SANITIZER: 0 if the test program is there. Only what the kernels and their tests need, by hand:
# one level, and no library around it.
build() {
  local out="$work/build-${1:-plain}" flags="-std=c++20 -O1 -g1 -ffp-contract=off -I. -Iinclude -Isrc -Itest"
  [ -z "$1" ] || flags+=" -fsanitize=$1"
  mkdir -p "$out"
  (
    cd "$work/tree" || exit 1
    {
      printf '%s\n' device/entry/cpu_*.cc
      printf 'test/harness/%s.cc\n' buffer generator kernel_case kernel_levels kernel_world matrix number pairs reference
      printf 'test/conformance/%s_test.cc\n' kernels collectives
      printf 'src/topology/%s.cc\n' cpu_level facts describe classify
      printf '%s\n' src/base/status.cc test/main.cc
    } | xargs -P "$jobs" -I{} sh -c '
      level=""
      case {} in device/*) level="-DFCCL_CPU_LEVEL=v3 -march=x86-64-v3 -maes -mpclmul -fno-math-errno -fno-trapping-math" ;; esac
      '"$cache ${CXX:-c++} $flags"' -DFCCL_HAVE_CPU_v3=1 $level -c {} -o '"$out"'/$(echo {} | tr / _).o' &&
      ${CXX:-c++} $flags -o "$out/tests" "$out"/*.o $catch_library -pthread
  ) >"$work/build.log" 2>&1
}

# run SANITIZER: 0 if all tests pass (under a sanitizer only those that take seconds)
run() {
  local tests='~[slow]kernels:*,~[slow]collectives:*'
  [ -z "$1" ] || tests='kernels: mixed*,kernels: chaos*'
  TSAN_OPTIONS=halt_on_error=1 timeout 900 "$work/build-${1:-plain}/tests" "$tests" --abort >"$work/run.log" 2>&1
  local status=$?
  if grep -a -q 'No test cases matched' "$work/run.log"; then # a filter that finds nothing proves nothing
    echo "the filter finds no test: $tests"
    exit 1
  fi
  return $status
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
while IFS='|' read -r name sanitizer file text instead; do # before minutes of building
  grep -q -F -- "$text" "$work/tree/$file" || { echo "$name: $file does not hold: $text"; exit 1; }
done < <(bugs)
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
    echo "$name: caught by $(grep -a -m1 -E '^(kernels|collectives): |ThreadSanitizer: data race' "$work/run.log")"
  fi
  cp "$work/clean" "$work/tree/$file"
done < <(bugs)
exit $uncaught
