/*
 * Trip, flip and re-arm of one buffer: ap/src/{owner,trip,flip}.rs, access by
 * access, for exhaustive search (design/verification.md `.promela`).
 *
 *   owner    reserves and commits ATTEMPTS objects; any reserve may find the
 *            buffer full and refill it, any reservation may be abandoned
 *   tripper  trips TRIPS times
 *   flipper  flips FLIPS times, and sees init through memory only
 *   memory   drains the owner's store buffer, whenever it likes
 *   halt     with the macro HALT: may stop the owner at any step, until all else
 *            is done
 *
 * The machine is x86's: plain stores wait in a first-in-first-out buffer that
 * other threads do not see, loads go by them, read-modify-writes drain the buffer
 * of who does them. Only the owner has plain stores. The barrier of commit, the
 * light one, is nothing at all; the heavy one drains the owner's buffer, which is
 * what membarrier(2) does.
 *
 * Each variant of what would be wrong is a macro, and must be found out. ONE_ROUND is wrong too, but
 * not on this machine: a flip of a flipped buffer does not begin anew if the owner has gone on meanwhile.
 * Each attempt to mark the buffer is a read-modify-write here, and drains the store buffer also if it fails.
 */

#ifndef ATTEMPTS
#define ATTEMPTS 3
#endif
#ifndef FLIPS
#define FLIPS 2
#endif
#ifndef TRIPS
#define TRIPS 2
#endif

#define NONE 0          /* a null pointer */
#define BASE 1          /* addresses: an object of one unit each */
#define ARMED 100       /* a limit that no object reaches */
#define UNDECIDED 255

/* The shared words. */
byte init_word = BASE;            /* init: that name is Promela's */
byte limit = ARMED;
byte requests = 0;
byte init_at_flip = NONE;

/* The owner's plain stores on their way to memory. */
#define INIT 0
#define LIMIT 1
chan stores = [4] of { byte, byte };    /* a word, and what goes into it */
bool limit_waits = false;               /* a store to limit is among them */

/* What the owner knows. */
byte position = BASE;                   /* init as the owner last stored it */
byte observed = 0;
byte seen;
byte end;

#ifdef HALT
bool halted = false;
#define may_halt provided (!halted)
#else
#define may_halt
#endif
bool owner_done = false;
byte trips_done = 0;
byte flips_done = 0;

/* For the properties only. An object is known by where it ends. */
byte calls = 0;                         /* flips called */
byte marks = 0;                         /* flips that marked the buffer */
byte heard = 0;                         /* the last mark the owner went on from */
byte detached_at = NONE;                /* position when memory was taken away */
bool stands[ATTEMPTS + 2];
byte heard_before[ATTEMPTS + 2];        /* heard, when its reservation began */
byte calls_before[ATTEMPTS + 2];        /* calls, when its reservation began */
byte result[FLIPS + 1];                 /* what a flip returned */
byte result_mark[FLIPS + 1];            /* and the mark it is about */

inline land_one() {
    if
    :: stores?INIT,init_word
    :: stores?LIMIT,limit; limit_waits = false
    fi
}

/* Everything in the buffer reaches memory. Part of an atomic step. */
inline drain() {
    do
    :: nempty(stores) -> land_one()
    :: empty(stores) -> break
    od
}

/* A load of limit by the owner, who sees its own stores. */
#define own_limit (limit_waits -> ARMED : limit)

/* ------------------------------------------------------------------ trip.rs */

inline trip() {
#ifdef COUNT_AFTER_TRIP
    limit = NONE;
    requests++
#else
    requests++;
    limit = NONE
#endif
}

inline observe_trips() {
    observed = requests;
    unflip()
}

inline publish_limit() {
#ifdef PLAIN_REARM
    atomic { stores!LIMIT,ARMED; limit_waits = true }
#else
    atomic { drain(); limit = ARMED }
#endif
}

inline rearm() {
    do
    :: observe_trips();
       publish_limit();
#ifdef NO_SECOND_LOOK
       atomic { begin(); break }
#else
       if
       :: atomic { requests == observed -> begin(); break }
       :: requests != observed -> atomic { drain(); limit = NONE }
       fi
#endif
    od
}

/* ------------------------------------------------------------------ flip.rs */

/* The owner goes on from a flip. */
inline unflip() {
    atomic { seen = init_at_flip; if :: seen == NONE -> heard = marks :: else fi };
    do
    :: seen == NONE -> break
    :: seen != NONE ->
       atomic {
           drain();
           if
           :: init_at_flip == seen -> init_at_flip = NONE; seen = NONE; heard = marks
           :: else -> seen = init_at_flip; if :: seen == NONE -> heard = marks :: else fi
           fi
       }
    od
}

inline commit_tripped() {
    seen = init_at_flip;
    if
    :: seen == UNDECIDED ->
       atomic {
           drain();
           if
           :: init_at_flip == UNDECIDED -> init_at_flip = end; seen = end
           :: else -> seen = init_at_flip
           fi
       }
    :: else
    fi;
    if
#ifdef TRIP_FAILS_COMMIT
    :: seen == end -> stand()
#else
    :: seen == NONE || seen == end -> stand()
#endif
    :: else ->
       assert(marks > began_heard && seen < end);  /* flipped since, and not seen */
       stores!INIT,position
    fi
}

