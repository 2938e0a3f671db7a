/* Signal pads and staging that readers pull (device/protocol/flags.h on CPU ranks) under the control
 * line of device/protocol/exchange.h: RANKS ranks of BLOCKS blocks make CALLS calls of every mix of
 * kinds and extents, each with a grid of its own choice; the epoch wraps on the way.
 *
 * MEMORY. What a block stores into staging is in flight until the memory performs it, in any order;
 * an arrival at a pad is a release: it is performed after all earlier stores of its block, and later
 * arrivals behind it in any order. What a launch stored is performed when the launch has ended.
 * Pads stand at each reader here, as on a GPU; the one pad that CPU readers share is the case in
 * which all of them are performed at once.
 *
 * PROPERTY. Whoever reads staging finds the data of this call (assert) and nobody waits for ever
 * (spin's search for invalid end states). Runs are bounded, because pads are monotone: a pad that no
 * call has used for half the numbers of an epoch would look like an arrival. Epochs have NUMBERS
 * values here and begin below the wrap, at START; the wrong variants are the macros of run.py.
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef TILES
#define TILES 2 /* of a call, at most */
#endif
#ifndef CALLS
#define CALLS 4
#endif
#define NUMBERS 16
#define START 14
#ifndef STAGINGS
#define STAGINGS 2
#endif
#ifndef KINDS
#define KINDS 1
#endif
#define ONESHOT 1
#define TWOSHOT 2 /* rank o owns tile o, if there is one; two hops */
#define BROADCAST 4 /* of rank 0, closed by arrivals at the pads of the second hop */
#define ROLL_CALL 8 /* of one row, reduced by the last rank to arrive (device/protocol/roll_call.h) */

#if KINDS & 14
#define HOPS 2
#else
#define HOPS 1
#endif
/* Staging of the first hop of a two-shot has a part for each receiver, which is the owner of the
 * tile: so the tile names the part. */
#define STAGED(src, hop, tile) ((((src)*STAGINGS + (half)) * HOPS + (hop)) * TILES + (tile))
#define PAD(dst, hop, src, tile) ((((dst)*HOPS + (hop)) * RANKS + (src)) * TILES + (tile))

#define PARTS (RANKS * STAGINGS * HOPS * TILES)
#define PADS (RANKS * HOPS * RANKS * TILES)

/* Values are epochs + 1; 0 is older than everything. */
byte staged[PARTS];
byte pad[PADS];
#ifdef IN_FLIGHT
byte part_flying[PARTS];
byte part_of[PARTS];   /* the block that stored it */
byte pad_flying[PADS];
byte pad_of[PADS];
byte pad_after[RANKS * BLOCKS]; /* stores of a block that its arrivals wait for */
#endif

typedef Rank {
  byte epoch;     /* the control line, 0 .. NUMBERS - 1 */
  byte call;      /* launches begun; ghost */
  byte added;
  byte grid;
  byte entering;
  byte running;
};
Rank rank[RANKS];
#if KINDS & ROLL_CALL
byte arrived_at, arrivals; /* the roll call's words: of which exchange, what */
byte made_at, made_by;
#endif
byte kind_of[CALLS];
byte tiles_of[CALLS];

inline choose() { /* call c */
  if
  :: kind_of[c] != 0 -> skip
  :: else ->
    if
    :: (KINDS & ONESHOT) -> kind_of[c] = ONESHOT; tiles_of[c] = 1
    :: (KINDS & ONESHOT) && TILES > 1 -> kind_of[c] = ONESHOT; tiles_of[c] = 2
    :: (KINDS & TWOSHOT) -> kind_of[c] = TWOSHOT; tiles_of[c] = 1
    :: (KINDS & TWOSHOT) && TILES > 1 -> kind_of[c] = TWOSHOT; tiles_of[c] = 2
    :: (KINDS & BROADCAST) -> kind_of[c] = BROADCAST; tiles_of[c] = 1
    :: (KINDS & ROLL_CALL) -> kind_of[c] = ROLL_CALL; tiles_of[c] = 1
    fi
  fi
}

inline launch(r) {
  c = rank[r].call;
  if
  :: c == CALLS -> skip
  :: else ->
    rank[r].call = c + 1;
    choose();
    if
    :: rank[r].grid = 1
    :: BLOCKS > 1 -> rank[r].grid = 2
    fi;
    rank[r].running = rank[r].grid;
    rank[r].entering = (1 << rank[r].grid) - 1
  fi;
  c = 0
}

