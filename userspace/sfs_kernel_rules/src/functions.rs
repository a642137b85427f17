//! What is published about a function when one of its invocations ends.

use crate::ends;
use crate::policy::{Expected, POLICY_LEARNED};
use crate::watch::Call;
use sfs_kernel_model::ffi;
use sfs_kernel_model::state::with;

/// `struct sfs_function`, without the names at its begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Function {
    names: [u64; 4],
    cgroup: u64,
    invocations: u64,
    demoted: u64,
    service_ns: u64,
    service_max_ns: u64,
    service_last_ns: u64,
}

/// The map `functions`, by its key's and its value's size.
fn map() -> Option<usize> {
    with(|s| {
        let mut count = 0;
        // SAFETY: returns a table of `count` entries that lives forever.
        let maps = unsafe {
            let first = ffi::model_list_maps(&mut count);
            std::slice::from_raw_parts(first, count as usize)
        };
        let of = |info: &&sfs_kernel_model::ffi::MapInfo| {
            info.key_size == 8 && info.value_size as usize == size_of::<Function>()
        };
        let map = maps.iter().find(of)?.map as usize;
        s.maps.contains_key(&map).then_some(map)
    })
}

/// What is published about a function; `None`: nothing yet.
pub fn published(function: u64) -> Option<Function> {
    let map = map()?;
    with(|s| {
        // SAFETY: the key is one of this map, and the value has this size.
        unsafe {
            let place = s.maps[&map].lookup((&raw const function).cast(), 0);
            (!place.is_null()).then(|| *place.cast::<Function>())
        }
    })
}

/// An invocation that has ended is published, and nothing else.
pub fn compare(call: &Call, e: &Expected) {
    let before = call.was.function;
    let key = call.was.look.i_function as u64;
    let now = published(key);
    let Some((record, demoted)) = e.ended else {
        if now != before && with(|s| s.odd.of.no_memory_of == 0) {
            call.finding("statistics of its function change, though no invocation ends");
        }
        return;
    };
    let used = record.service_ns;
    if call.was.look.policy == POLICY_LEARNED {
        ends::note(record);
    }
    if with(|s| s.odd.of.no_memory_of > 0) {
        return;
    }
    let l = &call.was.look;
    let mut expected = before.unwrap_or(Function {
        names: [l.comm_a, l.comm_b, l.parent_a, l.parent_b].map(|word| word as u64),
        ..Function::default()
    });
    expected.cgroup = l.sandbox as u64;
    expected.invocations += 1;
    expected.demoted += u64::from(demoted);
    expected.service_ns += used;
    expected.service_max_ns = expected.service_max_ns.max(used);
    expected.service_last_ns = used;
    if now != Some(expected) {
        call.finding(&format!(
            "its function is published as {now:?}, and should be as {expected:?}"
        ));
    }
}
