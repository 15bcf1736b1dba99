//! Bit flips: one bit of one byte of one file of a store at rest is flipped, and the store is
//! opened and read.
//!
//! Allowed outcomes: the start is refused, everything is there, or what is damaged is reported by
//! an error when it is read and all else is there. Forbidden is a missing message, a wrong body or
//! a message that had been settled, without an error. A large store is also worked on before it is
//! opened again and read; it may stop then, since RocksDB does not rewrite what is damaged. The
//! sample of a normal run prints its seed; `RAILBUS_FLIPS=1` visits every byte, and
//! `RAILBUS_FLIPS=10` each tenth, of the files whose paths contain `RAILBUS_FLIP_FILES` if that is
//! set. `RAILBUS_FLIP_COUNT=10000` visits as many bytes, wherever they are.

mod outcome;
mod sample;
mod worked;

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use self::sample::Shape;
use super::bit_flips::outcome::{Expected, Outcome};
use super::*;

/// Flips of one shape of store in a normal run.
const SAMPLE: usize = 40;
/// Of a store that is worked on.
const WORKED_SAMPLE: usize = 24;
/// Zeros at the end of a file beyond which only one byte of each page is visited.
const ZEROS: usize = 512;
const PAGE: usize = 4_096;
/// The same of files that are not read.
const UNREAD: usize = 64;
/// Stores that are open at a time.
const THREADS: usize = 4;

/// A generator of numbers, which needs no more than to be the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((word ^ (word >> 31)) % below as u64).expect("below a usize")
    }
}

/// A bit of a file, by its path in the data directory.
#[derive(Debug)]
struct Flip {
    path: PathBuf,
    byte: usize,
    bit: usize,
}

/// The files of a store, by their paths in it.
fn files_below(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root.join(folder)).expect("listed") {
        let entry = entry.expect("listed");
        let path = folder.join(entry.file_name());
        if entry.file_type().expect("known").is_dir() {
            files_below(root, &path, files);
        } else {
            files.push(path);
        }
    }
    files.sort();
}

/// Every byte of every file, and one bit of each. Of a long tail of zeros, and of a file that no
/// start reads, there are a few only; of a large store there is one byte of each `stride`.
fn all_flips(root: &Path, stride: usize, dice: &mut Dice) -> Vec<Flip> {
    let mut files = Vec::new();
    files_below(root, Path::new(""), &mut files);
    let mut flips = Vec::new();
    let wanted = env::var("RAILBUS_FLIP_FILES").unwrap_or_default();
    files.retain(|path| path.to_string_lossy().contains(&wanted));
    for path in files {
        let content = fs::read(root.join(&path)).expect("read");
        let is_used = |byte: &u8| *byte != 0;
        let used = content.iter().rposition(is_used).map_or(0, |at| at + 1);
        let tail = content.len().min(used + ZEROS);
        let step = match kind_of(&path).as_str() {
            "LOG" | "OPTIONS" | "reserve" => UNREAD,
            "*.journal" | "*.sst" => stride,
            _ => 1,
        };
        for byte in (dice.roll(step)..tail)
            .step_by(step)
            .chain((tail..content.len()).step_by(PAGE))
        {
            let path = path.clone();
            let bit = dice.roll(8);
            flips.push(Flip { path, byte, bit });
        }
    }
    flips
}

/// Whether a store is read as it is found, or used before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Use {
    Read,
    Work,
}

/// Opens a copy of the store at `whole` with one bit flipped.
fn flipped(whole: &Path, flip: &Flip, expected: &Expected, (shape, used): (Shape, Use)) -> Outcome {
    let directory = new_directory();
    copy_files(whole, directory.path());
    let path = directory.path().join(&flip.path);
    let mut content = fs::read(&path).expect("read");
    content[flip.byte] ^= 1 << flip.bit;
    fs::write(&path, content).expect("written");
    let opened = shape.open(directory.path());
    if used == Use::Read {
        return opened.map_or_else(Outcome::Refused, |store| expected.compare(&store));
    }
    let worked = match opened {
        Ok(store) => worked::work(store, directory.path()),
        Err(refused) => return Outcome::Refused(refused),
    };
    let again = shape.open(directory.path());
    match (worked, again) {
        (Ok(()), Ok(store)) => expected.compare(&store),
        (Ok(()), Err(refused)) => Outcome::Stopped(refused.to_string()),
        (Err(stop), Ok(store)) if stop.is_done => match expected.compare(&store) {
            silent @ Outcome::Silent(_) => silent,
            _ => Outcome::Stopped(stop.why),
        },
        (Err(stop), _) => Outcome::Stopped(stop.why),
    }
}

/// The kind of a file: its name without numbers.
fn kind_of(path: &Path) -> String {
    let name = path
        .file_name()
        .expect("a file has a name")
        .to_string_lossy();
    match path.extension() {
        Some(extension) => format!("*.{}", extension.to_string_lossy()),
        None => name.split('-').next().unwrap_or_default().to_owned(),
    }
}

