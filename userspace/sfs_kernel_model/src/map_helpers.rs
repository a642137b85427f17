//! The helpers for maps and ring buffers that the kernel half calls. It passes its own maps, and
//! keys and values of their sizes, as the verifier has it; the functions here rely on that.

use crate::ffi::TaskStruct;
use crate::helpers::task_of;
use crate::lines;
use crate::oddities::lacks_memory;
use crate::race;
use crate::reader;
use crate::state::{with, State};
use sfs_kernel_objects::maps::{Context, Map};
use std::ffi::c_void;
use std::ptr;

/// BPF_LOCAL_STORAGE_GET_F_CREATE.
const CREATE: u64 = 1;
const ENOMEM: i64 = -12;

#[no_mangle]
unsafe extern "C" fn model_map_lookup_elem(map: *const c_void, key: *const u8) -> *mut u8 {
    race::point();
    with(|s| {
        let of = &s.maps[&(map as usize)];
        // SAFETY: the kernel half gives a key of this map.
        let value = unsafe { of.lookup(key, s.here) };
        lines::name_value(map, value, of.value_size());
        value
    })
}

#[no_mangle]
unsafe extern "C" fn model_map_update_elem(
    map: *const c_void,
    key: *const u8,
    value: *const u8,
    flags: u64,
) -> i64 {
    race::point();
    // Without a new cgroup's entry there is no cgroup, of which the model knows nothing.
    let may_fail = map != crate::loader_ffi::maps().groups;
    if may_fail && with(lacks_memory) {
        return ENOMEM;
    }
    // SAFETY: the kernel half gives a key and a value of this map.
    with(|s| unsafe { own(s, map).update(key, value, flags) })
}

#[no_mangle]
unsafe extern "C" fn model_map_delete_elem(map: *const c_void, key: *const u8) -> i64 {
    race::point();
    // SAFETY: the kernel half gives a key of this map.
    with(|s| unsafe { own(s, map).delete(key) })
}

#[no_mangle]
unsafe extern "C" fn bpf_map_push_elem(map: *const c_void, value: *const u8, _flags: u64) -> i64 {
    race::point();
    // SAFETY: the kernel half gives a value of this map.
    with(|s| unsafe { own(s, map).push(value) })
}

#[no_mangle]
unsafe extern "C" fn bpf_map_pop_elem(map: *const c_void, value: *mut u8) -> i64 {
    race::point();
    // SAFETY: the kernel half gives room for a value of this map.
    with(|s| unsafe { own(s, map).pop(value) })
}

#[no_mangle]
unsafe extern "C" fn bpf_map_peek_elem(map: *const c_void, value: *mut u8) -> i64 {
    race::point();
    // SAFETY: the kernel half gives room for a value of this map.
    with(|s| unsafe { own(s, map).peek(value) })
}

fn own(s: &mut State, map: *const c_void) -> &mut Map {
    s.maps
        .get_mut(&(map as usize))
        .expect("a map of the kernel half")
}

#[no_mangle]
extern "C" fn bpf_task_storage_get(
    map: *const c_void,
    task: *const TaskStruct,
    _value: *const c_void,
    flags: u64,
) -> *mut u8 {
    race::point();
    let Some(task) = task_of(task) else {
        return ptr::null_mut();
    };
    with(|s| {
        let size = s.maps[&(map as usize)].value_size();
        let lacks = flags & CREATE != 0 && s.tasks[task].context.is_none() && lacks_memory(s);
        let context = &mut s.tasks[task].context;
        if flags & CREATE != 0 && !lacks {
            return context.get_or_insert_with(|| Context::new(size)).place();
        }
        let place = context.as_ref().map_or(ptr::null_mut(), Context::place);
        lines::name_value(map, place, size);
        place
    })
}

#[no_mangle]
unsafe extern "C" fn bpf_ringbuf_output(
    map: *mut c_void,
    data: *mut c_void,
    size: u64,
    flags: u64,
) -> i64 {
    race::point();
    // SAFETY: the kernel half gives a record of this size.
    let record = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size as usize) };
    with(|s| reader::output(s, map, record, flags))
}

/// The kernel half asks for BPF_RB_AVAIL_DATA only.
#[no_mangle]
extern "C" fn bpf_ringbuf_query(map: *mut c_void, _flags: u64) -> u64 {
    race::point();
    with(|s| reader::unread(s, map))
}
