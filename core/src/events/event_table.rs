//! The table of all events: the one place that declares them.

/// Passes the table of events to a macro, after what is to be passed on to it, in brackets:
/// `callback! { [more] entries }`.
///
/// Everything that handles all events is generated from this table: [`Event`](crate::Event), and in telemetry the kinds of the format,
/// what is written and read of each, the static probes, and the table on the page of the format
/// (design/telemetry.md `.kinds`, and `.kinds.add`: how to add an event). An entry is:
///
/// ```text
/// /// What happened.
/// 60: Resize, resize, since "0.2.0", of arena {
///     /// A field that is one word of a record, in one of telemetry's forms (`FieldForm`).
///     pool: PoolId as Number,
/// } parts {
///     /// A field that is several words, each with a name and a form.
///     range: AddrRange as {
///         /// The first address.
///         base: Address,
///         /// The bytes from there to its end.
///         size: Bytes,
///     },
/// } texts {
///     /// A field that is a text.
///     class: &'static str,
/// }
/// ```
///
/// It begins with the event's number in records, its name, the name of its probe, and the version of tripoint that
/// first has it. Its name for people and in JSON is that of the probe, with spaces for `_`. Without `of arena` it has
/// no number of an arena, and `parts` and `texts` may be left out. A record has the fields in this order. What is
/// recorded of an event stays as it is: what needs more is a new event.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_event {
    ($callback:ident $($more:tt)*) => {
        $callback! {
            [$($more)*]
            /// An arena was created.
            8: CreateArena, create_arena, since "0.1.0", of arena {
                /// The bytes of a grain.
                grain: usize as Bytes,
                /// The most bytes that it may commit, as it was asked for.
                commit_limit: usize as Bytes,
                /// What decides when it commits them, as its type has it; zero for memory that was given.
                commit_policy: usize as Number,
                /// The bytes that it commits beforehand, if the policy has a number of them.
                prefault_size: usize as Bytes,
            } parts {
                /// The range of its addresses ([`Arena::range`](crate::Arena::range)).
                range: AddrRange as {
                    /// The first address.
                    base: Address,
                    /// The bytes from there to its end.
                    size: Bytes,
                },
                /// The memory that it was given, or reserved.
                memory: AddrRange as {
                    /// The first address of the memory that it was given, or reserved.
                    memory_base: Address,
                    /// The bytes of this memory.
                    memory_size: Bytes,
                },
            } texts {
                /// The name of its type.
                class: &'static str,
            }
            /// An arena is about to release its memory.
            9: DestroyArena, destroy_arena, since "0.1.0", of arena {} parts {
                /// The range of its addresses ([`Arena::range`](crate::Arena::range)).
                range: AddrRange as {
                    /// The first address.
                    base: Address,
                    /// The bytes from there to its end.
                    size: Bytes,
                },
            }
            /// The arena committed memory that it did not have before.
            14: Grow, grow, since "0.1.0", of arena {
                /// The bytes that were committed.
                size: usize as Bytes,
            }
            /// The arena returned committed memory to the platform.
            15: Shrink, shrink, since "0.1.0", of arena {
                /// The bytes that were decommitted.
                size: usize as Bytes,
            }
            /// A frozen arena refused to grow.
            16: GrowthRefused, growth_refused, since "0.1.0", of arena {
                /// The bytes that were asked for.
                size: usize as Bytes,
            }
            /// A pool was created.
            10: CreatePool, create_pool, since "0.1.0", of arena {
                /// The pool.
                pool: PoolId as Number,
            } parts {
                /// The options, as they were passed ([`PoolOptions`](crate::PoolOptions)).
                options: PoolOptions as {
                    /// The first option.
                    option_1: Number,
                    /// The second.
                    option_2: Number,
                    /// The third.
                    option_3: Number,
                    /// The fourth.
                    option_4: Number,
                    /// The fifth.
                    option_5: Number,
                },
            } texts {
                /// The name of its class.
                class: &'static str,
            }
            /// A pool is being destroyed. The tracts that it still has are about to be returned to the arena.
            11: DestroyPool, destroy_pool, since "0.1.0", of arena {
                /// The pool.
                pool: PoolId as Number,
            } texts {
                /// The name of its class.
                class: &'static str,
            }
            /// A pool got tracts from its arena.
            12: Extend, extend, since "0.1.0", of arena {
                /// The pool.
                pool: PoolId as Number,
                /// The first address.
                base: Addr as Address,
                /// The bytes, which are whole grains.
                size: usize as Bytes,
            }
            /// A pool is about to return tracts to its arena, and does not use them any more.
            13: Retract, retract, since "0.1.0", of arena {
                /// The pool.
                pool: PoolId as Number,
                /// The first address.
                base: Addr as Address,
                /// The bytes, which are whole grains.
                size: usize as Bytes,
            }
            /// An allocation point was created.
            20: CreatePoint, create_point, since "0.1.0", of arena {
                /// The pool that it allocates in.
                pool: PoolId as Number,
                /// Its buffer.
                buffer: Addr as Handle,
                /// The ranks of its buffer, as bits.
                ranks: RankSet as Number,
            } texts {
                /// Whether the buffer serves the program or the pool system itself.
                kind: BufferKind,
            }
            /// An allocation point is being dropped. Its buffer is already empty.
            21: DestroyPoint, destroy_point, since "0.1.0", of arena {
                /// The pool that it allocated in.
                pool: PoolId as Number,
                /// Its buffer.
                buffer: Addr as Handle,
            }
            /// A buffer was filled.
            22: Fill, fill, since "0.1.0", of arena {
                /// The pool that the memory is from.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// Where the next object begins.
                base: Addr as Address,
                /// The bytes from there to the buffer's end.
                size: usize as Bytes,
            }
            /// A buffer returned what it did not use, or objects that were popped.
            23: Empty, empty, since "0.1.0", of arena {
                /// The pool that the memory was returned to.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// The first address; zero for objects that were popped, because those may have been in
                /// several blocks.
                base: Addr as Address,
                /// The bytes that were returned.
                size: usize as Bytes,
            }
            /// The owner of a buffer handled one or more trips.
            24: Trip, trip, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// How many trips were requested since trips were last handled.
                requests: usize as Count,
            }
            /// A buffer was flipped.
            25: Flip, flip, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
            } parts {
                /// The memory of the objects that the flip saw.
                objects: AddrRange as {
                    /// The first address of the objects that the flip saw.
                    base: Address,
                    /// The bytes of these objects.
                    size: Bytes,
                },
            }
            /// A commit failed because a flip had not seen the object.
            26: CommitFailed, commit_failed, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// The address of the object.
                object: Addr as Address,
                /// Its size, as the pool rounded it.
                size: usize as Bytes,
            }
            /// A frame was pushed.
            27: PushFrame, push_frame, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// Where the next object begins; zero if the buffer has no memory.
                init: Addr as Address,
            }
            /// A frame was popped.
            28: PopFrame, pop_frame, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// The address that [`PushFrame`](Self::PushFrame) had.
                init: Addr as Address,
                /// The bytes of the objects that were taken back.
                size: usize as Bytes,
            }
            /// Memory for an object was reserved.
            32: Reserve, reserve, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// The address of the object; in a batch, of the first.
                object: Addr as Address,
                /// The size, as the pool rounded it; in a batch, of all objects together.
                size: usize as Bytes,
                /// The size of one object: less than `size` for a batch.
                unit: usize as Bytes,
                /// The size that was asked for; in a batch, for all objects together.
                requested: usize as Bytes,
                /// The alignment that was asked for.
                align: usize as Bytes,
            } texts {
                /// The name of the object's type, if the call that allocates it names one.
                type_name: Option<&'static str>,
            }
            /// A point refused to reserve memory.
            29: RefuseReserve, refuse_reserve, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// The size that was asked for; in a batch, for all objects together.
                requested: usize as Bytes,
                /// The alignment that was asked for.
                align: usize as Bytes,
            } texts {
                /// The name of the objects' type, if the call names one.
                type_name: Option<&'static str>,
                /// The name of the error.
                error: Error,
            }
            /// The owner of a point emptied it. What its buffer returned is in [`Empty`](Self::Empty).
            30: EmptyPoint, empty_point, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
            }
            /// An object was freed through a point, which may keep its memory.
            31: FreeAtPoint, free_at_point, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// The address that the object had.
                object: Addr as Address,
                /// The size that it was freed with.
                size: usize as Bytes,
                /// The alignment that it was freed with.
                align: usize as Bytes,
            }
            /// What was reserved was committed.
            33: Commit, commit, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// The address of the object; in a batch, of the first.
                object: Addr as Address,
                /// The bytes that were committed: of a batch perhaps less than was reserved.
                size: usize as Bytes,
            }
            /// What was reserved was abandoned, or its commit failed.
            34: Abandon, abandon, since "0.1.0", of arena {
                /// The pool of the buffer.
                pool: PoolId as Number,
                /// The buffer.
                buffer: Addr as Handle,
                /// The address of the object; in a batch, of the first.
                object: Addr as Address,
            }
            /// A pool or a cache allocated an object, without a point.
            35: Alloc, alloc, since "0.1.0", of arena {
                /// The pool.
                pool: PoolId as Number,
                /// The address of the object.
                object: Addr as Address,
                /// The size that was asked for.
                size: usize as Bytes,
                /// The alignment that was asked for.
                align: usize as Bytes,
            } texts {
                /// The name of the object's type, if the call that allocated it has a type.
                type_name: Option<&'static str>,
            }
            /// An object was freed to a pool or a cache.
            36: Free, free, since "0.1.0", of arena {
                /// The pool.
                pool: PoolId as Number,
                /// The address that the object had.
                object: Addr as Address,
                /// The size that it was allocated with.
                size: usize as Bytes,
                /// The alignment that it was allocated with.
                align: usize as Bytes,
            }
            /// A pool or a cache refused to allocate an object.
            38: RefuseAlloc, refuse_alloc, since "0.1.0", of arena {
                /// The pool.
                pool: PoolId as Number,
                /// The size that was asked for.
                size: usize as Bytes,
                /// The alignment that was asked for.
                align: usize as Bytes,
            } texts {
                /// The name of the object's type, if the call has a type.
                type_name: Option<&'static str>,
                /// The name of the error.
                error: Error,
            }
            /// An object was to become one of another layout, in a pool or a cache.
            39: Resize, resize, since "0.1.0", of arena {
                /// The pool.
                pool: PoolId as Number,
                /// The address of the object.
                object: Addr as Address,
                /// The size that it had.
                size: usize as Bytes,
                /// The alignment that it had.
                align: usize as Bytes,
                /// The size that was asked for.
                new_size: usize as Bytes,
                /// The alignment that was asked for.
                new_align: usize as Bytes,
                /// Where it is now; zero if it stays as it was.
                resized: Addr as Address,
            }
            /// An object was sampled.
            37: Sample, sample, since "0.1.0", of arena {
                /// The pool; none for an object of the program's global allocator, or if it is not known.
                pool: Option<PoolId> as Number,
                /// The address of the object.
                object: Addr as Address,
                /// Its size.
                size: usize as Bytes,
                /// The byte that was drawn, counted from the object's first, which is zero.
                offset: usize as Bytes,
                /// The mean in bytes that was in force when the byte was drawn.
                mean: u32 as Bytes,
            } texts {
                /// The name of the way by which it was allocated, as the sampler calls it.
                kind: &'static str,
                /// The name of the pool's class, if it is known.
                class: Option<&'static str>,
                /// The name of the object's type, if the call that allocates it names one.
                type_name: Option<&'static str>,
            }
            /// A unit of a pool of packets that the next [`PacketCall`](Self::PacketCall) of this thread moves or names.
            17: PacketUnit, packet_unit, since "0.1.0", of arena {
                /// The pool.
                pool: PoolId as Number,
                /// The number of the unit.
                unit: u32 as Number,
                /// Where its data begin, in bytes from the beginning of the unit.
                start: u32 as Bytes,
                /// The bytes of its data.
                length: u32 as Bytes,
            }
            /// A call on a pool of packets, or on a cache or a ring of it. What a call does not have is zero.
            18: PacketCall, packet_call, since "0.1.0", of arena {
                /// The pool.
                pool: PoolId as Number,
                /// The cache, among those that are there at the same time.
                cache: Addr as Handle,
                /// The number of the ring.
                packet_ring: u32 as Number,
                /// How many units were asked for or passed, or which offset a device named.
                asked: u64 as Number,
                /// The bytes of data that were named; of a burst, the units that it had.
                length: u32 as Bytes,
                /// How many units were moved, each of which has a [`PacketUnit`](Self::PacketUnit) before this, unless they
                /// were reclaimed.
                moved: usize as Count,
                /// How many requests that all caches flush the cache had observed at the end of the call.
                trips: usize as Count,
            } texts {
                /// The name of the call.
                call: &'static str,
                /// The name of the error; empty if the call succeeded.
                error: &'static str,
            }
            /// A thread begins to stop a heap: all of its mutators have to give way.
            40: BeginStop, begin_stop, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The number of the thread's mutator; zero if the thread has none there.
                mutator: u32 as Number,
            }
            /// A heap is stopped: all of its mutators have given way. The time since [`BeginStop`](Self::BeginStop) on
            /// the same thread is the time to stop.
            41: Stop, stop, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
            }
            /// A heap was not stopped in the time that was allowed. All of its mutators go on.
            42: PostponeStop, postpone_stop, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The number of a mutator that did not give way; zero if another thread stopped the heap meanwhile.
                mutator: u32 as Number,
            }
            /// A stop is about to end. The time since [`Stop`](Self::Stop) on the same thread is how long the heap was
            /// stopped.
            43: EndStop, end_stop, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
            }
            /// A mutator is about to wait because its heap is being stopped, on its thread. A mutator that is away
            /// waits only if it comes back during the stop.
            44: GiveWay, give_way, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The number of the mutator.
                mutator: u32 as Number,
            }
            /// A mutator that gave way goes on. The time since [`GiveWay`](Self::GiveWay) on the same thread is its
            /// pause.
            45: GoOn, go_on, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The number of the mutator.
                mutator: u32 as Number,
            }
            /// A collection of a stopped heap begins, all of which is done in this stop.
            46: BeginCollection, begin_collection, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
            } texts {
                /// The name of the reason.
                reason: &'static str,
            }
            /// A collection, or one in steps, knows all objects that it keeps, and begins to sweep. Until here it
            /// marked objects where they are, or copied them.
            52: BeginSweep, begin_sweep, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The bytes of the objects that were copied.
                copied: usize as Bytes,
            }
            /// A collection has ended: what it freed is free.
            47: EndCollection, end_collection, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The bytes of the objects that were searched for references.
                examined: usize as Bytes,
                /// The bytes that were kept: in objects, and in buffers that are still attached.
                kept: usize as Bytes,
                /// The bytes that were freed.
                freed: usize as Bytes,
            }
            /// A step of a collection of a stopped heap begins.
            53: BeginStep, begin_step, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
            }
            /// A step has ended, and perhaps its collection.
            54: EndStep, end_step, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The bytes of the objects that the step searched for references.
                examined: usize as Bytes,
            } parts {
                /// What the whole collection found, if this was its last step.
                collected: Option<Collected> as {
                    /// 1 after the last step of a collection, otherwise 0.
                    done: Number,
                    /// The bytes that the whole collection kept, if it is over; otherwise 0.
                    kept: Bytes,
                    /// The bytes that the whole collection freed, if it is over; otherwise 0.
                    freed: Bytes,
                },
                /// The time that the step was allowed, and that it took, waiting for the stop included; none if its
                /// caller has no clock.
                time: Option<StepTime> as {
                    /// The time allowed; [`u64::MAX`] if the step was allowed any time, or if its caller has no clock.
                    allowed_ns: Count,
                    /// The time taken; [`u64::MAX`] if its caller has no clock.
                    taken_ns: Count,
                },
            }
            /// A thread registers with a heap: its mutator runs as soon as no stop is wanted.
            56: RegisterMutator, register_mutator, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The number of the mutator.
                mutator: u32 as Number,
            }
            /// A mutator is dropped. Another one may have its number.
            57: DropMutator, drop_mutator, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The number of the mutator.
                mutator: u32 as Number,
            }
            /// A root was registered.
            58: RegisterRoot, register_root, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The root, among those that are registered at the same time.
                root: Addr as Handle,
                /// The first word of a table or an area, the cold end of a stack, or what a function is called with.
                base: Addr as Address,
                /// How many words there are; zero for a stack and a function.
                words: usize as Count,
                /// The bits of a word that are its tag.
                mask: usize as Number,
                /// The tag of words that are references.
                pattern: usize as Number,
            } texts {
                /// The name of its kind.
                kind: &'static str,
            }
            /// A root is about to be no root any more.
            59: DropRoot, drop_root, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The root.
                root: Addr as Handle,
            }
            /// A frozen segment was registered.
            60: RegisterFrozen, register_frozen, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The segment, among those that are registered at the same time.
                segment: Addr as Handle,
            } parts {
                /// Its memory.
                memory: AddrRange as {
                    /// The first address of its memory.
                    base: Address,
                    /// The bytes of its memory.
                    size: Bytes,
                },
                /// Its objects.
                objects: AddrRange as {
                    /// The address of its first object.
                    first: Address,
                    /// The bytes of its objects.
                    filled: Bytes,
                },
            }
            /// The end of the objects of a frozen segment moved.
            61: UpdateFrozen, update_frozen, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The segment.
                segment: Addr as Handle,
                /// The bytes of its objects, from the first on.
                filled: usize as Bytes,
            }
            /// A frozen segment is not registered any more.
            62: DropFrozen, drop_frozen, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
                /// The segment.
                segment: Addr as Handle,
            }
            /// A heap was dropped, with what was registered there and leaked.
            63: DropHeap, drop_heap, since "0.1.0", of arena {
                /// The heap.
                heap: Addr as Handle,
            }
            /// The program entered a phase.
            48: Phase, phase, since "0.1.0" {} texts {
                /// The name of the phase that it left.
                from: &'static str,
                /// The name of the phase that it entered.
                to: &'static str,
            }
            /// A thread did something that the contract counts, or an alarm was raised.
            49: Violation, violation, since "0.1.0" {
                /// The index of the thread's slot in the contract, which is not the number that its records have.
                slot: usize as Number,
                /// How many there were.
                count: usize as Count,
                /// The bytes concerned; zero for faults.
                bytes: usize as Bytes,
                /// The address that faulted, or the first argument of a system call; otherwise zero.
                address: usize as Address,
                /// The number of the system call; otherwise zero.
                call: usize as Number,
            } texts {
                /// The name of the record's kind.
                kind: &'static str,
                /// The name of the violation's class.
                class: &'static str,
            }
            /// A thread began an amnesty.
            50: BeginAmnesty, begin_amnesty, since "0.1.0" {
                /// The index of the thread's slot in the contract, which is not the number that its records have.
                slot: usize as Number,
            } texts {
                /// The name of the reason.
                reason: &'static str,
            }
            /// A thread ended an amnesty.
            51: EndAmnesty, end_amnesty, since "0.1.0" {
                /// The index of the thread's slot in the contract, which is not the number that its records have.
                slot: usize as Number,
            } texts {
                /// The name of the reason.
                reason: &'static str,
            }
        }
    };
}
