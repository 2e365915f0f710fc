//! Which objects were written, as the platform knows it (design/gc.md `.watched`, `.watched.older`, `.watched.full`).

use tripoint_core::{Addr, AddrRange, Arena, WriteWatch, Written};

use crate::at_stop::AtStop;
use crate::classes::pool::Pool;
use crate::scans::format::Format;
use crate::segments::generation::Generation;
use crate::segments::writes::Writes;

impl<A: Arena, F: Format> Pool<A, F> {
    /// Who says which objects were written, as long as the platform was not asked.
    pub(crate) fn writes_unwatched(&self) -> Writes {
        match (self.ranks.is_empty(), self.format.notes_writes()) {
            (true, _) => Writes::Unneeded,
            (false, true) => Writes::Noted,
            (false, false) => Writes::Unknown,
        }
    }

    /// Notes the pages that were written on the cards of generations above `oldest`. Returns who says what was written.
    pub(crate) fn note_pages_watched(
        &self,
        at: AtStop<'_>,
        oldest: Generation,
        watch: Option<&dyn WriteWatch>,
    ) -> Writes {
        let mut writes = self.writes_unwatched();
        if writes == Writes::Unknown
            && let Some(watch) = watch
        {
            let written = self.take_written(at, oldest, watch, |pages| self.note_pages(pages));
            if written == Written::Known {
                writes = Writes::Watched;
            }
        }
        self.state.lock().writes = writes;
        writes
    }

    /// Passes what was written in segments of generations above `oldest` to `visit`, and watches them from here on.
    pub(crate) fn take_written(
        &self,
        _at: AtStop<'_>,
        oldest: Generation,
        watch: &dyn WriteWatch,
        mut visit: impl FnMut(AddrRange),
    ) -> Written {
        let mut all = Written::Known;
        self.for_each_run_above(oldest, |run| {
            // SAFETY: segments are whole grains that the arena allocated for this pool. The heap is stopped, so no other
            // thread asks for them.
            if unsafe { watch.take_written(run, &mut visit) } == Written::Unknown {
                all = Written::Unknown;
            }
        });
        all
    }

    /// Notes written pages, which lie in segments of this pool, on the cards of these.
    fn note_pages(&self, pages: AddrRange) {
        let mut from = pages.base();
        while from < pages.limit() {
            let segment = self.segment_of(from);
            let limit = segment.get().limit().min(pages.limit());
            segment.note_writes(from, limit);
            from = limit;
        }
    }

    /// Calls `visit` with the memory of segments of generations above `oldest`: neighbours are one run, because a
    /// question costs more than a page of its answer.
    fn for_each_run_above(&self, oldest: Generation, mut visit: impl FnMut(AddrRange)) {
        let (arena, id) = (self.header.arena(), self.header.id());
        let mut run = AddrRange::new(Addr::ZERO, Addr::ZERO);
        let mut end_run = |run: &mut Option<AddrRange>| {
            run.take().filter(|run| !run.is_empty()).into_iter().for_each(&mut visit);
        };
        let mut from = Addr::ZERO;
        while let Some(tracts) = arena.next_tracts(id, from) {
            from = tracts.range().base();
            while from < tracts.range().limit() {
                let segment = self.segment_of(from).get();
                if segment.generation() > oldest {
                    let base = run.filter(|run| run.limit() == from).map_or(from, AddrRange::base);
                    if base == from {
                        end_run(&mut run);
                    }
                    run = AddrRange::new(base, segment.limit());
                }
                from = segment.limit();
            }
        }
        end_run(&mut run);
    }
}
