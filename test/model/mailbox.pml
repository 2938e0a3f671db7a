/* Mailboxes whose data is its own flag (device/protocol/lamport.h) under the control line of
 * device/protocol/exchange.h: RANKS ranks of BLOCKS blocks make calls of every mix of kinds and
 * extents, each with a grid of its own choice.
 *
 * MEMORY. A push is in flight until the memory performs it, in any order. A re-arm is in flight too;
 * it is performed at the end of its launch at the latest, or with SLACK at the end of the launch
 * behind it (a write-back that a kernel boundary has started but not waited for). Readers may look
 * at any moment, so a store in flight is a value not yet seen.
 *
 * PROPERTY. Whoever takes a pack takes the one of this call (assert); nobody waits for ever (spin's
 * search for invalid end states); all mailboxes are armed at the end of a bounded run.
 *
 * CALLS = 0: for ever, calls are numbered by a tag modulo TAGS, so the search covers call sequences
 * of any length. Else a bounded run. The wrong variants are the macros of run.py.
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef ROWS
#define ROWS 2 /* of a call, at most */
#endif
#ifndef WORDS
#define WORDS 1 /* of a pack: performed one by one */
#endif
#ifndef GENS
#define GENS 3
#endif
#ifndef SLACK
#define SLACK 1
#endif
#ifndef ALWAYS_ALL
#define ALWAYS_ALL 0 /* 1: every call has ROWS rows and BLOCKS blocks */
#endif
#ifndef CALLS
#define CALLS 0
#endif
#ifndef TAGS
#if CALLS > 0
#define TAGS (CALLS + 1)
#else
#define TAGS 4
#endif
#endif

/* Kinds of calls: KINDS allows them by bits. */
#define ONESHOT 1
#define HEADERS 2 /* no rows: in checked mode the headers alone are exchanged */
#define TWOSHOT 4 /* rank o owns row o, if there is one */
#define BROADCAST 8 /* of rank 0, closed by arrivals at pads; bounded runs only: pads are monotone */
#ifndef KINDS
#define KINDS ONESHOT
#endif

#if KINDS & TWOSHOT
#define HOPS 2
#else
#define HOPS 1
#endif
#if KINDS & HEADERS
#define LINES (ROWS * WORDS + 1) /* the header is the last line of a slot, and never re-armed */
#else
#define LINES (ROWS * WORDS)
#endif
#define SLOT (HOPS * (RANKS - 1) * LINES)
#define CELLS (RANKS * GENS * SLOT)
#define OTHER(dst, src) ((src) < (dst) -> (src) : (src)-1)
#ifdef BASE_FROM_SHAPE /* wrong: a generation begins where the shape of this call lets it */
#define AT(dst, hop, src, row, w) \
  ((dst)*GENS * SLOT + g * extent * (RANKS - 1) + OTHER(dst, src) * extent + (row))
#else
#define AT(dst, hop, src, row, w) \
  ((((dst)*GENS + g) * HOPS + (hop)) * (RANKS - 1) + OTHER(dst, src)) * LINES + (row)*WORDS + (w)
#endif

byte cell[CELLS + 5]; /* 0: the sentinel; else the tag of the call + 1 */
#ifdef IN_FLIGHT
byte flying[CELLS + 5]; /* a push that is not performed */
#endif
byte arming[CELLS + 5]; /* a re-arm that is not performed: 1 of this launch, 2 of the one before */

typedef Rank {
  byte gen;       /* the control line */
  byte tag;
  byte added;     /* blocks of a launch that have added to the line; all: it says the next number */
  byte grid;
  byte entering;  /* blocks that have not read the line, a bit each */
  byte running;
  byte pads;      /* closing arrivals: a number for each peer, three bits each */
};
Rank rank[RANKS];
byte kind_of[TAGS];   /* 0: nobody has begun this call */
byte rows_of[TAGS];
#if KINDS & BROADCAST
byte pad[RANKS * RANKS];      /* last closing arrival of a sender, its tag + 1 */
byte pad_flying[RANKS * RANKS];
#endif

/* The first rank that begins a call says what it is. */
inline choose() { /* call t */
  if
  :: kind_of[t] != 0 -> skip
  :: else ->
#if CALLS == 0
    kind_of[(t + 2) % TAGS] = 0; /* nobody is that far behind */
    rows_of[(t + 2) % TAGS] = 0;
#endif
    if
    :: (KINDS & ONESHOT) && !ALWAYS_ALL -> kind_of[t] = ONESHOT; rows_of[t] = 1
    :: (KINDS & ONESHOT) && ROWS > 1 -> kind_of[t] = ONESHOT; rows_of[t] = 2
    :: (KINDS & HEADERS) -> kind_of[t] = HEADERS
    :: (KINDS & TWOSHOT) -> kind_of[t] = TWOSHOT; rows_of[t] = 1
    :: (KINDS & TWOSHOT) && ROWS > 1 -> kind_of[t] = TWOSHOT; rows_of[t] = 2
    :: (KINDS & BROADCAST) -> kind_of[t] = BROADCAST; rows_of[t] = 1
    fi
  fi
}

