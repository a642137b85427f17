//! What the loader does in a step of its work: it reads what the kernel half reports, decides, and
//! writes what follows.

use super::{checks, own, Step};
use sfs_kernel_model::loader_ffi::{self as ffi, Completion, ModeSwitch};
use sfs_kernel_model::program::in_program;
use sfs_kernel_model::state::{with, CpuId, State};
use sfs_kernel_model::timeline::Entry;
use sfs_kernel_rules::ends;
use sfs_policy::learn::Change;
use sfs_policy::{Mode, Transition};
use std::ffi::c_void;

/// poll() has returned: `Control::serve()`, `take_events()`.
pub fn look(s: &mut State) {
    let now = s.now;
    let loader = own(s);
    loader.is_asked = false;
    // `HintListener`: hints are applied before anything else is looked at.
    if std::mem::take(&mut loader.is_hinted) {
        loader.steps.push_back(Step::Hints);
    }
    if !loader.has_events() && loader.learn_in(now) != Some(0) {
        return;
    }
    loader.taken_at = now;
    loader.done.reads += 1;
    let [events, completions] = [0, 1].map(|number| loader.rings[number].consume());
    // SAFETY: both are plain numbers.
    let (events, completions) = unsafe {
        (
            events.iter().filter_map(|bytes| ffi::record(bytes)),
            completions.iter().filter_map(|bytes| ffi::record(bytes)),
        )
    };
    if loader.learning.is_some() {
        loader.steps.push_back(Step::Learn(completions.collect()));
    }
    loader.steps.extend(events.map(Step::Event));
    let said = format!("reads {} records", loader.steps.len());
    s.tell(Entry::Loader(said));
}

/// `Control::learn()`.
pub fn learn(s: &mut State, completions: &[Completion]) {
    let now = s.now;
    let is_whole = own(s).rings[1].lost() == 0;
    if let Some(wrong) = ends::check(completions).filter(|_| is_whole) {
        s.finding(wrong);
    }
    let loader = own(s);
    let learning = loader.learning.as_mut().expect("it learns");
    let (changes, batch) = (learning.take(completions, now), learning.batch());
    match changes {
        // SAFETY: writes a number of the kernel half.
        None => unsafe { ffi::model_set_default_table(ffi::NO_TABLE) },
        Some(changes) => changes.into_iter().for_each(|change| hand_over(s, change)),
    }
    // SAFETY: as above.
    unsafe { ffi::model_set_completion_batch(batch) };
}

/// The trait `Ranking` of the loader.
fn hand_over(s: &mut State, change: Change) {
    let maps = own(s).maps;
    let mut write = |map: *const c_void, key: &[u8], value: &[u8]| {
        let map = s.maps.get_mut(&(map as usize)).expect("the map is there");
        // SAFETY: keys and values have the sizes that the kernel half declares. A function
        // without room keeps its rank, as there.
        let _ = unsafe { map.update(key.as_ptr(), value.as_ptr(), 0) };
    };
    match change {
        Change::Table(id, table) => {
            let value = [&table.rank[..], &table.worse[..], &[table.burst], &[0; 11]].concat();
            write(maps.rank_tables, &u32::from(id).to_ne_bytes(), &value);
        }
        // SAFETY: writes a number of the kernel half.
        Change::DefaultTable(id) => unsafe { ffi::model_set_default_table(id.into()) },
        Change::Function(function, id) => {
            let (key, value) = (function.to_ne_bytes(), u32::from(id).to_ne_bytes());
            write(maps.function_tables, &key, &value);
        }
        Change::Forgotten(function) => {
            let map = s.maps.get_mut(&(maps.function_tables as usize));
            // SAFETY: as above.
            unsafe {
                map.expect("the map is there")
                    .delete(function.to_ne_bytes().as_ptr())
            };
        }
    }
}

/// `Control::take_events()`, for one event.
pub fn take(s: &mut State, event: ffi::Event) {
    match event.kind {
        ffi::ARRIVALS => {
            let window = own(s).plan.window.get() as u64;
            if !event.value.is_multiple_of(window) {
                s.finding(format!(
                    "{} arrivals are reported, in windows of {window}",
                    event.value
                ));
            }
            on_arrivals(s, event.value)
        }
        ffi::OVERLOAD_BEGUN | ffi::OVERLOAD_OVER => on_delay(s, event),
        kind => s.finding(format!(
            "the loader gets an event of the unknown kind {kind}"
        )),
    }
}

/// `Control::on_arrivals()`, `IatMap::read_to()`.
fn on_arrivals(s: &mut State, total: u64) {
    let now = s.now;
    let loader = own(s);
    let (map, read) = (loader.maps.arrivals, loader.arrivals_read);
    let oldest = total.saturating_sub(ffi::IAT_SLOTS).max(read);
    let map = &s.maps[&(map as usize)];
    let mut arrivals = Vec::new();
    for number in oldest..total {
        let slot = (number % ffi::IAT_SLOTS) as u32;
        // SAFETY: the map has this slot, of two numbers.
        let [seq, at] = unsafe { *map.lookup((&raw const slot).cast(), 0).cast::<[u64; 2]>() };
        arrivals.extend((seq == number + 1).then_some(at));
    }
    let loader = own(s);
    loader.arrivals_read = read.max(total);
    if let Some(slice_ns) = loader.controller.on_arrivals(&arrivals) {
        loader.set_slice(now, slice_ns);
        s.tell(Entry::Loader(format!("sets S to {} us", slice_ns / 1_000)));
    }
    checks::arrivals(s, oldest..total, &arrivals);
}

/// `Control::on_delay()`.
fn on_delay(s: &mut State, event: ffi::Event) {
    let loader = own(s);
    let is_begun = event.kind == ffi::OVERLOAD_BEGUN;
    let is_dismissed = loader.is_in_force() || {
        let transition = loader.controller.on_delay(event.value);
        let mode = transition.map(Transition::mode);
        if let Some(mode) = mode {
            loader.steps.push_front(Step::Switch(mode));
        }
        mode.is_none() && is_begun && event.value < ffi::WATCHDOG_GUARD_NS
    };
    if is_dismissed {
        loader.done.dismissed += 1;
        // SAFETY: writes a number of the kernel half.
        unsafe { ffi::model_dismiss_overload() };
        s.tell(Entry::Loader("dismisses overload".into()));
    }
}

/// `KernelHalf::switch_mode()`: one call of the kernel half; there are more if tasks are left.
pub fn switch(cpu: CpuId, mode: Mode) {
    let mut arg = ModeSwitch {
        mode: u32::from(mode == Mode::FairOnly),
        moved: 0,
        left: 0,
    };
    let before = with(|s| checks::waiting(s));
    in_program(cpu, || {
        // SAFETY: `arg` lives during the call.
        unsafe { ffi::switch_mode(&mut arg) }
    });
    with(|s| {
        let now = s.now;
        let loader = own(s);
        loader.told.mode = mode;
        loader.watch.switched_at = now;
        if arg.left != 0 {
            loader.steps.push_front(Step::Switch(mode));
        }
        s.tell(Entry::Loader(format!(
            "switches to {mode:?}, {} tasks move",
            arg.moved
        )));
    });
    checks::switched(mode, before, arg);
}
