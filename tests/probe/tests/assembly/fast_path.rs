//! What is counted in a fast path: reserve and commit, and nothing else.

use crate::OBJECT;
use crate::listing::{End, Function, Instruction, base};

impl Function {
    /// The one quiet path that declares an object.
    pub(crate) fn fast_path(&self, end: End) -> FastPath {
        let found: Vec<_> = self
            .quiet_paths()
            .into_iter()
            .filter(|(ends, _)| *ends == end)
            .filter_map(|(_, path)| FastPath::read(path))
            .collect();
        let [path] = &found[..] else { panic!("there should be one fast path, not {found:#?}") };
        path.clone()
    }
}

/// What is counted in a fast path.
#[derive(Clone, Debug)]
pub(crate) struct FastPath {
    /// Reserve and commit, and nothing else.
    pub(crate) code: Vec<Instruction>,
    loads: usize,
    descriptor_stores: usize,
    pub(crate) object_bytes: usize,
    /// Whether `limit` is loaded again after the last store to the descriptor, and
    /// the loaded value decides a jump.
    pub(crate) rechecks_limit: bool,
    /// Whether `limit` is loaded at all.
    pub(crate) checks_limit: bool,
}

impl FastPath {
    /// `None` if no object is declared on the path: it ends with the object's own stores if that was freed before, and is
    /// allocated again.
    fn read(path: Vec<Instruction>) -> Option<Self> {
        // The descriptor is reached through the base of the first comparison's load,
        // or of the store that comes last.
        let declare = path.iter().rposition(|instruction| instruction.store().is_some())?;
        let descriptor = base(path[declare].store()?).to_owned();
        let stores = path.iter().rev().filter(|instruction| instruction.store().is_some());
        let last_ones =
            stores.take_while(|store| store.store().is_some_and(|place| base(place) == descriptor));
        if last_ones.map(width).sum::<usize>() >= OBJECT {
            return None;
        }
        let init = path[declare].store()?.to_owned();
        let is_descriptor = |place: &&str| base(place) == descriptor;
        let object_store =
            |instruction: &Instruction| instruction.store().is_some_and(|place| base(place) != descriptor);
        let object_bytes = path.iter().filter(|instruction| object_store(instruction)).map(width).sum();
        let own: Vec<_> = without_frame(without_counting(path.clone()))
            .into_iter()
            .filter(|instruction| !object_store(instruction))
            .collect();
        let limits = |path: &[Instruction]| {
            let loads = path.iter().enumerate().filter(|(_, instruction)| {
                instruction.load().filter(is_descriptor).is_some_and(|place| place != init)
            });
            loads.map(|(index, _)| decides(&path[index..])).collect::<Vec<_>>()
        };
        Some(Self {
            loads: own.iter().filter(|instruction| instruction.load().is_some()).count(),
            descriptor_stores: own.iter().filter(|instruction| instruction.store().is_some()).count(),
            object_bytes,
            rechecks_limit: limits(&path[declare..]).contains(&true),
            checks_limit: limits(&path[..declare]).contains(&true),
            code: own,
        })
    }

    pub(crate) fn figures(&self) -> (usize, usize, usize) {
        (self.code.len(), self.loads, self.descriptor_stores)
    }
}

/// The bytes that a store writes.
fn width(store: &Instruction) -> usize {
    let size = store.operands[0].split_whitespace().next().unwrap_or_default();
    match size {
        "xmmword" => 16,
        "qword" => 8,
        "dword" => 4,
        "word" => 2,
        _ => 1,
    }
}

/// Whether what the first instruction loads is tested by a jump.
fn decides(path: &[Instruction]) -> bool {
    let Some((load, rest)) = path.split_first() else { return false };
    let tested = |test: &Instruction, jump: Option<&Instruction>| {
        test.is_comparison() && jump.is_some_and(Instruction::is_conditional_jump)
    };
    let Some(register) = load.target() else { return tested(load, rest.first()) };
    for (index, instruction) in rest.iter().enumerate() {
        if instruction.is_comparison() && instruction.mentions(register) {
            return tested(instruction, rest.get(index + 1));
        }
        if instruction.target() == Some(register) {
            return false;
        }
    }
    false
}

/// Leaves out what counts the rounds of a loop: the register that goes up by one,
/// what it is copied to and compared with, and the jumps on that.
fn without_counting(path: Vec<Instruction>) -> Vec<Instruction> {
    let Some(counter) = path.iter().find(|instruction| instruction.is(&["inc", "dec"])) else { return path };
    let counter = counter.operands[0].clone();
    let mut kept: Vec<Instruction> = Vec::new();
    let mut counting = false;
    for instruction in path {
        // The jump back belongs to the loop, and so does one on the count.
        let jumps = instruction.mnemonic == "jmp" || (counting && instruction.is_conditional_jump());
        counting = instruction.mentions(&counter);
        if !counting && !jumps {
            kept.push(instruction);
        }
    }
    kept
}

/// Leaves out what a function does to begin and end: saving and restoring
/// registers, making room on the stack, and getting ready for calls that are not
/// made.
fn without_frame(path: Vec<Instruction>) -> Vec<Instruction> {
    let is_frame = |instruction: &Instruction| {
        instruction.is(&["push", "pop", "ret"])
            || instruction.target() == Some("rsp")
            || instruction.load().is_some_and(|place| base(place) == "rip")
    };
    path.into_iter().filter(|instruction| !is_frame(instruction)).collect()
}

/// Leaves out where jumps lead to: labels are numbered through the listing.
pub(crate) fn without_labels(mut path: Vec<Instruction>) -> Vec<Instruction> {
    let jumps = path.iter_mut().filter(|instruction| instruction.mnemonic.starts_with('j'));
    jumps.for_each(|jump| jump.operands.clear());
    path
}

/// What is read from a commit that consists of these instructions, after a
/// reserve that loads `limit` into `rcx`.
fn read(commit: &str) -> FastPath {
    let reserve = "
        mov rax, qword ptr [rdi + 32]
        mov rcx, qword ptr [rdi + 48]
        lea rdx, [rax + 32]
        cmp rdx, rcx
        ja .LBB0_9";
    let listing = format!("probe:\n{reserve}\n{commit}\n    ret\n.LBB0_9:\n    call slow\n.Lfunc_end0:\n");
    Function::find(&listing, "probe").fast_path(End::Return)
}

#[test]
fn the_reading_tells_a_commit_that_tests_from_one_that_does_not() {
    let store = "mov qword ptr [rdi + 32], rdx";
    let load = "mov rcx, qword ptr [rdi + 48]";
    let test = "test rcx, rcx\n    je .LBB0_9";
    let rechecks = |commit: &[&str]| read(&commit.join("\n")).rechecks_limit;
    assert!(rechecks(&[store, load, test]));
    assert!(rechecks(&[store, "cmp qword ptr [rdi + 48], 0\n    je .LBB0_9"]));
    assert!(!rechecks(&[store]), "no test");
    assert!(!rechecks(&[store, test]), "a test of what was loaded before");
    assert!(!rechecks(&[load, store, test]), "a load too early");
    assert!(!rechecks(&[store, load]), "a load that nothing depends on");
    assert!(!rechecks(&[store, load, "mov rcx, rax", test]), "a load that is written over");
    assert!(!rechecks(&[store, "mov rcx, qword ptr [rdi + 32]", test]), "a load of init, not of limit");
    assert_eq!(read(&[store, load, test].join("\n")).figures(), (9, 3, 1));
}