/* Has the pad arrived? By signed difference, so that one ahead counts too. */
#if defined(COMPARE_LESS) /* wrong: breaks at the wrap */
#define ARRIVED(x) (pad[x] != 0 && !(pad[x] < e + 1))
#elif defined(COMPARE_EQUAL) /* wrong: a pad may be one ahead */
#define ARRIVED(x) (pad[x] == e + 1)
#else
#define ARRIVED(x) (pad[x] != 0 && (pad[x] - 1 - e + NUMBERS) % NUMBERS < NUMBERS / 2)
#endif

#ifdef IN_FLIGHT
#define ME (r * BLOCKS + b)
#define OFFER(hop, tile) atomic { part_flying[STAGED(r, hop, tile)] == 0 -> \
  part_flying[STAGED(r, hop, tile)] = e + 1; part_of[STAGED(r, hop, tile)] = ME; pad_after[ME]++ }
#define ARRIVE(q, hop, tile) atomic { pad_flying[PAD(q, hop, r, tile)] == 0 -> \
  pad_flying[PAD(q, hop, r, tile)] = e + 1; pad_of[PAD(q, hop, r, tile)] = ME }
#else
#define OFFER(hop, tile) staged[STAGED(r, hop, tile)] = e + 1
#define ARRIVE(q, hop, tile) pad[PAD(q, hop, r, tile)] = e + 1
#endif

#ifdef IN_FLIGHT
#define PERFORMED (pad_after[ME] == 0) /* a read-modify-write, and what follows it, come after all */
#else
#define PERFORMED true
#endif
#ifdef TOLD_FIRST /* wrong: the result is told before it is there */
#define MADE TELL; OFFER(1, 0)
#else
#define MADE OFFER(1, 0); TELL
#endif
#define TELL atomic { PERFORMED -> made_at = e + 1; made_by = r }

#ifdef PAD_OF_BLOCK /* wrong: ranks may run different grids */
#define PLACE(tile) b
#else
#define PLACE(tile) (tile)
#endif

#define P1 ((r + 1) % RANKS)
#define P2 ((r + 2) % RANKS)
#if RANKS == 3
#define ARRIVE_ALL(hop, tile) ARRIVE(P1, hop, PLACE(tile)); ARRIVE(P2, hop, PLACE(tile))
#define WAIT_ALL(hop, tile) ARRIVED(PAD(r, hop, P1, PLACE(tile))) && ARRIVED(PAD(r, hop, P2, PLACE(tile)))
#define READ_ALL(hop, tile) READ(P1, hop, tile); READ(P2, hop, tile)
#else
#define ARRIVE_ALL(hop, tile) ARRIVE(P1, hop, PLACE(tile))
#define WAIT_ALL(hop, tile) ARRIVED(PAD(r, hop, P1, PLACE(tile)))
#define READ_ALL(hop, tile) READ(P1, hop, tile)
#endif
#define READ(q, hop, tile) assert(staged[STAGED(q, hop, tile)] == e + 1)
#ifdef PUBLISH_FIRST /* wrong: the arrival before the data */
#define SEND_ALL(hop, tile) ARRIVE_ALL(hop, tile); OFFER(hop, tile)
#define SEND(q, hop, tile) ARRIVE(q, hop, tile); OFFER(hop, tile)
#else
#define SEND_ALL(hop, tile) OFFER(hop, tile); ARRIVE_ALL(hop, tile)
#define SEND(q, hop, tile) OFFER(hop, tile); ARRIVE(q, hop, tile)
#endif

#define ADVANCE rank[r].epoch = (e + 1) % NUMBERS