/// Visits some bytes of a store, or all, and fails if one flip was served in silence.
fn sweep(shape: Shape, used: Use) {
    let number = |name| env::var(name).ok().and_then(|value| value.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = number("RAILBUS_FLIP_SEED");
    let seed = seed.unwrap_or_else(|| now.expect("after 1970").as_secs());
    println!("RAILBUS_FLIP_SEED={seed}");
    let mut dice = Dice(seed);
    let whole = shape.build();
    let expected = match used {
        Use::Read => Expected::of(whole.path(), shape),
        Use::Work => {
            let copy = new_directory();
            copy_files(whole.path(), copy.path());
            let store = shape.open(copy.path()).expect("the whole store opens");
            let worked = worked::work(store, copy.path());
            worked.unwrap_or_else(|stop| panic!("a whole store stops: {}", stop.why));
            let sizes = (size_of_journal(whole.path()), size_of_journal(copy.path()));
            assert!(sizes.1 < sizes.0, "no segment is removed: {sizes:?} bytes");
            Expected::of(copy.path(), shape)
        }
    };
    let mut flips = all_flips(whole.path(), shape.stride(), &mut dice);
    if used == Use::Work {
        // Work meets no other file in another way than a start does.
        let is_worked_on = |flip: &Flip| matches!(&*kind_of(&flip.path), "*.journal" | "*.sst");
        flips.retain(is_worked_on);
    }
    let size = |name| number(name).and_then(|size| usize::try_from(size).ok());
    flips = match (size("RAILBUS_FLIPS"), size("RAILBUS_FLIP_COUNT")) {
        (Some(step), _) => flips.into_iter().step_by(step.max(1)).collect(),
        (None, Some(count)) => chosen(flips, count, &mut dice),
        (None, None) => sampled(flips, used, &mut dice),
    };
    let outcomes = visit(whole.path(), &flips, &expected, (shape, used));
    report(shape, &flips, &outcomes);
    let silent: Vec<_> = flips
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| matches!(outcome, Outcome::Silent(_)))
        .map(|(flip, outcome)| format!("{flip:?}: {outcome}"))
        .collect();
    assert!(
        silent.is_empty(),
        "{shape:?} with seed {seed}:\n{}",
        silent.join("\n")
    );
}

/// The outcomes of all flips, in their order.
fn visit(whole: &Path, flips: &[Flip], expected: &Expected, subject: (Shape, Use)) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(flip) = flips.get(at) else {
                return done;
            };
            done.push((at, flipped(whole, flip, expected, subject)));
        }
    };
    let mut outcomes: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let join = |thread: ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        threads.into_iter().flat_map(join).collect()
    });
    outcomes.sort_by_key(|(at, _)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn report(shape: Shape, flips: &[Flip], outcomes: &[Outcome]) {
    let mut tally: BTreeMap<String, [usize; 5]> = BTreeMap::new();
    for (flip, outcome) in flips.iter().zip(outcomes) {
        outcome.check_text(flip);
        tally.entry(kind_of(&flip.path)).or_default()[outcome.column()] += 1;
        if env::var("RAILBUS_FLIPS_SHOW").is_ok() {
            println!("{flip:?}: {outcome}");
        }
    }
    println!(
        "{shape:?}: {} flips; refused, healed, heard, silent, stopped:",
        flips.len()
    );
    for (kind, columns) in tally {
        println!("  {kind:12} {columns:?}");
    }
}

/// As many flips of each kind of file as there are of others, so that small files get their turn.
fn sampled(flips: Vec<Flip>, used: Use, dice: &mut Dice) -> Vec<Flip> {
    let mut by_kind: BTreeMap<String, Vec<Flip>> = BTreeMap::new();
    for flip in flips {
        by_kind.entry(kind_of(&flip.path)).or_default().push(flip);
    }
    let sample = match used {
        Use::Read => SAMPLE,
        Use::Work => WORKED_SAMPLE,
    };
    let each = sample.div_ceil(by_kind.len());
    let mut all = Vec::new();
    for (_, flips) in by_kind {
        all.extend(chosen(flips, each, dice));
    }
    all
}

/// Some of all flips, each once.
fn chosen(mut flips: Vec<Flip>, count: usize, dice: &mut Dice) -> Vec<Flip> {
    let mut chosen = Vec::new();
    for _flip in 0..count.min(flips.len()) {
        let at = dice.roll(flips.len());
        chosen.push(flips.swap_remove(at));
    }
    chosen
}

#[test]
fn no_flipped_bit_in_a_closed_store_is_served_in_silence() {
    sweep(Shape::Closed, Use::Read);
}

#[test]
fn no_flipped_bit_in_a_store_after_a_crash_is_served_in_silence() {
    sweep(Shape::Crashed, Use::Read);
}

#[test]
fn no_flipped_bit_in_a_store_after_a_power_cut_is_served_in_silence() {
    sweep(Shape::PowerCut, Use::Read);
}

#[test]
fn no_flipped_bit_in_a_buffered_store_after_a_crash_is_served_in_silence() {
    sweep(Shape::Buffered, Use::Read);
}

#[test]
fn no_flipped_bit_in_a_backup_is_served_in_silence() {
    sweep(Shape::Backup, Use::Read);
}

#[test]
fn no_flipped_bit_in_a_store_with_a_body_file_is_served_in_silence() {
    sweep(Shape::Staged, Use::Read);
}

#[test]
fn no_flipped_bit_in_a_large_store_is_served_in_silence() {
    sweep(Shape::Large, Use::Read);
}

#[test]
fn no_flipped_bit_in_a_large_store_is_served_in_silence_after_it_is_worked_on() {
    sweep(Shape::Large, Use::Work);
}