inline launch(r) {
#if CALLS > 0
  if
  :: rank[r].tag == CALLS -> skip
  :: else ->
#endif
    t = rank[r].tag;
    choose();
    t = 0;
    if
    :: !ALWAYS_ALL || BLOCKS == 1 -> rank[r].grid = 1
    :: BLOCKS > 1 -> rank[r].grid = 2
    fi;
    rank[r].running = rank[r].grid;
    rank[r].entering = (1 << rank[r].grid) - 1
#if CALLS > 0
  fi
#endif
}

/* The kernel boundary: which re-arms are performed now, whatever the memory had in mind. */
inline end_launch(r) {
  i = r * GENS * SLOT;
  do
  :: i < (r + 1) * GENS * SLOT ->
    if
    :: arming[i] == 0 -> skip
    :: arming[i] == 1 && SLACK == 1 -> arming[i] = 2
    :: else -> arming[i] = 0; cell[i] = 0
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

/* Stores line `x` of row `row` for peer q; a second store to a place waits for the first. */
#ifdef IN_FLIGHT
#define STORE(x) flying[x] = t + 1
#define FREE1(q, hop, row, w) (flying[AT(q, hop, r, row, w)] == 0)
#else
#define STORE(x) assert(cell[x] == 0); cell[x] = t + 1
#define FREE1(q, hop, row, w) true
#endif
#define PUSH1(q, hop, row, w) STORE(AT(q, hop, r, row, w))
#if WORDS == 2
#define PUSH(q, hop, row) PUSH1(q, hop, row, 0); PUSH1(q, hop, row, 1)
#define FREE(q, hop, row) (FREE1(q, hop, row, 0) && FREE1(q, hop, row, 1))
#define FULL(q, hop, row) (cell[AT(r, hop, q, row, 0)] != 0 && (FIRST_WORD_ONLY || cell[AT(r, hop, q, row, 1)] != 0))
#define RIGHT(q, hop, row) (cell[AT(r, hop, q, row, 0)] == t + 1 && cell[AT(r, hop, q, row, 1)] == t + 1)
#define REARM(q, hop, row) arming[AT(r, hop, q, row, 0)] = 1; arming[AT(r, hop, q, row, 1)] = 1
#else
#define PUSH(q, hop, row) PUSH1(q, hop, row, 0)
#define FREE(q, hop, row) FREE1(q, hop, row, 0)
#define FULL(q, hop, row) (cell[AT(r, hop, q, row, 0)] != 0)
#define RIGHT(q, hop, row) (cell[AT(r, hop, q, row, 0)] == t + 1)
#define REARM(q, hop, row) arming[AT(r, hop, q, row, 0)] = 1
#endif
#ifndef FIRST_WORD_ONLY
#define FIRST_WORD_ONLY 0
#endif
#ifdef FORGOTTEN_REARM /* wrong: what the highest rank sent stays where it is */
#define RELEASE(q, hop, row) if :: (q) == RANKS - 1 -> skip :: else -> REARM(q, hop, row) fi
#else
#define RELEASE(q, hop, row) REARM(q, hop, row)
#endif

#define P1 ((r + 1) % RANKS)
#define P2 ((r + 2) % RANKS)
#if RANKS == 3
#define PUSH_ALL(hop, row) atomic { FREE(P1, hop, row) && FREE(P2, hop, row) -> PUSH(P1, hop, row); PUSH(P2, hop, row) }
#define TAKE_ALL(hop, row) atomic { FULL(P1, hop, row) && FULL(P2, hop, row) -> \
  assert(RIGHT(P1, hop, row) && RIGHT(P2, hop, row)); RELEASE(P1, hop, row); RELEASE(P2, hop, row) }
#define HEADERS_HERE (cell[AT(r, 0, P1, ROWS, 0)] == t + 1 && cell[AT(r, 0, P2, ROWS, 0)] == t + 1)
#define PADS_HERE (pad[r * RANKS + P1] >= t + 1 && pad[r * RANKS + P2] >= t + 1)
#else
#define PUSH_ALL(hop, row) atomic { FREE(P1, hop, row) -> PUSH(P1, hop, row) }
#define TAKE_ALL(hop, row) atomic { FULL(P1, hop, row) -> assert(RIGHT(P1, hop, row)); RELEASE(P1, hop, row) }
#define HEADERS_HERE (cell[AT(r, 0, P1, ROWS, 0)] == t + 1)
#define PADS_HERE (pad[r * RANKS + P1] >= t + 1)
#endif
#if KINDS & HEADERS /* by block 0, in every call; never re-armed: an older tag is not an arrival */
#define HEADER(q) cell[AT(q, 0, r, ROWS, 0)] = t + 1
#if RANKS == 3
#define STORE_HEADERS if :: b == 0 -> HEADER(P1); HEADER(P2) :: else -> skip fi
#else
#define STORE_HEADERS if :: b == 0 -> HEADER(P1) :: else -> skip fi
#endif
#else
#define STORE_HEADERS skip
#endif
#define TAKE(q, hop, row) atomic { FULL(q, hop, row) -> assert(RIGHT(q, hop, row)); RELEASE(q, hop, row) }
#define ADVANCE \
  rank[r].gen = (g + 1) % GENS; \
  rank[r].tag = (CALLS > 0 -> t + 1 : (t + 1) % TAGS)