proctype block(byte r; byte b) {
  byte e, c, half, tiles, tile, kind;
end:
  do
  :: atomic {
       (rank[r].entering >> b) & 1 -> /* the entry: every block reads the line */
       rank[r].entering = rank[r].entering & ~(1 << b);
       e = rank[r].epoch;
       c = (e + NUMBERS - START) % NUMBERS; /* what this block takes for the call */
       assert(c == rank[r].call - 1);
       kind = kind_of[c];
       tiles = tiles_of[c];
       c = 0;
       half = e % STAGINGS;
#ifdef ADVANCE_FIRST /* wrong: by the first block to enter, not by the last */
       if :: rank[r].added == 0 -> ADVANCE :: else -> skip fi;
#endif
     }
     atomic { /* Exchange::begin */
       rank[r].added++;
       if
       :: rank[r].added == rank[r].grid ->
         rank[r].added = 0;
#ifndef ADVANCE_FIRST
         ADVANCE
#endif
       :: else -> skip
       fi;
       tile = b
     }
     if
     :: kind == ONESHOT ->
       do
       :: tile < tiles ->
         SEND_ALL(0, tile);
         WAIT_ALL(0, tile);
         READ_ALL(0, tile);
         tile = tile + rank[r].grid
       :: else -> break
       od
#if KINDS & TWOSHOT
     :: kind == TWOSHOT -> /* an owner has one tile: block 0 of each rank does all */
       if
       :: b == 0 ->
         tile = 0;
         do
         :: tile < tiles && tile != r -> SEND(tile, 0, tile); tile++
         :: tile < tiles && tile == r -> tile++
         :: tile >= tiles -> break
         od;
         if
         :: r < tiles -> WAIT_ALL(0, r); READ_ALL(0, r); SEND_ALL(1, r)
         :: else -> skip
         fi;
         tile = 0;
         do
         :: tile < tiles && tile != r ->
#ifndef NO_SECOND_WAIT /* wrong: the second hop is read as it is */
           ARRIVED(PAD(r, 1, tile, tile));
#endif
           READ(tile, 1, tile);
           tile++
         :: tile < tiles && tile == r -> tile++
         :: tile >= tiles -> break
         od
       :: else -> skip
       fi
#endif
#if KINDS & BROADCAST
     :: kind == BROADCAST ->
       if
       :: b == 0 ->
         ARRIVE_ALL(1, 0);
         if
         :: r == 0 -> SEND_ALL(0, 0)
         :: else -> ARRIVED(PAD(r, 0, 0, 0)); READ(0, 0, 0)
         fi;
#ifndef OPEN_BROADCAST /* wrong: the root leaves without having heard of anybody */
         WAIT_ALL(1, 0)
#endif
       :: else -> skip
       fi
#endif
#if KINDS & ROLL_CALL
     :: kind == ROLL_CALL ->
       if
       :: b == 0 ->
         OFFER(0, 0);
         atomic {
           PERFORMED;
#ifndef COUNT_GOES_ON /* wrong: an exchange begins with the count of the one before */
           if :: arrived_at != e + 1 -> arrivals = 0 :: else -> skip fi;
#endif
           arrived_at = e + 1;
           arrivals++;
           tile = (arrivals >= RANKS -> 1 : 0)
         }
         if
         :: tile == 1 -> READ_ALL(0, 0); MADE
         :: else -> made_at == e + 1; READ(made_by, 1, 0)
         fi
       :: else -> skip
       fi
#endif
     :: else -> assert(false)
     fi;
     atomic {
#ifdef IN_FLIGHT
       pad_after[ME] == 0; /* the end of the launch: its stores are performed */
#endif
       e = 0; half = 0; tiles = 0; tile = 0; kind = 0;
       rank[r].running--;
       if
       :: rank[r].running == 0 -> launch(r)
       :: else -> skip
       fi
     }
  od
}

#ifdef IN_FLIGHT
#define PERFORM(x) :: atomic { part_flying[x] != 0 -> \
  staged[x] = part_flying[x]; part_flying[x] = 0; pad_after[part_of[x]]--; part_of[x] = 0 }
#ifdef NO_RELEASE /* wrong: an arrival that overtakes the data */
#define MAY_ARRIVE(x) true
#else
#define MAY_ARRIVE(x) (pad_after[pad_of[x]] == 0)
#endif
#define PERFORM_PAD(x) :: atomic { pad_flying[x] != 0 && MAY_ARRIVE(x) -> \
  pad[x] = pad_flying[x]; pad_flying[x] = 0; pad_of[x] = 0 }
#define FOUR(what, x) what(x) what(x + 1) what(x + 2) what(x + 3)

active proctype memory() {
end:
  do
  FOUR(PERFORM, 0)
#if PARTS > 4
  FOUR(PERFORM, 4)
#endif
#if PARTS > 8
  FOUR(PERFORM, 8) FOUR(PERFORM, 12)
#endif
  FOUR(PERFORM_PAD, 0)
#if PADS > 4
  FOUR(PERFORM_PAD, 4)
#endif
#if PADS > 8
  FOUR(PERFORM_PAD, 8) FOUR(PERFORM_PAD, 12)
#endif
  od
}
#endif

init {
  byte r, b, c;
  atomic {
    r = 0;
    do
    :: r < RANKS ->
      rank[r].epoch = START;
      b = 0;
      do
      :: b < BLOCKS -> run block(r, b); b++
      :: else -> break
      od;
      launch(r);
      r++
    :: else -> break
    od
  }
}