inline load_init() {
    atomic { found = init_word; covers = (found == NONE -> detached_at : found) }
}

inline load_scan_limit() {
    atomic { found = init_at_flip; covers = found };
    if
    :: found == NONE || found == UNDECIDED -> load_init()
    :: else
    fi
}

inline heavy_barrier() {
#ifdef NO_HEAVY_BARRIER
    skip
#else
    atomic { drain() }
#endif
}

inline decide() {
    atomic {
        if
#ifndef BLIND_DECISION
        :: init_at_flip != UNDECIDED -> decided = false
#endif
        :: else -> init_at_flip = found; decided = true
        fi
    }
}

inline mark() {
    atomic {
        found = init_at_flip;
        if
        :: found == NONE -> init_at_flip = UNDECIDED; marks++
        :: else
        fi;
        own_mark = marks
    }
}

inline flip() {
    do
    ::
#ifdef TRIP_BEFORE_MARK
       trip();
#endif
       mark();
       if
       :: found == NONE ->
#ifdef INIT_BEFORE_LIMIT
          load_init();
          heavy_barrier();
          trip();
#else
#ifndef TRIP_BEFORE_MARK
          trip();
#endif
          heavy_barrier();
          load_init();
#endif
#ifdef WAIT_FOR_OWNER
          init_at_flip != UNDECIDED;
#endif
          decide();
          if
          :: decided
          :: !decided -> load_scan_limit()
          fi;
          break
       :: found != NONE ->
          trip();
          heavy_barrier();
#ifdef ONE_ROUND
          load_scan_limit();
          break
#else
          if
          :: init_at_flip == found -> load_scan_limit(); break
          :: init_at_flip != found
          fi
#endif
       fi
    od
}

/* ----------------------------------------------------------------- owner.rs */

inline detach() {
    atomic { drain(); limit = NONE };
    unflip();
    atomic { stores!INIT,NONE; detached_at = position }
}

/* The new memory begins where the old left off, which is the worst case: no
   address tells one from the other. */
inline attach() {
    stores!INIT,position
}

/* The reservation begins. Part of the step that decides it. */
inline begin() {
    end = position + 1;
    began_heard = heard;
    began_calls = calls
}

inline reserve() {
    if
    :: atomic { own_limit != NONE -> begin() }
    :: atomic { own_limit == NONE -> observed = requests }; unflip(); rearm()
    :: atomic { observed = requests }; unflip(); detach(); attach(); rearm()
    fi
}

inline commit() {
#ifdef LIMIT_BEFORE_INIT
    if
    :: own_limit != NONE -> atomic { stores!INIT,end; stand() }
    :: own_limit == NONE -> stores!INIT,end; commit_tripped()
    fi
#else
    stores!INIT,end;
    if
    :: atomic { own_limit != NONE -> stand() }
    :: own_limit == NONE -> commit_tripped()
    fi
#endif
}

inline stand() {
    stands[end] = true;
    heard_before[end] = began_heard;
    calls_before[end] = began_calls;
    position = end
}

/* ---------------------------------------------------------------- processes */

active proctype owner() may_halt {
    byte attempt = 0;
    byte began_heard;
    byte began_calls;
    do
    :: attempt < ATTEMPTS ->
       reserve();
       if
       :: commit()
       :: skip          /* abandon */
       fi;
       atomic { attempt++; end = NONE; seen = NONE; began_heard = 0; began_calls = 0 }
    :: attempt == ATTEMPTS -> break
    od;
    owner_done = true
}

active proctype tripper() {
    do
    :: trips_done < TRIPS -> trip(); trips_done++
    :: trips_done == TRIPS -> break
    od
}

active proctype flipper() {
    byte found = NONE;
    byte covers = NONE;     /* up to which address objects were seen, detached or not */
    byte own_mark = 0;
    bool decided;
    do
    :: atomic { flips_done < FLIPS -> calls++ };
       flip();
       atomic {
           flips_done++;
           result[flips_done] = covers;
           result_mark[flips_done] = own_mark;
           found = NONE; covers = NONE; own_mark = 0; decided = false
       }
    :: flips_done == FLIPS -> break
    od
}

active proctype memory() {
end_memory:
    do
    :: atomic { nempty(stores) -> land_one() }
    od
}

#ifdef HALT
active proctype halt() {
    if
    :: halted = true
    :: skip
    fi
}
#endif

/* An object that stands, and that a flip did not see, although its reservation
   began before the owner had gone on from that flip, or before the flip was called. */
#define lost(object, call) (stands[object] && object > result[call] && \
    (heard_before[object] < result_mark[call] || calls_before[object] < call))

active proctype check() {
    byte object;
    byte call;
    /* Nothing moves any more. */
    timeout;
    assert(trips_done == TRIPS && flips_done == FLIPS);     /* no process waits for the owner */
#ifdef HALT
    halted = false;
    timeout;
#endif
    d_step {
        assert(owner_done);
        assert(requests == observed || limit == NONE);  /* no trip is lost */
        assert(init_at_flip != UNDECIDED);
        assert(init_at_flip == NONE || limit == NONE);      /* flipped is trapped */
        object = BASE + 1;
        do
        :: object <= ATTEMPTS + BASE ->
           call = 1;
           do
           :: call <= FLIPS -> assert(!lost(object, call)); call++
           :: call > FLIPS -> break
           od;
           object++
        :: else -> break
        od
    }
}
