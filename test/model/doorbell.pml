/* The doorbell on which blocks of a CPU rank sleep (device/dialect/memory_cpu.h, "Sleeping", and
 * Block::wait_slow): PEERS peers store ROUNDS times each, SLEEPERS blocks of one rank wait for all of
 * it, round by round.
 *
 * MEMORY. Data is in flight until the memory performs it, or the writer's ring does: the ring is a
 * sequentially consistent read-modify-write behind it. The futex compares and sleeps in one step.
 *
 * PROPERTY. No wake-up is lost: nobody sleeps for ever (spin's search for invalid end states), though
 * the time slice after which the real sleeper looks again is left out here.
 */
#ifndef PEERS
#define PEERS 2
#endif
#ifndef SLEEPERS
#define SLEEPERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

byte data[PEERS];
byte flying[PEERS];
byte count;
byte sleepers;
byte asleep; /* in the futex, a bit for each block */
byte done;   /* blocks that have seen the round; ghost */
byte round = 1;

#define WAKE asleep = 0

proctype peer(byte p) {
  byte mine, seen;
  do
  :: mine < ROUNDS ->
    round == mine + 1; /* its own waits: nobody is two rounds ahead */
    mine++;
    atomic { flying[p] == 0 -> flying[p] = mine }
#ifdef SLEEPERS_FIRST /* wrong: looks for sleepers before it rings */
    seen = sleepers;
#endif
#ifdef RING_FIRST /* wrong: rings, then stores */
    count++;
    seen = sleepers;
    atomic { if :: flying[p] != 0 -> data[p] = flying[p]; flying[p] = 0 :: else -> skip fi }
#else
    atomic { /* ring(): the data is performed before it */
      if :: flying[p] != 0 -> data[p] = flying[p]; flying[p] = 0 :: else -> skip fi;
      count++
    }
#endif
#if !defined(SLEEPERS_FIRST) && !defined(RING_FIRST)
    seen = sleepers;
#endif
    if
    :: seen != 0 -> WAKE
    :: else -> skip
    fi;
    seen = 0
  :: else -> break
  od
}

#if PEERS == 2
#define READY (data[0] >= mine && data[1] >= mine)
#else
#define READY (data[0] >= mine)
#endif

proctype sleeper(byte b) {
  byte mine, seen;
  bool ready;
  do
  :: mine < ROUNDS ->
    mine++;
    sleepers++;
    do
#ifdef LOOK_FIRST /* wrong: the data, then the doorbell */
    :: ready = READY; seen = count;
#else
    :: seen = count; ready = READY;
#endif
      if
      :: ready -> break
      :: else ->
        atomic {
          if
          :: count == seen -> asleep = asleep | (1 << b) /* FUTEX_WAIT */
          :: else -> skip
          fi
        }
        ((asleep >> b) & 1) == 0
      fi
    od;
    ready = false;
    seen = 0;
    sleepers--;
    atomic {
      done++;
      if
      :: done == SLEEPERS -> done = 0; round++
      :: else -> skip
      fi
    }
    round > mine
  :: else -> break
  od
}

active proctype memory() {
end:
  do
  :: atomic { flying[0] != 0 -> data[0] = flying[0]; flying[0] = 0 }
#if PEERS == 2
  :: atomic { flying[1] != 0 -> data[1] = flying[1]; flying[1] = 0 }
#endif
  od
}

init {
  byte i;
  atomic {
    i = 0;
    do :: i < PEERS -> run peer(i); i++ :: else -> break od;
    i = 0;
    do :: i < SLEEPERS -> run sleeper(i); i++ :: else -> break od
  }
}
