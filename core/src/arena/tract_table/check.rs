//! Checking a tract table.

use super::TractTable;
use super::entry::{PageState, Tract};
use super::free_runs::{FreeCounts, TABLE, check_run, listed};
use crate::values::check::{CheckError, CheckLevel, ensure};

impl TractTable {
    /// Checks the table as far as `level` says. A deep check walks all entries.
    ///
    /// # Errors
    /// The first rule that is found broken.
    pub fn check(&self, entries: &[Tract], level: CheckLevel) -> Result<(), CheckError> {
        if level >= CheckLevel::Shallow {
            ensure(TABLE, self.top <= self.capacity, "top <= capacity")?;
            ensure(TABLE, self.spare <= self.top, "spare <= top")?;
            ensure(TABLE, entries.len() as u64 >= u64::from(self.top), "every grain has an entry")?;
            self.spare_runs.check_mask()?;
            self.void_runs.check_mask()?;
        }
        if level >= CheckLevel::Deep {
            let spare = self.spare_runs.check(entries, self.top)?;
            let void = self.void_runs.check(entries, self.top)?;
            let adds_up = spare.grains == u64::from(self.spare);
            ensure(TABLE, adds_up, "the spare runs add up to the spare count")?;
            self.check_entries(entries, &spare, &void)?;
        }
        Ok(())
    }

    /// Checks every entry below the top, and that the free runs among them are
    /// as many, and as long, as those of the lists: `spare` and `void`.
    fn check_entries(
        &self,
        entries: &[Tract],
        spare: &FreeCounts,
        void: &FreeCounts,
    ) -> Result<(), CheckError> {
        let (mut found_spare, mut found_void, mut guards) = (FreeCounts::default(), FreeCounts::default(), 0);
        let mut before = PageState::empty();
        let mut index = 0;
        while index < self.top {
            let tract = listed(entries, index, self.top)?;
            let state = tract.state();
            ensure(TABLE, state.bits().count_ones() == 1, "a grain has one state")?;
            let owned = state == PageState::ALLOCATED;
            ensure(
                TABLE,
                owned == tract.owner().is_some(),
                "allocated grains, and no others, have an owner",
            )?;
            let found = match state {
                PageState::SPARE => &mut found_spare,
                PageState::VOID => &mut found_void,
                _ => {
                    guards += u32::from(state == PageState::GUARD);
                    before = state;
                    index += 1;
                    continue;
                }
            };
            ensure(TABLE, state != before, "free runs of one kind do not touch")?;
            let count = check_run(entries, index, state, self.top)?;
            found.add(count);
            before = state;
            index += count;
        }
        ensure(TABLE, before != PageState::VOID, "no void run ends at the top")?;
        ensure(TABLE, guards == self.guards, "guards are counted")?;
        ensure(TABLE, found_spare == *spare, "every spare run is in a list")?;
        ensure(TABLE, found_void == *void, "every void run is in a list")
    }
}
