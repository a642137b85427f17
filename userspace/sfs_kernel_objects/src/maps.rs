//! BPF maps. Values do not move while they are in a map: the kernel half keeps pointers to them.

use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::ptr;

/// `enum bpf_map_type`.
const ARRAY: u32 = 2;
const PERCPU_ARRAY: u32 = 6;
const LRU_HASH: u32 = 9;

const EEXIST: i64 = -17;
const ENOENT: i64 = -2;
const E2BIG: i64 = -7;
const BPF_NOEXIST: u64 = 1;
const BPF_EXIST: u64 = 2;

/// A map of the kernel half; `struct model_map`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MapInfo {
    /// Its address, which names it.
    pub map: *const c_void,
    /// `enum bpf_map_type`.
    pub kind: u32,
    /// In bytes; 0: values have no keys.
    pub key_size: u32,
    /// In bytes.
    pub value_size: u32,
    /// Most entries.
    pub max_entries: u32,
}

/// A value, aligned as the kernel aligns the largest types.
#[derive(Debug)]
struct Value {
    place: *mut u8,
    layout: Layout,
}

impl Value {
    fn new(size: usize) -> Self {
        let layout = Layout::from_size_align(size.max(1), 64).expect("a value fits into memory");
        // SAFETY: the size is not 0.
        let place = unsafe { alloc_zeroed(layout) };
        assert!(!place.is_null(), "no memory for a map");
        Self { place, layout }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        let memory = Memory {
            place: self.place,
            layout: self.layout,
        };
        sfs_fibers::keep(memory);
    }
}

/// The memory of a value that is in no map any more. It is freed after a grace period.
struct Memory {
    place: *mut u8,
    layout: Layout,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `place` was allocated with this layout, and nobody else frees it.
        unsafe { dealloc(self.place, self.layout) }
    }
}

/// A task's entry in a map of the type task storage.
#[derive(Debug)]
pub struct Context(Value);

impl Context {
    /// `size` zeros.
    pub fn new(size: usize) -> Self {
        Self(Value::new(size))
    }

    /// Where they are.
    pub fn place(&self) -> *mut u8 {
        self.0.place
    }
}

/// A map with keys, or a queue.
#[derive(Debug)]
pub struct Map {
    info: MapInfo,
    /// An array: all values; else empty.
    array: Option<Value>,
    /// How far the values of an array are apart.
    stride: usize,
    /// The values of a hash, by key, so that runs repeat.
    hash: BTreeMap<Vec<u8>, Value>,
    /// The values of a queue.
    queue: VecDeque<Vec<u8>>,
}

impl Map {
    /// An empty map, or an array of zeros, on a machine with `cpus` CPUs.
    pub fn new(info: MapInfo, cpus: usize) -> Self {
        let stride = (info.value_size as usize).next_multiple_of(8);
        let copies = if info.kind == PERCPU_ARRAY { cpus } else { 1 };
        let is_array = matches!(info.kind, ARRAY | PERCPU_ARRAY);
        let size = stride * info.max_entries as usize * copies;
        Self {
            info,
            array: is_array.then(|| Value::new(size)),
            stride,
            hash: BTreeMap::new(),
            queue: VecDeque::new(),
        }
    }

    /// The size of a value in bytes.
    pub fn value_size(&self) -> usize {
        self.info.value_size as usize
    }

    /// Where the values of an array are, and their size in bytes; `None`: it is no array.
    pub fn array(&self) -> Option<(*const u8, usize)> {
        let array = self.array.as_ref()?;
        Some((array.place, array.layout.size()))
    }

    /// The value of a key for `cpu`; null if there is none.
    ///
    /// # Safety
    /// `key` points to a key of this map.
    pub unsafe fn lookup(&self, key: *const u8, cpu: usize) -> *mut u8 {
        let Some(array) = &self.array else {
            // SAFETY: as the caller promises.
            let key = unsafe { self.key(key) };
            return self.hash.get(&key).map_or(ptr::null_mut(), |v| v.place);
        };
        // SAFETY: keys of arrays are numbers of 32 bits.
        let index = unsafe { key.cast::<u32>().read_unaligned() };
        if index >= self.info.max_entries {
            return ptr::null_mut();
        }
        let copy = if self.info.kind == PERCPU_ARRAY {
            cpu
        } else {
            0
        };
        let number = index as usize + copy * self.info.max_entries as usize;
        // SAFETY: the array has that many values.
        unsafe { array.place.add(number * self.stride) }
    }

    /// # Safety
    /// `key` and `value` point to a key and a value of this map.
    pub unsafe fn update(&mut self, key: *const u8, value: *const u8, flags: u64) -> i64 {
        // SAFETY: as the caller promises.
        let key_bytes = unsafe { self.key(key) };
        let place = if self.array.is_some() {
            // SAFETY: as the caller promises.
            unsafe { self.lookup(key, 0) }
        } else {
            let old = self.hash.get(&key_bytes).map(|value| value.place);
            match (old, flags) {
                (Some(_), BPF_NOEXIST) => return EEXIST,
                (None, BPF_EXIST) => return ENOENT,
                (Some(place), _) => place,
                (None, _) => match self.insert(key_bytes) {
                    Some(place) => place,
                    None => return E2BIG,
                },
            }
        };
        if place.is_null() {
            return E2BIG;
        }
        // SAFETY: both have the size of a value, and are different memory.
        unsafe { ptr::copy_nonoverlapping(value, place, self.info.value_size as usize) };
        0
    }

    fn insert(&mut self, key: Vec<u8>) -> Option<*mut u8> {
        if self.hash.len() >= self.info.max_entries as usize {
            if self.info.kind != LRU_HASH {
                return None;
            }
            // The model does not know which one was used least recently.
            self.hash.pop_first();
        }
        let value = Value::new(self.info.value_size as usize);
        let place = value.place;
        self.hash.insert(key, value);
        Some(place)
    }

    /// # Safety
    /// `key` points to a key of this map.
    pub unsafe fn delete(&mut self, key: *const u8) -> i64 {
        // SAFETY: as the caller promises.
        let key = unsafe { self.key(key) };
        match self.hash.remove(&key) {
            Some(_) => 0,
            None => ENOENT,
        }
    }

    /// # Safety
    /// `value` points to a value of this queue.
    pub unsafe fn push(&mut self, value: *const u8) -> i64 {
        if self.queue.len() >= self.info.max_entries as usize {
            return E2BIG;
        }
        // SAFETY: as the caller promises.
        let bytes = unsafe { std::slice::from_raw_parts(value, self.info.value_size as usize) };
        self.queue.push_back(bytes.to_vec());
        0
    }

    /// # Safety
    /// `value` points to room for a value of this queue.
    pub unsafe fn peek(&self, value: *mut u8) -> i64 {
        let Some(bytes) = self.queue.front() else {
            return ENOENT;
        };
        // SAFETY: as the caller promises.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), value, bytes.len()) };
        0
    }

    /// # Safety
    /// `value` points to room for a value of this queue.
    pub unsafe fn pop(&mut self, value: *mut u8) -> i64 {
        // SAFETY: as the caller promises.
        let err = unsafe { self.peek(value) };
        self.queue.pop_front();
        err
    }

    /// # Safety
    /// `key` points to a key of this map.
    unsafe fn key(&self, key: *const u8) -> Vec<u8> {
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(key, self.info.key_size as usize) }.to_vec()
    }
}