proctype block(byte r; byte b) {
  byte g, t, extent, row, i;
  byte kind;
end:
  do
  :: atomic {
       (rank[r].entering >> b) & 1 -> /* the entry: every block reads the line */
       rank[r].entering = rank[r].entering & ~(1 << b);
       g = rank[r].gen;
       t = rank[r].tag;
       assert(t < TAGS && kind_of[t] != 0);
       kind = kind_of[t];
       extent = rows_of[t];
       STORE_HEADERS;
#ifdef ADVANCE_FIRST /* wrong: by the first block to enter, not by the last */
       if :: rank[r].added == 0 -> ADVANCE :: else -> skip fi;
#endif
     }
     /* One-shot: the first row is on its way before it adds to the line. */
     if
     :: kind == ONESHOT && b < extent -> PUSH_ALL(0, b)
     :: else -> skip
     fi;
     atomic { /* Exchange::begin */
       rank[r].added++;
       if
       :: rank[r].added == rank[r].grid ->
         rank[r].added = 0;
#ifndef ADVANCE_FIRST
         ADVANCE
#endif
       :: else -> skip
       fi
     }
     row = b;
     if
     :: kind == ONESHOT ->
       do
       :: row < extent ->
         if
         :: row + rank[r].grid < extent -> PUSH_ALL(0, row + rank[r].grid)
         :: else -> skip
         fi;
         TAKE_ALL(0, row);
         row = row + rank[r].grid
       :: else -> break
       od
#if KINDS & HEADERS
     :: kind == HEADERS ->
       HEADERS_HERE
#endif
#if KINDS & TWOSHOT
     :: kind == TWOSHOT -> /* owners' rows are tile 0 of block 0; other blocks enter and leave */
       if
       :: b == 0 ->
         row = 0;
         do
         :: row < extent && row != r -> atomic { FREE(row, 0, 0) -> PUSH(row, 0, 0) }; row++
         :: row < extent && row == r -> row++
         :: row >= extent -> break
         od;
         if
         :: r < extent -> TAKE_ALL(0, 0); PUSH_ALL(1, 0)
         :: else -> skip
         fi;
         row = 0;
         do
#ifdef NO_FINAL_WAIT /* wrong: a rank without rows leaves before it has got any */
         :: r >= extent -> break
#endif
         :: row < extent && row != r -> TAKE(row, 1, 0); row++
         :: row < extent && row == r -> row++
         :: row >= extent -> break
         od
       :: else -> skip
       fi
#endif
#if KINDS & BROADCAST
     :: kind == BROADCAST ->
       if
       :: b == 0 ->
         atomic {
           i = 0;
           do
           :: i < RANKS -> if :: i != r -> pad_flying[i * RANKS + r] = t + 1 :: else -> skip fi; i++
           :: else -> break
           od;
           i = 0
         }
         if
         :: r == 0 -> PUSH_ALL(0, 0)
         :: else -> TAKE(0, 0, 0)
         fi;
#ifndef OPEN_BROADCAST /* wrong: the root leaves without having heard of anybody */
         PADS_HERE
#endif
       :: else -> skip
       fi
#endif
     :: else -> assert(false)
     fi;
     atomic {
       g = 0; t = 0; extent = 0; row = 0; kind = 0;
       rank[r].running--;
       if
       :: rank[r].running == 0 -> end_launch(r); launch(r)
       :: else -> skip
       fi
     }
  od
}

#define PERFORM(x) \
  :: atomic { flying[x] != 0 -> cell[x] = flying[x]; flying[x] = 0 } \
  :: atomic { arming[x] != 0 -> arming[x] = 0; cell[x] = 0 }
#define PERFORM6(x) PERFORM(x) PERFORM(x + 1) PERFORM(x + 2) PERFORM(x + 3) PERFORM(x + 4) PERFORM(x + 5)
#define PAD(x) :: atomic { pad_flying[x] != 0 -> pad[x] = pad_flying[x]; pad_flying[x] = 0 }

#if defined(IN_FLIGHT) || (KINDS & BROADCAST)
active proctype memory() {
end:
  do
#ifdef IN_FLIGHT
  PERFORM6(0)
#if CELLS > 6
  PERFORM6(6)
#endif
#if CELLS > 12
  PERFORM6(12)
#endif
#if CELLS > 18
  PERFORM6(18) PERFORM6(24) PERFORM6(30)
#endif
#if CELLS > 36
  PERFORM6(36) PERFORM6(42) PERFORM6(48)
#endif
#endif
#if KINDS & BROADCAST
  PAD(1) PAD(2)
#if RANKS == 3
  PAD(3) PAD(5) PAD(6) PAD(7)
#endif
#endif
  od
}
#endif

init {
  byte r, b, t;
  atomic {
    r = 0;
    do
    :: r < RANKS ->
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
